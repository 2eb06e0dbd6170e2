"""The programs beside a workload, the real ones: py-spy, perf stat, perf record."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.kernel import probes
from fixtures.monitors.catalogue.system import EVENTS, PerfRecord
from fixtures.monitors.monitor import load
from tests.monitors import stand_ins
from tests.monitors.watched import watch

py_spy, perf_stat, perf_record = map(load, ("py_spy", "perf_stat", "perf_record"))


@pytest.mark.needs("root", "py-spy")
def test_py_spy_finds_where_the_workload_is(tmp_path: Path) -> None:
    """100 per second over at least 0.5 CPU s: 50 samples; a loaded machine may lose most."""
    done = watch("py_spy", tmp_path)
    assert done.ended_as_asked
    stacks = [line.rsplit(" ", 1) for line in done.lines("profile.txt")]
    taken = sum(int(count) for _, count in stacks)
    assert py_spy.samples(tmp_path) == taken > 5
    assert sum(int(count) for stack, count in stacks if "squares" in stack) > taken / 2


@pytest.mark.needs("root", "perf")
def test_perf_stat_counts_the_workloads_events_per_interval(tmp_path: Path) -> None:
    done = watch(
        "perf_stat:interval_s=0.1", tmp_path, lambda folder: (perf_stat.samples(folder) or 0) >= 3
    )
    assert done.ended_as_asked
    rows = [
        line.strip().split(",")
        for line in done.lines("counts.csv")
        if line and not line.startswith("#")
    ]
    assert [row[3] for row in rows[:4]] == EVENTS.split(",")
    clock_s = [float(row[1]) / 1000 for row in rows if row[3] == "task-clock"]
    assert perf_stat.samples(tmp_path) == len(clock_s) >= 3
    # Within the tick of /proc that the workload's own account has, and what it did while perf was
    # being started and ended.
    assert sum(clock_s) > 0.4


def test_an_unprivileged_perf_would_count_zero_and_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With kernel.perf_event_paranoid=2, perf 6.1 counts `context-switches:u`, always 0."""
    stand_ins.put(tmp_path / "bin", monkeypatch, perf="")
    monkeypatch.setattr(probes, "perf_events", lambda highest, what: f"{highest} {what}")
    assert perf_stat.unavailable_reason() == "1 count kernel events"


@pytest.mark.needs("root", "perf")
def test_perf_record_writes_samples_that_perf_can_read(tmp_path: Path) -> None:
    """99 per second over 0.5 CPU s: 49, less those that it may miss at its start and end."""
    done = watch("perf_record", tmp_path)
    assert done.ended_as_asked
    taken = perf_record.samples(tmp_path)
    assert taken is not None
    assert taken > 30
    assert taken < 99 * done.cpu_s * 2 + 20  # not at another rate than its name says
    shown = ["perf", "script", "-i", str(tmp_path / "perf.data"), "-F", "pid"]
    pids = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split()
    assert (len(pids), set(pids)) == (taken, {str(done.pid)})


@pytest.mark.needs("root", "perf")
def test_a_rate_that_the_kernel_does_not_give_is_a_reason() -> None:
    """Not throttled: then the arm's name would say another rate than was run."""
    most = int(Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text())
    why = PerfRecord("", {"hz": most + 1}).unavailable_reason()
    assert why is not None
    assert "kernel.perf_event_max_sample_rate" in why
    assert perf_record.unavailable_reason() is None


def test_counts_of_perf_record_are_read_in_both_of_its_wordings(tmp_path: Path) -> None:
    """Of older ones the count is a guess, and said to be one."""
    for said in ("0.009 MB perf.data (196 samples)", "0.009 MB perf.data (~196 samples)"):
        (tmp_path / "stderr").write_text(
            f"Events enabled\n[ perf record: Captured and wrote {said} ]\n"
        )
        assert perf_record.samples(tmp_path) == 196
    (tmp_path / "stderr").write_text(
        "Events enabled\n[ perf record: Captured and wrote 0.000 MB perf.data ]\n"
    )
    assert perf_record.samples(tmp_path) == 0
    (tmp_path / "stderr").write_text("Events enabled\n[ perf record: Captured and wro")
    assert perf_record.samples(tmp_path) is None
