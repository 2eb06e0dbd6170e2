"""kill -9 at random moments: the next run puts back everything, each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sessions import HOUSE


def kill(where: str, folder: Path, times: int) -> None:
    """All of them, from a process of its own."""
    command = [sys.executable, "-m", "tests.kernel.kills", where, str(folder), str(times)]
    done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("times", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_kills_on_a_fake_root(tmp_path: Path, times: int) -> None:
    """Typed settings, and scripts with an undo of their own that change settings and files below /etc."""
    kill("fake_root", tmp_path, times)


@pytest.mark.usefixtures("kernel_unchanged")
def test_two_hundred_kills_on_the_real_kernel(tmp_path: Path) -> None:
    """Twenty sysctls, and scripts that switch transparent huge pages and read-ahead; the whole machine is compared after each kill."""
    kill("real_kernel", tmp_path, 200)
