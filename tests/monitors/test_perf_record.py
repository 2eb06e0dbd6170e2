"""perf record, the real one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.studies.monitors.catalogue.system import PerfRecord
from fixtures.studies.monitors.monitor import load
from tests.monitors.watched import watch

perf_record = load("perf_record")


@pytest.mark.needs("root", "perf")
def test_it_samples_the_workload_into_a_file_that_perf_reads(tmp_path: Path) -> None:
    """99 a second of CPU time, and there is half a second of it: 49, of which it may miss those at its start and its end."""
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


def test_counts_are_read_in_both_of_its_wordings(tmp_path: Path) -> None:
    """Of older ones the count is a guess, and said to be one."""
    for said in ("0.009 MB perf.data (196 samples)", "0.009 MB perf.data (~196 samples)"):
        (tmp_path / "stderr").write_text(f"Events enabled\n[ perf record: Captured and wrote {said} ]\n")
        assert perf_record.samples(tmp_path) == 196
    (tmp_path / "stderr").write_text("Events enabled\n[ perf record: Captured and wrote 0.000 MB perf.data ]\n")
    assert perf_record.samples(tmp_path) == 0
    (tmp_path / "stderr").write_text("Events enabled\n[ perf record: Captured and wro")
    assert perf_record.samples(tmp_path) is None
