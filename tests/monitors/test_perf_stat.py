"""perf stat, the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.node import probes
from fixtures.studies.monitors.catalogue.system import EVENTS
from fixtures.studies.monitors.monitor import load
from tests.monitors import stand_ins
from tests.monitors.watched import watch

if TYPE_CHECKING:
    from pathlib import Path


perf_stat = load("perf_stat")


@pytest.mark.needs("root", "perf")
def test_it_counts_what_the_workload_does_reading_by_reading(tmp_path: Path) -> None:
    done = watch("perf_stat:interval_s=0.1", tmp_path, lambda folder: (perf_stat.samples(folder) or 0) >= 3)
    assert done.ended_as_asked
    rows = [line.strip().split(",") for line in done.lines("counts.csv") if line and not line.startswith("#")]
    assert [row[3] for row in rows[:4]] == EVENTS.split(",")
    clock_s = [float(row[1]) / 1000 for row in rows if row[3] == "task-clock"]
    assert perf_stat.samples(tmp_path) == len(clock_s) >= 3
    # Within the tick of /proc that the workload's own account has, and what it did while perf was being started and ended.
    assert sum(clock_s) > 0.4


@pytest.mark.needs("root", "perf")
def test_it_runs_here_and_says_its_version() -> None:
    assert perf_stat.unavailable_reason() is None
    assert (perf_stat.version() or "").startswith("perf version ")


@pytest.mark.needs("root")
def test_events_that_the_kernel_does_not_give_are_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for perf in a machine where they are not supported: it ends well and says so line by line."""
    stand_ins.put(tmp_path / "bin", monkeypatch, perf="print('<not supported>,msec,task-clock,0,100.00,,')")
    assert perf_stat.unavailable_reason() == "perf cannot count here: <not supported>,msec,task-clock,0,100.00,,"


def test_an_unprivileged_perf_would_count_zero_and_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With kernel.perf_event_paranoid=2 perf counts `context-switches:u`, which is always 0: seen with perf 6.1."""
    stand_ins.put(tmp_path / "bin", monkeypatch, perf="")
    monkeypatch.setattr(probes, "perf_events", lambda highest, what: f"{highest} {what}")
    assert perf_stat.unavailable_reason() == "1 count what happens in the kernel"
