"""A workload that pauses between segments: faulty fake programs, and the protocol's own side."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.targets._process import run
from fixtures.terms import Order, Segment, Switching, WorkloadRun
from fixtures.workloads import load
from tests.programs import python
from tests.said import SPEAK
from tests.waiting import PATIENCE_S, until

if TYPE_CHECKING:
    import subprocess

    Play = Callable[..., WorkloadRun]

# Two segments of one settle step and one that counts, after one step of warm-up.
WAY = Switching(("found", "set"), steps=1, settle=1)
WELL = """
def timed(index): step(index, start_monotonic_s=time.clock_gettime(time.CLOCK_MONOTONIC))
def pause(n, wait=True):
    say(event="pause", segment=n)
    return wait and sys.stdin.readline()
"""
GOOD = "ready(); [timed(n) for n in range(3)]; pause(0); timed(3); timed(4); pause(1); end()"


@pytest.fixture
def play(tmp_path: Path) -> Play:
    def play(
        script: str,
        on_pause: Callable[[int], str | None] = lambda _segment: None,
        step_timeout_s: float = PATIENCE_S,
    ) -> WorkloadRun:
        order = Order(load("idle"), WAY.total, 1, 7, tmp_path, {}, PATIENCE_S, step_timeout_s, WAY)
        return run(
            order, on_pause=on_pause, program=(sys.executable, "-S", "-c", SPEAK + WELL + script)
        )

    return play


def test_it_goes_on_only_when_told_and_every_segment_has_its_arm(play: Play) -> None:
    paused: list[int] = []
    result = play(GOOD, paused.append)
    assert result.error is None
    assert paused == [0, 1]
    assert result.segments == (Segment(1, "found", 1, 1, 1), Segment(1, "set", 3, 1, 1))


def test_a_refusal_between_segments_ends_the_run(play: Play) -> None:
    result = play(GOOD, lambda _segment: "the kernel refused 7")
    assert result.error == "the kernel refused 7"
    assert (len(result.steps), len(result.segments)) == (3, 1)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("ready(); [timed(n) for n in range(5)]; end()", "did not wait"),
        ("ready(); timed(0); pause(0)", "invalid line"),
        ("ready(); [timed(n) for n in range(3)]; pause(1)", "invalid line"),
        ("ready(); [timed(n) for n in range(3)]; pause(0); pause(0)", "invalid line"),
        (
            "ready(); [timed(n) for n in range(3)]; pause(0); timed(3); timed(4); end()",
            "invalid line",
        ),
        ("ready(); [timed(n) for n in range(3)]; pause(0); sys.exit(3)", "Died with exit code 3"),
        (
            "ready(); [timed(n) for n in range(3)]; say(event='pause', segment=0); os._exit(0)",
            "Ended too early",
        ),
    ],
)
def test_a_workload_that_pauses_wrongly_is_not_believed(play: Play, script: str, said: str) -> None:
    assert said in str(play(script).error)


def test_a_workload_that_goes_on_during_a_pause_is_not_believed(play: Play, tmp_path: Path) -> None:
    script = (
        "ready(); [timed(n) for n in range(3)]; pause(0, wait=False); timed(3); open('on', 'w'); "
        "timed(4); pause(1); end()"
    )
    assert "did not wait" in str(
        play(
            script, lambda segment: until((tmp_path / "on").exists) if segment == 0 else None
        ).error
    )


def test_one_that_never_comes_back_from_a_pause_is_given_up(play: Play) -> None:
    result = play(
        "ready(); [timed(n) for n in range(3)]; pause(0); time.sleep(600)", step_timeout_s=0.5
    )
    assert "Hung" in str(result.error)


def test_stop_while_it_pauses_kills_it(play: Play) -> None:
    def interrupted(_segment: int) -> str | None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(GOOD, interrupted)


WORKLOAD = """
from contextlib import contextmanager
from fixtures.workloads import Workload
from fixtures.workloads._protocol import Done, Stepper, serve
class Made(Workload):
    @contextmanager
    def prepare(self, asked):
        facts = {"total": asked.total, "batches": asked.batches}
        yield Stepper(facts, lambda batch: Done(1, batch, 0.0))
serve(Made)
"""


def serve(*options: str, told: str) -> subprocess.CompletedProcess[str]:
    return python(WORKLOAD, "--warmup=1", "--seed=7", "--scratch=/somewhere", *options, told=told)


def test_two_segments_of_a_pair_are_the_same_work() -> None:
    """Warm-up is batch 0; the segments of two steps are batches 1, 2, twice, then 3, 4, twice."""
    process = serve("--steps=8", "--segments=2", told="\n" * 4)
    said = [json.loads(line) for line in process.stdout.splitlines()]
    assert process.returncode == 0
    assert said[0]["facts"]["total"] == 5
    assert [event["tokens"] for event in said if event["event"] == "step"] == [
        0,
        1,
        2,
        1,
        2,
        3,
        4,
        3,
        4,
    ]
    assert [n for n, event in enumerate(said) if event["event"] == "pause"] == [4, 7, 10, 13]
    assert [event["segment"] for event in said if event["event"] == "pause"] == [0, 1, 2, 3]


@pytest.mark.parametrize("segments", ["0", "-2", "3"])
def test_steps_that_are_no_pairs_of_segments_are_refused(segments: str) -> None:
    process = serve("--steps=8", f"--segments={segments}", told="")
    assert process.returncode == 2
    assert "do not make pairs" in process.stderr
