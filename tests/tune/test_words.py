"""The command line of `tune`: what tells one run from another, and what is begun."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.waiting import HOUSE

DIGEST = """
import sys
from fixtures import __main__
from fixtures.studies.command import tune_command
tune_command.Record.resumed = lambda path: sys.exit(path.name)
sys.exit(__main__.main())
"""


def record_of(folder: Path, *words: str) -> str:
    """The name of the record that `--resume` looks for, in a process of its own."""
    fixed = ["tune", "--tweaks=vm.swappiness=7+vm.page-cluster=5", f"--storage={folder}", "--resume", *words, "--", "program"]
    done = subprocess.run([sys.executable, "-c", DIGEST, *fixed], cwd=HOUSE, capture_output=True, text=True, check=False)
    return done.stderr.strip()


def test_the_same_command_goes_on_with_the_same_record_in_another_process(tmp_path: Path) -> None:
    first = record_of(tmp_path)
    assert first.startswith("program-")
    assert record_of(tmp_path, "--wait=1m") == first


def test_another_seed_budget_or_save_is_another_run(tmp_path: Path) -> None:
    names = {record_of(tmp_path, *words) for words in ([], ["--seed=2"], ["--budget=2h"], ["--min-gain=2"])}
    assert len(names) == 4
