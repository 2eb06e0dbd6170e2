"""A monitor's processes, however hidden, are killed with its cell, which fails."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.monitors import processes
from fixtures.targets import _process
from fixtures.terms import Order
from fixtures.workloads import load
from tests.monitors.made_up import Made, gone, says, shell, traced, vanished
from tests.sessions import HOUSE
from tests.waiting import PATIENCE_S, state, until

if TYPE_CHECKING:
    Make = Callable[[str], Made]


@pytest.mark.parametrize(
    "way",
    ["sleep 1000 &", "setsid sleep 1000 &", "env -i sleep 1000 &", "env -i setsid sleep 1000 &"],
)
def test_children_that_it_leaves_are_killed_and_the_cell_fails(made: Make, way: str) -> None:
    """Found by session, by the mark in the environment, by the one left, or as adopted by us."""
    found = made(shell(f"{way} echo on; exec sleep 1001") + says("on"))
    run = found.run()
    assert run.error is not None
    assert run.error.startswith("Monitor made_up left 1 processes behind (sleep)")
    assert gone(found)


@pytest.mark.parametrize(
    "started", ["(setsid sh -c 'sleep 1000 & sleep 1000' &); ", "sh -c 'setsid sleep 1000 &'; "]
)
def test_detached_daemons_are_killed_with_their_children(made: Make, started: str) -> None:
    """Orphans of a working monitor, without session or mark: the cell's folder gives the owner."""
    found = made(shell(f'env -i PWD="$PWD" sh -c "{started}echo on"; exec sleep 1001') + says("on"))
    run = found.run()
    assert run.error is not None
    assert "processes behind (" in run.error
    assert not working_in(found.folder)
    assert not [pid for pid in processes.children() if state(pid) == "Z"]


def working_in(folder: Path) -> list[int]:
    """Processes whose working directory is there."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if link.readlink().is_relative_to(folder):
                found.append(int(link.parent.name))
    return found


def test_a_workload_and_its_own_children_are_no_monitors(made: Make) -> None:
    """A process of the workload's group that its parent has left comes to us too."""
    found = made(shell("exec sleep 1001"))
    orphan = "import subprocess; subprocess.run(['sh', '-c', 'sleep 1000 >/dev/null 2>&1 &'])\n"
    order = Order(
        load("idle:wait_s=0.01"),
        20,
        1,
        7,
        found.folder,
        monitored=True,
        monitor="made_up",
        step_timeout_s=PATIENCE_S,
    )
    assert (
        _process.run(order, program=(sys.executable, "-c", orphan + found.workload)).error is None
    )
    assert gone(found)


@pytest.mark.parametrize("way", ["sleep 1000 &", "setsid sleep 1000 &"])
def test_when_the_harness_is_killed_a_monitors_children_go_too(made: Make, way: str) -> None:
    """Nobody is left to look for them but the one that was started for it."""
    found = made(shell(f"{way} echo on; exec sleep 1001") + says("on"))
    with subprocess.Popen([sys.executable, "-c", found.harness], cwd=HOUSE) as harness:
        until(lambda: "sleep 1000 " in traced(found.trace).values())
        harness.kill()
    assert vanished(found.trace)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize(
    "moment_s", [0.2, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.0, 0.4, 0.8, 1.6))]
)
def test_ending_the_harness_leaves_no_workload_or_monitor(
    made: Make, number: signal.Signals, moment_s: float
) -> None:
    """At any moment: while it starts, between the two, at work.

    Which one it is depends on the machine.
    """
    found = made(shell("echo on; exec sleep 1000") + says("on"))
    harness = subprocess.Popen(
        [sys.executable, "-c", found.harness], cwd=HOUSE, stderr=subprocess.DEVNULL
    )
    time.sleep(moment_s)
    harness.send_signal(number)
    harness.wait(PATIENCE_S)
    assert vanished(found.trace)
