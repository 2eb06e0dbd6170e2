"""Whose CPU time passes for others' while an arm has its turn."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.kernel.machine import Machine
from fixtures.kernel.turns import Roster
from tests.fake_root import make


@pytest.fixture
def pid() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process.pid
    process.kill()
    process.wait()


class Clock:
    """Stands in for the clocks of all processes: each look at it finds so much more."""

    def __init__(self, each_s: float) -> None:
        self.each_s, self.read_s = each_s, 0.0

    def refresh(self) -> None:
        pass

    def clock_s(self, _: int) -> float:
        self.read_s += self.each_s
        return self.read_s


@pytest.mark.parametrize(
    ("each_s", "told_s"), [(0.01, 0.01), (-1.0, 0.0), (1000.0 * (os.cpu_count() or 1), None)]
)
def test_more_than_the_cpus_have_was_not_seen(
    each_s: float, told_s: float | None, pid: int, tmp_path: Path
) -> None:
    """A process that ended would add all that it ever used: a figure no saved run may hold."""
    roster = Roster(Machine(make(tmp_path / "root").path, tmp_path / "state"), lambda _: None)
    roster._others = Clock(each_s)  # type: ignore[assignment]
    roster.settings_of("one")
    roster.join("one", pid)
    roster.begin_turn("one")
    assert roster.end_turn("one") == (told_s if told_s is None else pytest.approx(told_s))
    roster.close()
