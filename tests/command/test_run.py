"""`deeptweak run` from its command line to the verdict, on commands whose speed is known to depend on a setting."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from analysis.compare import compare
from analysis.load import load
from analysis.terms import Comparison
from fixtures.process import proc
from tests.sessions import HOUSE, Done, Place
from tests.waiting import until

pytestmark = [pytest.mark.usefixtures("kernel_unchanged"), pytest.mark.needs("session")]
STEPS = "import os, time; from deeptweak.steps import step\nwhile True: time.sleep(float(os.environ.get('PAUSE_S', '0.01'))); step()"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def run(place: Place, *words: str) -> Done:
    """Measure it under a set that lets each step take six times as long."""
    slow = place.manifest("slow", variables="PAUSE_S=0.06")
    return place.call(sys.executable, "-m", "deeptweak", "run", f"--tweaks={slow}", "--blocks=3", f"--storage={place.storage}", *words)


def verdicts(place: Place) -> tuple[Comparison, Comparison]:
    """Of the one contrast of its saved run, which keeps to the schema, and of the two equal arms."""
    jsonschema.validate(place.saved(), json.loads((HOUSE / "data/run.schema.json").read_text()))
    (guard,), (found,) = ([one for one in compare(load(place.files()[-1])) if one.guard == is_guard] for is_guard in (True, False))
    return found, guard


@pytest.mark.parametrize(
    "words",
    [
        ("--steps=2", "--", "sh", "-c", "sleep ${PAUSE_S:-0.01}"),
        ("--steps=4", "--turns", "--", sys.executable, "-c", STEPS),
        (
            "--step-regex=^step ([0-9]+)",
            "--steps=4",
            "--",
            "sh",
            "-c",
            "i=0; while :; do i=$((i+1)); sleep ${PAUSE_S:-0.01}; echo step $i; done",
        ),
    ],
    ids=["whole runs", "calls, in turns", "lines"],
)
def test_what_a_setting_does_to_a_command_is_found(place: Place, words: tuple[str, ...]) -> None:
    done = run(place, *words)
    assert done.code == 0, done.out
    found, guard = verdicts(place)
    # In one run of a hundred two equal arms differ by chance (p < .01), and then nothing is claimed.
    assert (found.verdict, found.pairs) == ("not comparable" if guard.verdict == "not comparable" else "regressed", 3)
    assert found.primary is not None
    assert 1 / 8 < 1 + found.primary.gain < 1 / 2  # of its speed


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--", "no-such-program"), "no-such-program: cannot be started"),
        (("--", "sh", "-c", "echo bad luck; exit 3"), "sh ended with exit code 3; its last line: 'bad luck'"),
        (("--step-regex=took (.+)", "--", "sh", "-c", "while :; do echo took nan; done"), "'nan' is no time that a step can take"),
        (("--runs", "--format=json", "--", "true"), "leave all but one out"),
        (("--steps=1", "--", "true"), "--steps=1: at least 2"),
        (("--env=A", "--", "true"), "--env=A: write NAME=VALUE"),
        (("--cwd=/no/such", "--", "true"), "--cwd=/no/such: no such folder"),
        (("--exit-codes=x", "--", "true"), "--exit-codes=x: write numbers"),
        (("--output=a.json", "--", "true"), "--output=a.json"),
    ],
)
def test_a_command_that_cannot_be_measured_is_refused_before_anything_is_changed(place: Place, words: tuple[str, ...], why: str) -> None:
    done = run(place, *words)
    assert done.code == 2, done.out
    assert why in done.out
    assert not list(place.storage.rglob("0001_*"))


def test_one_that_fails_in_its_cells_leaves_a_reason_in_each(place: Place) -> None:
    done = run(place, "--steps=2", "--", "sh", "-c", 'test -z "$PAUSE_S" || exit 7')
    assert done.code == 2, done.out  # a set that was asked for by name was not measured
    reasons = {one["tweakset"]: one["reason"] for one in place.saved()["deeptweak"]["cells"]}
    assert reasons["stock"] is None
    assert "ended with exit code 7" in reasons["slow"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
def test_what_ends_a_trial_ends_all_that_the_command_started(place: Place, number: signal.Signals, tmp_path: Path) -> None:
    """What has a session of its own too: by a mark in its environment."""
    mark = f"TRIED={tmp_path}"
    words = (
        "--plan",
        "--runs",
        f"--storage={place.storage}",
        f"--env={mark}",
        "--",
        "sh",
        "-c",
        "setsid sleep 600 & (sleep 600; true) & wait",
    )
    command = [sys.executable, "-m", "deeptweak", "run", f"--tweaks={place.manifest('slow', variables='PAUSE_S=0.06')}", *words]

    def alive() -> int:
        return sum(proc.has_mark(pid, mark) for pid in proc.pids())

    with subprocess.Popen(command, cwd=HOUSE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as harness:
        try:
            until(lambda: alive() >= 4)  # two shells and two sleeps
            harness.send_signal(number)
            harness.wait()
            until(lambda: alive() == 0)
        finally:
            proc.end(mark)
