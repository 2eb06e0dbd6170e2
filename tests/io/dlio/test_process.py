"""DLIO's processes: what they said is told, and none of them outlives who started it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.studies.io.dlio_engine import Process
from fixtures.terms import Refused
from tests.sessions import HOUSE
from tests.waiting import alive, until

START = """
import sys, time
from pathlib import Path
from fixtures.studies.io.dlio_engine import Process
process = Process([sys.executable, "-c", "import time; time.sleep(900)"], Path(sys.argv[1]))
print(process.pid, flush=True)
time.sleep(900)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_rank_that_outlives_mpirun_ends_with_the_harness(
    number: signal.Signals, tmp_path: Path
) -> None:
    """In a session of its own, as mpirun's ranks in groups of their own, it ignores SIGTERM."""
    rank = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', "
        "flush=True); time.sleep(900)"
    )
    mpirun = (
        f"import subprocess, sys, time; print(subprocess.Popen([sys.executable, '-c', {rank!r}], "
        "start_new_session=True).pid); "
    )
    mpirun += "sys.stdout.flush(); time.sleep(900)"
    start = START.replace('"import time; time.sleep(900)"', repr(mpirun))
    starter = subprocess.Popen(
        [sys.executable, "-c", start, str(tmp_path)], cwd=HOUSE, stdout=subprocess.DEVNULL
    )
    said = tmp_path / "output.txt"
    until(lambda: said.exists() and len(said.read_text().split()) == 2)
    (pid,) = (int(word) for word in said.read_text().split() if word.isdecimal())
    starter.send_signal(number)
    starter.wait()
    until(lambda: not alive(pid))


def test_a_reader_that_its_rank_has_left_behind_is_ended_too(tmp_path: Path) -> None:
    """As torch's do, which look for their parent every five seconds only."""
    orphan = (
        "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; "
        "time.sleep(99)'], start_new_session=True).pid)"
    )
    process = Process([sys.executable, "-c", orphan], tmp_path)
    until(lambda: process.ended() is not None)
    pid = int((tmp_path / "output.txt").read_text())
    assert alive(pid)
    process.close()
    until(lambda: not alive(pid))


def test_the_error_line_is_named_and_the_last_lines_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = (
        "print('warming up'); raise RuntimeError('DataLoader worker (pid 7) exited unexpectedly')"
    )
    process = Process([sys.executable, "-c", said], tmp_path)
    until(lambda: process.ended() is not None)
    with pytest.raises(Refused) as refused:
        process.must_have_ended_well()
    process.close()
    assert str(refused.value) == (
        "DLIO failed (mpirun ended with exit code 1). Its output: RuntimeError: DataLoader worker "
        "(pid 7) exited unexpectedly"
    )
    assert "warming up" in capsys.readouterr().err
