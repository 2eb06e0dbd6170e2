"""Arms of a block in turns, on a fake root: settings at start and steps, and what is left."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures import host
from fixtures.targets import _process
from fixtures.targets._turns import Block, OnMachine, TurnArm
from fixtures.terms import CellSpec, Order, Script
from fixtures.tweaks.local import Plan
from fixtures.workloads import load
from tests import fake_root
from tests.said import SPEAK
from tests.waiting import PATIENCE_S, alive, until

if TYPE_CHECKING:
    from tests.fake_root import FakeRoot

    Make = Callable[..., tuple[Block, dict[str, TurnArm]]]

SWAPPINESS = "/proc/sys/vm/swappiness"
# Two slices of two steps after one of warm-up. A step's samples are the swappiness that it sees,
# its tokens how many other processes run.
PROGRAM = """
from pathlib import Path
root, pids = Path("{root}"), Path("{pids}")
(pids / str(os.getpid())).touch()
def state(pid):
    try: return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
    except OSError: return "gone"
def running():
    rest = (one.name for one in pids.iterdir() if one.name != str(os.getpid()))
    return sum(state(pid) in "RSD" for pid in rest)
def others():
    for _ in range(200):  # a stopped one is seen to stand still once it would have had a CPU
        if not running(): return 0
        time.sleep(0.01)
    return running()
def timed(index):
    seen = int((root / "proc/sys/vm/swappiness").read_text())
    now_s = time.clock_gettime(time.CLOCK_MONOTONIC)
    step(index, start_monotonic_s=now_s, samples=seen, tokens=others())
ready()
timed(0)
for slice in (0, 1):
    say(event="pause", segment=slice)
    sys.stdin.readline()
    {meanwhile}
    timed(2 * slice + 1)
    timed(2 * slice + 2)
end()
"""

IS_TEN = "int((root / 'proc/sys/vm/swappiness').read_text()) == 10"


@pytest.fixture
def fake(tmp_path: Path) -> FakeRoot:
    return fake_root.make(tmp_path)


@pytest.fixture
def block(fake: FakeRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a block of arms by swappiness (None: stock); `meanwhile` is run as each slice begins."""
    (tmp_path / "pids").mkdir()

    def make(
        *,
        meanwhile: str = "pass",
        scripts: dict[str, Script] | None = None,
        on_round: Callable[[int, int], None] = lambda *_: None,
        mark: Callable[[int], None] = lambda _: None,
        number: int = 1,
        **arms: str | None,
    ) -> tuple[Block, dict[str, TurnArm]]:
        program = SPEAK + PROGRAM.format(
            root=fake.root, pids=tmp_path / "pids", meanwhile=meanwhile
        )
        command = (sys.executable, "-S", "-c", program)
        monkeypatch.setattr(_process, "running", partial(_process.running, program=command))
        order = Order(
            load("idle"),
            steps=4,
            warmup_steps=1,
            seed=1,
            slice_steps=2,
            start_timeout_s=PATIENCE_S,
            step_timeout_s=PATIENCE_S,
        )
        made = {
            name: TurnArm(
                CellSpec("study", "idle", name, number, order_in_run, 1),
                Plan(
                    writes=tuple(fake_root.writes([(SWAPPINESS, value)] if value else [])),
                    scripts=tuple(script for of, script in (scripts or {}).items() if of == name),
                ),
                order,
            )
            for order_in_run, (name, value) in enumerate(arms.items())
        }
        return Block(
            OnMachine(fake.machine(), tmp_path / "scratch", mark), list(made.values()), on_round
        ), made

    return make


def as_found(fake: FakeRoot) -> bool:
    return (fake.wrong(), fake.journal.exists()) == ({}, False)


def seen(arm: TurnArm) -> list[int]:
    """The swappiness of each step, that of warm-up first."""
    assert arm.result
    assert arm.result.error is None
    return [step.samples for step in arm.result.steps]


def test_each_step_and_start_runs_alone_under_its_own_settings(fake: FakeRoot, block: Make) -> None:
    measured, arms = block(stock=None, ten="10", twenty="20")
    measured.measure()
    assert {name: seen(arm) for name, arm in arms.items()} == {
        "stock": [60] * 5,
        "ten": [10] * 5,
        "twenty": [20] * 5,
    }
    assert {step.tokens for arm in arms.values() if arm.result for step in arm.result.steps} == {0}
    assert [(one.round, one.first, one.steps) for one in arms["ten"].slices] == [
        (1, 1, 2),
        (2, 3, 2),
    ]
    assert as_found(fake)


def test_whose_turn_it_is_is_marked_at_both_ends_of_its_slice(block: Make) -> None:
    """Samples between the marks are of that process alone; its windows are its slices' steps."""
    marks: list[tuple[float, int]] = []
    measured, arms = block(
        stock=None, ten="10", mark=lambda pid: marks.append((time.monotonic(), pid))
    )
    measured.measure()
    assert len(marks) == 2 * 4
    turns = defaultdict(list)
    for begun, over in zip(marks[::2], marks[1::2], strict=True):
        assert begun[1] == over[1]
        turns[begun[1]].append((begun[0], over[0]))
    for arm in arms.values():
        assert arm.result
        steps = arm.result.steps
        assert arm.windows == [
            (
                steps[first].start_monotonic_s,
                steps[first + 1].start_monotonic_s + steps[first + 1].wall_s,
            )
            for first in (1, 3)
        ]
        for window, turn in zip(arm.windows, turns[arm.pid], strict=True):
            assert turn[0] <= window[0] <= turn[1]


def test_settings_that_a_script_made_take_turns_as_values(fake: FakeRoot, block: Make) -> None:
    """It ran once, before the start; a file for the next boot is no value, so that arm fails."""
    value = fake.script("apply", f"echo 5 > $ROOT{SWAPPINESS}; echo ran >> $ROOT/../runs")
    file = fake.script("apply", "echo x > $ROOT/etc/sysctl.d/99-new.conf")
    measured, arms = block(stock=None, five=None, boot=None, scripts={"five": value, "boot": file})
    measured.measure()
    assert {name: seen(arms[name]) for name in ("stock", "five")} == {
        "stock": [60] * 5,
        "five": [5] * 5,
    }
    assert "is a file" in str(arms["boot"].result and arms["boot"].result.error)
    assert (fake.path / "runs").read_text() == "ran\n"
    assert as_found(fake)


@pytest.mark.parametrize(
    "meanwhile",
    ["sys.exit(3)", "os.kill(os.getpid(), signal.SIGKILL)", "os.write(1, b'garbage\\n')"],
)
def test_a_process_that_dies_in_its_slice_costs_itself_alone(
    fake: FakeRoot, block: Make, meanwhile: str
) -> None:
    only = f"if slice and {IS_TEN}: {meanwhile}"
    measured, arms = block(stock=None, ten="10", twenty="20", meanwhile=only)
    measured.measure()
    assert (seen(arms["stock"]), seen(arms["twenty"])) == ([60] * 5, [20] * 5)
    assert arms["ten"].result
    assert arms["ten"].result.error
    assert as_found(fake)


def test_no_arm_is_started_before_the_others_as_a_rule(block: Make) -> None:
    """Each arm, stock too, takes each place; every second block reverses the one before."""
    orders = [
        [arm.cell.tweakset for arm in block(number=n, stock=None, ten="10", twenty="20")[0].starts]
        for n in range(1, 41)
    ]
    assert orders[::2] == [names[::-1] for names in orders[1::2]]
    for place in range(3):
        assert {names[place] for names in orders} == {"stock", "ten", "twenty"}


def test_an_arm_that_memory_has_no_room_for_is_left_out(
    fake: FakeRoot, block: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first takes 100 of 500 MiB, others 75: 250 are left, over twice 100, and then 175."""
    # Asked before and after each start, and before a start that may be left out.
    free_mib = iter([500, 400, 400, 325, 325, 250, 250, 250, 175, 175])
    monkeypatch.setattr(host, "mem_available_bytes", lambda: next(free_mib) << 20)
    measured, arms = block(stock=None, again=None, one="10", two="20", three="30")
    for name in ("one", "three"):
        arms[name].waits_for_room = True
    measured.measure()
    left_out = {name for name, arm in arms.items() if arm.no_room}
    assert len(left_out) == 1
    assert left_out <= {"one", "three"}, "those that wait for room"
    assert "175 MiB of memory are left, but a process of this workload needs up to 100" in next(
        arm.no_room for arm in arms.values() if arm.no_room
    )
    assert all(seen(arm) for arm in arms.values() if not arm.no_room)
    assert as_found(fake)


def test_a_process_that_hangs_in_its_slice_is_given_up(fake: FakeRoot, block: Make) -> None:
    measured, arms = block(
        stock=None, ten="10", meanwhile=f"if slice and {IS_TEN}: time.sleep(600)"
    )
    arms["ten"].order = replace(arms["ten"].order, step_timeout_s=0.5)
    measured.measure()
    assert seen(arms["stock"]) == [60] * 5
    assert arms["ten"].result
    assert "Hung" in str(arms["ten"].result.error)
    assert as_found(fake)


def test_a_foreign_write_during_a_slice_fails_it_and_stays(fake: FakeRoot, block: Make) -> None:
    measured, arms = block(
        stock=None,
        ten="10",
        meanwhile="slice and (root / 'proc/sys/vm/swappiness').write_text('77')",
    )
    measured.measure()
    assert all(arm.result and "77" in str(arm.result.error) for arm in arms.values())
    assert (fake.get(SWAPPINESS), fake.journal.exists()) == ("77", False)


@pytest.mark.parametrize(("between", "within"), [("60", "77"), ("77", "60")])
def test_what_stands_beside_a_slice_is_read_at_both_of_its_ends(
    fake: FakeRoot, block: Make, between: str, within: str
) -> None:
    """Stock's last slice writes nothing: another sets the value in it, or before and back in it."""
    only = (
        f"slice and {IS_TEN} or slice and (root / 'proc/sys/vm/swappiness').write_text('{within}')"
    )
    measured, arms = block(
        stock=None, ten="10", meanwhile=only, on_round=lambda *_: fake.put(SWAPPINESS, between)
    )
    measured.measure()
    assert arms["stock"].result
    assert "77" in str(arms["stock"].result.error)


def test_a_set_that_the_kernel_refuses_costs_itself_alone(fake: FakeRoot, block: Make) -> None:
    measured, arms = block(stock=None, ten="10", gone="1")
    arms["gone"].plan = Plan(writes=tuple(fake_root.writes([("/proc/sys/vm/no_such", "1")])))
    measured.measure()
    assert (seen(arms["stock"]), seen(arms["ten"])) == ([60] * 5, [10] * 5)
    assert "no_such" in str(arms["gone"].result and arms["gone"].result.error)
    assert as_found(fake)


def test_an_interrupt_between_rounds_ends_processes_and_restores(
    fake: FakeRoot, block: Make, tmp_path: Path
) -> None:
    def interrupted(*_: int) -> None:
        raise KeyboardInterrupt

    measured, _ = block(stock=None, ten="10", on_round=interrupted)
    with pytest.raises(KeyboardInterrupt):
        measured.measure()
    assert [one.name for one in (tmp_path / "pids").iterdir() if alive(int(one.name))] == []
    assert as_found(fake)


@pytest.mark.parametrize("slice_number", [0, 1])
def test_kill_9_in_a_slice_is_put_back_from_the_journal(
    fake: FakeRoot, block: Make, tmp_path: Path, slice_number: int
) -> None:
    kill = (
        f"if slice == {slice_number} and {IS_TEN}: os.kill(os.getppid(), signal.SIGKILL); "
        "time.sleep(600)"
    )
    measured, _ = block(stock=None, ten="10", twenty="20", meanwhile=kill)
    child = os.fork()
    if child == 0:
        try:
            measured.measure()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert fake.get(SWAPPINESS) == "10"
    assert fake.machine().restore().back
    assert as_found(fake)
    until(
        lambda: not any(alive(int(one.name)) for one in (tmp_path / "pids").iterdir()),
        "a process goes on",
    )
