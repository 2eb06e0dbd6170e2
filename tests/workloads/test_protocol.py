"""The process side of the protocol, with a workload that needs no framework."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Prints from Python, from C's side of the file descriptor and from a child; burns CPU in itself and in a peer.
WORKLOAD = """
import os, subprocess, sys, time
from contextlib import contextmanager
from fixtures.workloads._protocol import Done, Job, serve

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass

@contextmanager
def prepare(asked):
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
    yield Job({"scratch": str(asked.scratch), "offline": os.environ["HF_HUB_OFFLINE"]}, step, peers=(peer,))
    os.kill(peer, 9)
    print("closed")
serve(prepare)
"""


def serve(script: str) -> subprocess.CompletedProcess[str]:
    """Run it as the target does, for one warm-up step and two that count."""
    options = ("--steps=2", "--warmup=1", "--seed=7", "--scratch=/somewhere")
    return subprocess.run((sys.executable, "-c", script, *options), cwd=ROOT, capture_output=True, text=True, check=False)


def test_stdout_has_the_protocol_and_nothing_else() -> None:
    """Whoever prints, prints to stderr; the job is closed before the end is said."""
    began = time.monotonic()
    process = serve(WORKLOAD)
    ended = time.monotonic()
    ready, *steps, end = map(json.loads, process.stdout.splitlines())
    assert process.returncode == 0
    assert ready == {"event": "ready", "facts": {"scratch": "/somewhere", "offline": "1", "seed": 7}}
    assert end == {"event": "end"}
    assert [(s["index"], s["warmup"], s["samples"], s["tokens"]) for s in steps] == [(0, True, 7, 0), (1, False, 7, 1), (2, False, 7, 2)]
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


def test_the_cpu_time_of_peers_is_added() -> None:
    """Here the peer burns a core while the workload itself sleeps."""
    script = WORKLOAD.replace("while True: time.sleep(60)", "burn(60)").replace("burn(0.05)", "time.sleep(0.2)")
    step = json.loads(serve(script).stdout.splitlines()[-2])
    assert step["cpu_s"] > 0.02


def test_a_failing_step_ends_without_an_end() -> None:
    """Its traceback goes to stderr, the exit code is not 0."""
    process = serve(WORKLOAD.replace("burn(0.05)", "os.kill(peer, 9); raise MemoryError('too small')"))
    assert process.returncode == 1
    assert "end" not in process.stdout
    assert process.stderr.splitlines()[-1] == "MemoryError: too small"
