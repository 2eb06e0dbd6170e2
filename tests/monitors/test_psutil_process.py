"""psutil from outside: the columns of the thread inside, at a rate of its own."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from fixtures.studies.monitors.monitor import load
from fixtures.studies.monitors.psutil_alone import COLUMNS
from tests.monitors.watched import watch

psutil_process = load("psutil_process")
pytestmark = pytest.mark.needs("psutil")


def test_it_writes_a_line_a_sample_of_the_workload(tmp_path: Path) -> None:
    done = watch("psutil_process:interval_s=0.02", tmp_path, lambda folder: (psutil_process.samples(folder) or 0) > 10)
    assert (done.code, done.lines("stderr")) == (0, [])
    header, *rows = [line.split(",") for line in done.lines()]
    assert tuple(header) == COLUMNS
    assert psutil_process.samples(tmp_path) == len(rows) > 10
    table = [dict(zip(header, map(float, row), strict=True)) for row in rows]
    assert all(earlier["monotonic_s"] < later["monotonic_s"] for earlier, later in pairwise(table))
    # psutil's first percentage is 0, for want of one before. A process that only computes is seen doing so, and has its memory.
    assert max(row["process_cpu_percent"] for row in table) > 10
    assert all(1e6 < row["process_rss_bytes"] < 1e9 for row in table)


def test_a_workload_that_is_not_there_is_said(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    command = psutil_process.command(gone.pid, tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert str(gone.pid) in done.stderr
    assert "Traceback" not in done.stderr


def test_half_a_line_is_no_sample(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("a,b\n1,2\n3,")
    assert psutil_process.samples(tmp_path) == 1


def test_it_is_that_of_this_python() -> None:
    assert psutil_process.unavailable_reason() is None
    said = subprocess.run([sys.executable, "-c", "import psutil; print(psutil.__version__)"], capture_output=True, text=True, check=True)
    assert psutil_process.version() == said.stdout.strip()
