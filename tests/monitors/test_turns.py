"""Monitors in turns inside one process: stopped and resumed with children; and all faults."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.monitors import monitor, processes
from fixtures.monitors.attend import Attended
from fixtures.monitors.processes import Lost, Turns
from fixtures.targets import _process
from fixtures.terms import InForce, Order, Switching, WorkloadRun
from fixtures.workloads import load
from tests import waiting
from tests.monitors.made_up import BESIDE, Made, gone, says, shell, traced, vanished
from tests.sessions import HOUSE
from tests.waiting import state

if TYPE_CHECKING:
    Make = Callable[[str], Made]

ARMS: tuple[InForce, ...] = ("found", "set", "set", "found", "found", "set", "set", "found")
WAY = Switching(ARMS, steps=4, settle=1)
STAMPS = "import time\nwhile True: print(time.monotonic(), flush=True); time.sleep(0.001)"
CLOCK = (
    f"{BESIDE}import sys\ndef command(self, pid, folder): return [sys.executable, '-S', '-c', "
    f"{STAMPS!r}]\n"
)
BEGUN = "def watches(self, folder): return (folder / 'stdout').read_text().count('.') > 1\n"


def segments_of(run: WorkloadRun) -> Iterator[tuple[InForce, float, float]]:
    for one in run.segments:
        first, last = run.steps[one.first], run.steps[one.first + one.settle + one.steps - 1]
        yield one.arm, first.start_monotonic_s, last.start_monotonic_s + last.wall_s


def test_a_monitor_works_only_in_its_own_segments(made: Make) -> None:
    found = made(CLOCK + BEGUN)
    run = found.run(switching=WAY, wait_s=0.02)
    assert run.error is None
    stamps = [
        float(line) for line in (found.folder / "monitor/stdout").read_text().splitlines()[:-1]
    ]
    seen = dict.fromkeys(("found", "set"), 0)
    for arm, since_s, until_s in segments_of(run):
        seen[arm] += sum(since_s < stamp < until_s for stamp in stamps)
    assert seen["found"] == 0
    assert seen["set"] > 0
    assert run.monitor is not None
    told = run.monitor["told"]
    assert isinstance(told, dict)
    worked_s = sum(until_s - since_s for arm, since_s, until_s in segments_of(run) if arm == "set")
    assert worked_s < told["at_work_s"] < float(str(run.monitor["wall_s"]))
    assert gone(found)


def test_in_an_a_a_run_a_waiting_process_replaces_the_monitor(tmp_path: Path) -> None:
    order = Order(
        load("idle:wait_s=0.01"), WAY.total, 1, 7, tmp_path, monitored=True, switching=WAY
    )
    states: list[str] = []
    run = Attended.paused

    def paused(self: Attended, segment: int) -> str | None:
        why = run(self, segment)
        assert self._beside is not None
        states.extend(one.state for one in self._beside.family().values())
        return why

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Attended, "paused", paused)
        done = _process.run(order)
    assert done.error is None
    assert ["found" if state == "T" else "set" for state in states] == [*ARMS[1:], "set"]
    assert done.monitor is not None
    assert done.monitor["name"] is None
    assert "a waiting process" in str(done.monitor["missing"])


@pytest.fixture
def standing() -> Iterator[tuple[subprocess.Popen[bytes], Turns]]:
    """A process that waits, and its turns beside this one."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        turns = Turns(
            "made_up", lambda: processes.processes("no such mark", process.pid), os.getpid()
        )
        try:
            yield process, turns
        finally:
            process.kill()


def until(pid: int, wanted: str) -> None:
    waiting.until(lambda: state(pid) in wanted, every_s=0.001)


@pytest.mark.parametrize(
    ("arm", "number", "reached", "why"),
    [("found", signal.SIGCONT, "RS", "continued it"), ("set", signal.SIGSTOP, "T", "stopped it")],
)
def test_somebody_else_who_stops_it_or_lets_it_go_on_is_noticed(
    standing: tuple[subprocess.Popen[bytes], Turns],
    arm: InForce,
    number: signal.Signals,
    reached: str,
    why: str,
) -> None:
    process, turns = standing
    turns.to(arm)
    process.send_signal(number)
    until(process.pid, reached)
    with pytest.raises(Lost, match=f"another program {why}"):
        turns.to("found")


def test_one_that_holds_the_workload_is_not_stopped_in_it(
    standing: tuple[subprocess.Popen[bytes], Turns], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held for good here; a profiler lets go when it has looked."""
    monkeypatch.setattr(processes, "WITHIN_S", 0.2)
    process, turns = standing
    with subprocess.Popen(["sleep", "1000"]) as workload:
        workload.send_signal(signal.SIGSTOP)
        until(workload.pid, "T")
        turns._workload = workload.pid
        with pytest.raises(Lost, match="held the workload"):
            turns.to("found")
        workload.kill()
    assert state(process.pid) != "T"


def test_one_that_stays_behind_in_a_pause_fails_the_cell(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "WITHIN_S", 2.0)
    again = "trap 'kill -STOP $$' CONT; echo on; while :; do sleep 0.01; done"
    found = made(shell(again) + says("on"))
    error = str(found.run(switching=WAY, wait_s=0.05).error)
    assert (
        "was stuck after a pause" in error
        or "was stopped in a segment in which it should have been at work" in error
    )
    assert gone(found)


def test_a_harness_killed_in_a_pause_leaves_nothing_stopped(made: Make) -> None:
    """The kernel's SIGKILL ends a stopped process too."""
    found = made(CLOCK + BEGUN)
    script = found.harness.replace("import Order", "import Order, Switching").replace(
        "), 1000, ", "), 4000, "
    )
    script = script.replace(
        'monitor="made_up")', 'monitor="made_up", switching=Switching(("found", "set"), 1999, 1))'
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=HOUSE) as harness:
        waiting.until(
            lambda: any(
                Path(f"/proc/{pid}").exists() and state(pid) == "T" for pid in traced(found.trace)
            )
        )
        harness.kill()
    assert vanished(found.trace)


@pytest.mark.parametrize("name", monitor.names())
def test_every_monitor_can_take_turns_or_says_why_not(name: str) -> None:
    known, why = monitor.load(name), monitor.not_switched_reason(name)
    assert why if known.kind != "beside" else why is None or "while it is stopped" in why
