"""Run `deeptweak run` through to the verdict, on commands whose speed depends on a setting."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from analysis.compare import compare
from analysis.load import load
from analysis.terms import Comparison
from fixtures.kernel import lock
from fixtures.process import proc
from fixtures.terms import MachineHeld
from tests.sessions import HOUSE, Done, Place
from tests.waiting import until

pytestmark = [pytest.mark.usefixtures("kernel_unchanged"), pytest.mark.needs("session")]
STEPS = (
    "import os, time; from deeptweak.steps import step\nwhile True: "
    "time.sleep(float(os.environ.get('PAUSE_S', '0.01'))); step()"
)

# As tqdm draws: after its carriage return, and at most every tenth of a second.
BAR = """
import os, sys, time
drawn = 0.0
for n in range(201):
    if time.monotonic() - drawn > 0.1 or n == 200:
        drawn = time.monotonic()
        end = {"end": "", "file": sys.stderr, "flush": True}
        print(f"\\rtrain:  40%|##   | {n}/200 [00:01<00:02, 9.9it/s]", **end)
    time.sleep(float(os.environ.get("PAUSE_S", "0.01")))
"""
SERVER = """
import os, time
began = time.monotonic()
for n in range(20): time.sleep(float(os.environ.get("PAUSE_S", "0.01")))
print(f"Failed requests: 0\\nRequest throughput (req/s): {20 / (time.monotonic() - began):.2f}")
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def typed(place: Place, *words: str) -> list[str]:
    """The command line that measures under a set that lets each step take six times as long."""
    slow = place.manifest("slow", variables="PAUSE_S=0.06")
    return [
        sys.executable,
        "-m",
        "deeptweak",
        "run",
        f"--tweaks={slow}",
        f"--storage={place.storage}",
        *words,
    ]


def run(place: Place, *words: str) -> Done:
    """Measure three blocks."""
    return place.call(*typed(place, "--blocks=3", *words))


def verdicts(place: Place) -> tuple[Comparison, Comparison]:
    """Return the comparison of its valid saved run, and that of the two equal arms."""
    jsonschema.validate(place.saved(), json.loads((HOUSE / "data/run.schema.json").read_text()))
    (guard,), (found,) = (
        [one for one in compare(load(place.files()[-1])) if one.guard == is_guard]
        for is_guard in (True, False)
    )
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
        ("--", sys.executable, "-c", BAR),
        ("--", sys.executable, "-c", SERVER),
    ],
    ids=["whole runs", "calls, in turns", "lines", "a bar, in redraws of some steps", "a rate"],
)
def test_what_a_setting_does_to_a_command_is_found(place: Place, words: tuple[str, ...]) -> None:
    done = run(place, *words)
    assert done.code == 0, done.out
    found, guard = verdicts(place)
    # In one run of a hundred two equal arms differ by chance (p < .01), and then nothing is
    # claimed.
    assert (found.verdict, found.pairs) == (
        "not comparable" if guard.verdict == "not comparable" else "regressed",
        3,
    )
    assert found.primary is not None
    assert 1 / 8 < 1 + found.primary.gain < 1 / 2  # of its speed


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--", "no-such-program"), "Cannot start no-such-program"),
        (
            ("--", "sh", "-c", "echo bad luck; exit 3"),
            "sh ended with exit code 3; last line: 'bad luck'",
        ),
        (
            ("--step-regex=took (.+)", "--", "sh", "-c", "while :; do echo took nan; done"),
            "'nan' is not a valid step time",
        ),
        (("--runs", "--format=json", "--", "true"), "give only one of them"),
        (("--steps=1", "--", "true"), "--steps=1: must be from 2"),
        (("--env=A", "--", "true"), "--env=A: write NAME=VALUE"),
        (("--cwd=/no/such", "--", "true"), "--cwd=/no/such: no such folder"),
        (("--exit-codes=x", "--", "true"), "--exit-codes=x: must be numbers"),
        (("--output=a.json", "--", "true"), "--output=a.json"),
    ],
)
def test_an_unmeasurable_command_is_refused_before_any_change(
    place: Place, words: tuple[str, ...], why: str
) -> None:
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


def test_a_command_that_always_fails_ends_the_run_after_block_1(
    place: Place, tmp_path: Path
) -> None:
    """It runs once, in the trial. The run says why once, in words of its own alone."""
    once = (
        f"test ! -e {tmp_path}/lock && touch {tmp_path}/lock || {{ echo 'the lock is held'; exit "
        f"5; }}"
    )
    done = place.call(*typed(place, "--budget=60s", "--", "sh", "-c", once))
    assert done.code == 2
    reason = "sh ended with exit code 5; last line: 'the lock is held'."
    assert [line.partition(": ")[2] for line in done.lines("block 1: FAILED")] == [
        f"FAILED: {reason}",
        *["FAILED: the same"] * 2,
    ]
    (message,) = done.lines("Nothing was measured: every cell failed. The run ended after block 1.")
    text = done.out.partition(message)[2].split()
    assert " ".join(text[3:]).startswith(
        f"{reason} If the trial run succeeded, look for what a run leaves behind"
    )
    assert {word.rstrip(",:") for word in text[:3]} == {"stock", "stock-again", "slow"}
    for words in (
        "collected",
        "no tests ran",
        "Traceback",
        "Error",
        "=====",
        "bench_command",
        "failed in",
    ):
        assert words not in done.out
    cells = place.saved()["deeptweak"]["cells"]
    assert [(one["outcome"], one["reason"]) for one in cells] == [("failed", reason)] * 3


def test_a_budget_too_small_is_refused_with_one_that_suffices(place: Place) -> None:
    done = place.call(*typed(place, "--budget=5s", "--", "sleep", "0.3"))
    assert done.code == 2, done.out
    assert done.lines("error: 3 blocks of 3 cells take about ")
    assert "5 s: each cell has 1 + 2 runs of 0.3" in done.out
    assert " Use --budget=" in done.out
    assert not list(place.storage.rglob("0001_*"))


def test_resuming_a_run_with_a_budget_needs_no_second_trial(
    place: Place,
) -> None:
    """Another trial would lead to other steps, or to another number of blocks: to another plan."""
    words = typed(
        place, "--budget=20s", "--steps=2", "--warmup=0", "--", "sh", "-c", "sleep ${PAUSE_S:-0.01}"
    )
    with subprocess.Popen(
        words,
        cwd=HOUSE,
        env=place.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        until(lambda: bool(place.finished()))
        process.send_signal(signal.SIGTERM)
        first = process.communicate()[0]
    assert (process.returncode, first.splitlines()[-1]) == (
        2,
        "Interrupted. To continue, run the same command with --resume.",
    )
    assert "!!" not in first
    assert "KeyboardInterrupt" not in first
    done = place.call(*words[:4], "--resume", *words[4:])
    assert (done.code, done.lines("Trying it once")) == (0, []), done.out
    assert [one["outcome"] for one in place.saved()["deeptweak"]["cells"]] == ["measured"] * len(
        place.saved()["deeptweak"]["cells"]
    )


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name
)
def test_what_ends_a_trial_ends_all_that_the_command_started(
    place: Place, number: signal.Signals, tmp_path: Path
) -> None:
    """A process in a session of its own too, by a mark in its environment."""
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
    command = [
        sys.executable,
        "-m",
        "deeptweak",
        "run",
        f"--tweaks={place.manifest('slow', variables='PAUSE_S=0.06')}",
        *words,
    ]

    def alive() -> int:
        return sum(proc.has_mark(pid, mark) for pid in proc.pids())

    with subprocess.Popen(
        command, cwd=HOUSE, env=place.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as harness:
        try:
            until(lambda: alive() >= 4)  # two shells and two sleeps
            harness.send_signal(number)
            harness.wait()
            until(lambda: alive() == 0)
        finally:
            proc.end(mark)


CLUSTER = Path("/proc/sys/vm/page-cluster")
# another value than stands there
OTHER = "echo $((1 - $(cat /proc/sys/vm/page-cluster) % 2)) > /proc/sys/vm/page-cluster"


@pytest.mark.parametrize("plan", [(), ("--plan",)], ids=["run", "plan"])
@pytest.mark.parametrize("ending", ["true", "exit 3"], ids=["succeeds", "fails"])
def test_what_a_command_changes_in_its_trial_is_put_back(
    place: Place, plan: tuple[str, ...], ending: str
) -> None:
    """The path, the value before and the value after are named, and nothing is measured."""
    found = CLUSTER.read_text().strip()
    done = place.call(
        *typed(place, *plan, "--blocks=1", "--", "sh", "-c", f"{OTHER}; sleep 0.05; {ending}")
    )
    assert CLUSTER.read_text().strip() == found
    assert done.code == 2, done.out
    assert f"/proc/sys/vm/page-cluster: {found} -> {1 - int(found) % 2}." in " ".join(
        done.out.split()
    )
    assert "A command that changes settings cannot be measured" in done.out
    assert not list(place.storage.rglob("0001_*"))


def test_a_setting_changed_by_the_command_is_named_with_its_undo(place: Place) -> None:
    """The trial saw none of it; an administrator may have changed the setting, so it stays."""
    found, count = CLUSTER.read_text().strip(), place.folder / "count"
    script = (
        f"echo x >> {count}; [ $(wc -l < {count}) -lt 6 ] || [ -e {count}.done ] || {{ {OTHER}; "
        f"touch {count}.done; }}; sleep 0.2"
    )
    try:
        done = place.call(
            *typed(place, "--blocks=3", "--steps=2", "--warmup=0", "--", "sh", "-c", script)
        )
        (line,) = done.lines(
            f"changed since the run began: {CLUSTER}: {found} -> {1 - int(found) % 2}; changed by "
            "the command or another"
        )
        assert f"To put it back: `echo {found} > {CLUSTER}`." in " ".join(done.out.split()), line
        assert not done.lines("Machine: as it was found")
    finally:
        CLUSTER.write_text(found)


def test_a_trial_that_is_killed_leaves_a_journal(place: Place) -> None:
    """`restore` puts back the command's changes until then, as after any run."""
    found = CLUSTER.read_text()
    words = typed(place, "--plan", "--", "sh", "-c", f"{OTHER}; sleep 600")
    with subprocess.Popen(
        words, cwd=HOUSE, env=place.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as harness:
        until(lambda: CLUSTER.read_text() != found)
        harness.kill()
    done = place.restore()
    assert (done.code, CLUSTER.read_text()) == (0, found), done.out
    assert f"/proc/sys/vm/page-cluster: {1 - int(found) % 2} -> {found.strip()}" in done.out


def test_the_machine_is_held_from_the_trial_to_the_end(place: Place) -> None:
    """Another run is refused at any moment: the session takes over the trial's lock."""
    words = typed(place, "--blocks=1", "--steps=2", "--warmup=0", "--", "sleep", "0.2")
    free = 0
    with subprocess.Popen(
        words,
        cwd=HOUSE,
        env=place.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as harness:
        until(lambda: (place.state / "lock").exists() and (place.state / "lock").read_text() != "")
        while not place.finished():  # no cell has been measured yet
            with contextlib.suppress(MachineHeld), lock.held(place.state):
                free += 1
            time.sleep(0.002)
        out = harness.communicate()[0]
    assert (harness.returncode, free) == (0, 0), out
