"""The command line of `tune`: what tells one run from another, and what is begun."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HOUSE

DIGEST = """
import sys
from fixtures import __main__
from fixtures.studies.command import tune_command
tune_command.resumed = lambda path: sys.exit(path.name)
sys.exit(__main__.main())
"""
SETTINGS = "--tweaks=vm.swappiness=7+vm.page-cluster=5"
FULL = """
import errno, sys
from fixtures import __main__
from fixtures.studies.command import tune_command
def write(*_):
    raise OSError(errno.ENOSPC, "No space left on device")
tune_command._of_command = lambda *_: ([], 0.1)
tune_command.Race.save = write
sys.exit(__main__.main())
"""


def called(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Call `tune` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, "tune", *words],
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=False,
    )


def record_of(folder: Path, *words: str) -> str:
    """The name of the record that `--resume` looks for."""
    fixed = [SETTINGS, f"--storage={folder}", "--resume", *words, "--", "program"]
    return called(DIGEST, *fixed).stderr.strip()


@pytest.mark.parametrize(
    "option", ["--steps=5", "--step-regex=x", "--runs", "--env=A=1", "--timeout=7"]
)
def test_an_option_of_a_command_is_refused_beside_a_workload(option: str) -> None:
    done = called(DIGEST, SETTINGS, "--workload=cnn_train", "--plan", option)
    assert done.returncode == 2
    assert option.partition("=")[0] in done.stderr


def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    done = called(FULL, SETTINGS, f"--storage={tmp_path}", "--", "program")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {tmp_path}")
    assert "No space left" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert (tmp_path / "tune").is_dir()


def test_the_same_command_continues_the_same_record(tmp_path: Path) -> None:
    first = record_of(tmp_path)
    assert first.startswith("program-")
    assert record_of(tmp_path, "--wait=1m") == first


def test_another_seed_budget_or_save_is_another_run(tmp_path: Path) -> None:
    names = {
        record_of(tmp_path, *words)
        for words in ([], ["--seed=2"], ["--budget=2h"], ["--min-gain=2"])
    }
    assert len(names) == 4


@pytest.mark.parametrize("name", ["a/b", "../a", "a*", " "])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    done = called(
        DIGEST, SETTINGS, f"--storage={tmp_path}", f"--save={name}", "--plan", "--", "program"
    )
    assert done.returncode == 2
    assert "--save=" in done.stderr
