"""The process side of the protocol, with a workload that needs no framework."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.programs import python
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]

# Prints from Python, from C's side of the file descriptor and from a child; burns CPU in itself and
# in a peer.
WORKLOAD = """
import os, subprocess, sys, time
from contextlib import contextmanager
from fixtures.workloads import Workload
from fixtures.workloads._protocol import Done, Stepper, serve

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass

class Made(Workload):
    @contextmanager
    def prepare(self, asked):
        print("a library greets")
        os.write(1, b"so does its C part\\n")
        subprocess.run(["echo", "and its child"])
        peer = os.fork()
        if peer == 0:
            while True: time.sleep(60)
        def step(index):
            print("epoch", index)
            burn(0.05)
            time.sleep(0.05)
            return Done(samples=asked.seed, tokens=index, loss=float("nan") if index == 2 else 0.5)
        facts = {"scratch": str(asked.scratch), "offline": os.environ["HF_HUB_OFFLINE"]}
        yield Stepper(facts, step, peers=(peer,))
        os.kill(peer, 9)
        print("closed")
serve(Made)
"""


def serve(script: str) -> subprocess.CompletedProcess[str]:
    """Run it as the target does, for one warm-up step and two that count."""
    options = ("--steps=2", "--warmup=1", "--seed=7", "--scratch=/somewhere")
    return python(script, *options)


def test_stdout_has_the_protocol_and_nothing_else() -> None:
    began = time.monotonic()
    process = serve(WORKLOAD)
    ended = time.monotonic()
    ready, *steps, end = map(json.loads, process.stdout.splitlines())
    assert process.returncode == 0
    assert ready == {
        "event": "ready",
        "facts": {"scratch": "/somewhere", "offline": "1", "seed": 7},
    }
    assert end == {"event": "end"}
    assert [(s["index"], s["warmup"], s["samples"], s["tokens"]) for s in steps] == [
        (0, True, 7, 0),
        (1, False, 7, 1),
        (2, False, 7, 2),
    ]
    for said in ("a library greets", "so does its C part", "and its child", "epoch 2", "closed"):
        assert said in process.stderr
    # The machine's monotonic clock, that of this process and of the telemetry too.
    assert began < steps[0]["start_monotonic_s"] < steps[1]["start_monotonic_s"] < ended


def test_a_step_has_wall_and_cpu_seconds_of_its_own() -> None:
    """Each burns 50 ms and sleeps 50 ms; NaN is passed on as it is, to be judged by the target."""
    steps = [json.loads(line) for line in serve(WORKLOAD).stdout.splitlines()[1:-1]]
    for step in steps:
        assert step["wall_s"] >= 0.1
        assert 0.05 <= step["cpu_s"] < step["wall_s"]
    assert steps[1]["loss"] == 0.5
    assert math.isnan(steps[2]["loss"])


def lingering(script: str) -> tuple[list[dict[str, object]], int]:
    """Run it with --linger until its last word, then end it.

    Returns: its events and its exit code.
    """
    options = ("--steps=1", "--warmup=0", "--seed=7", "--scratch=/somewhere", "--linger")
    with subprocess.Popen(
        (sys.executable, "-c", script, *options),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        events = []
        try:
            for line in process.stdout:
                events.append(json.loads(line))
                if events[-1]["event"] == "exit":
                    break
            assert process.poll() is None
            process.terminate()
            return events, process.wait(PATIENCE_S)
        finally:  # its peer too, which an error leaves behind
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_a_lingering_workload_reports_its_end_and_then_waits() -> None:
    events, code = lingering(WORKLOAD)
    assert [one["event"] for one in events] == ["ready", "step", "end", "exit"]
    assert (events[-1]["code"], code) == (0, 0)


def test_a_lingering_workload_stays_after_an_error_too() -> None:
    events, code = lingering(WORKLOAD.replace("burn(0.05)", "raise OSError"))
    assert [one["event"] for one in events] == ["ready", "exit"]
    assert (events[-1]["code"], code) == (1, 1)


def test_the_cpu_time_of_peers_is_added() -> None:
    """Here the peer burns a core while the workload itself sleeps, until that has taken 50 ms."""
    # as clock_getcpuclockid(3) makes it
    begun = "clock = (~peer << 3) | 2; until = time.clock_gettime(clock) + 0.05"
    rests = f"{begun}\n            while time.clock_gettime(clock) < until: time.sleep(0.01)"
    script = WORKLOAD.replace("while True: time.sleep(60)", "burn(600)").replace(
        "burn(0.05)", rests
    )
    step = json.loads(serve(script).stdout.splitlines()[-2])
    assert step["cpu_s"] > 0.02


def test_a_failing_step_ends_without_an_end() -> None:
    """Its traceback goes to stderr, the exit code is not 0."""
    process = serve(
        WORKLOAD.replace("burn(0.05)", "os.kill(peer, 9); raise MemoryError('too small')")
    )
    assert process.returncode == 1
    assert "end" not in process.stdout
    assert process.stderr.splitlines()[-1] == "MemoryError: too small"


# Tells something in the middle of a step, and something when all is over; one step says itself how
# long it took.
TELLS = """
import time
from contextlib import contextmanager
from fixtures.workloads import Workload
from fixtures.workloads._protocol import Done, Stepper, serve

class Made(Workload):
    @contextmanager
    def prepare(self, asked):
        def step(index):
            asked.report("epochs", {"step": index, "params": self.params, "data": str(asked.data)})
            return Done(samples=1, tokens=0, loss=0.5, timed=(7.0, 2.5) if index == 1 else None)
        yield Stepper({}, step)
        asked.report("io", {"last": True})
serve(Made)
"""


def test_a_report_follows_the_step_in_which_it_was_made() -> None:
    """Reports at the close precede the end; parameters and data folder reach the workload."""
    options = (
        "--steps=1",
        "--warmup=1",
        "--seed=7",
        "--scratch=/somewhere",
        '--params={"size": "a=b"}',
        "--data=/data",
    )
    process = python(TELLS, *options)
    events = [json.loads(line) for line in process.stdout.splitlines()]
    assert [one["event"] for one in events] == [
        "ready",
        "step",
        "report",
        "step",
        "report",
        "report",
        "end",
    ]
    told = [(one["name"], one["value"]) for one in events if one["event"] == "report"]
    beside = {"params": {"size": "a=b"}, "data": "/data"}
    assert told == [
        ("epochs", {"step": 0, **beside}),
        ("epochs", {"step": 1, **beside}),
        ("io", {"last": True}),
    ]


def test_a_step_may_say_itself_when_it_was() -> None:
    """If it began at the end of the one before, the clock around it would miss the time between."""
    options = ("--steps=1", "--warmup=1", "--seed=7", "--scratch=/somewhere")
    process = python(TELLS, *options)
    first, second = (
        one for one in map(json.loads, process.stdout.splitlines()) if one["event"] == "step"
    )
    assert (second["start_monotonic_s"], second["wall_s"]) == (7.0, 2.5)
    assert first["start_monotonic_s"] != 7.0
