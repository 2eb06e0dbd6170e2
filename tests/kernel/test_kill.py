"""kill -9 at random moments: the next run puts back everything, each time."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from fixtures.kernel.lock import LENT
from tests.kernel.killed_runs import ROUNDS, alone
from tests.sessions import HOUSE


def kill(
    where: str, folder: Path, times: int, machinery: str = "kills", before: Sequence[str] = ()
) -> None:
    """All of them, from a process of its own."""
    command = [
        *before,
        sys.executable,
        "-m",
        f"tests.kernel.{machinery}",
        where,
        str(folder),
        str(times),
    ]
    done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("times", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_kills_on_a_fake_root(tmp_path: Path, times: int) -> None:
    """Typed settings, and scripts with an undo that change settings and files below /etc."""
    kill("fake_root", tmp_path, times)


@pytest.mark.usefixtures("kernel_unchanged")
def test_two_hundred_kills_on_the_real_kernel(tmp_path: Path) -> None:
    """Twenty sysctls, and scripts (THP, read-ahead); compare the whole machine after each kill."""
    kill("real_kernel", tmp_path, 200)


@pytest.mark.needs("session", "root", "namespaces", "psutil")
@pytest.mark.usefixtures("kernel_unchanged")
@pytest.mark.parametrize("kind", ROUNDS)
def test_killed_runs_on_the_real_kernel(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LENT, str(os.getpid()))
    # Where another user can read.
    with tempfile.TemporaryDirectory() as folder, alone(kind) as before:
        Path(folder).chmod(0o755)
        kill(kind, Path(folder), ROUNDS[kind][0], "killed_runs", before)


def test_two_hundred_runs_are_killed_in_all() -> None:
    assert sum(times for times, _ in ROUNDS.values()) >= 200
