"""All tests in two processes: `python -m tests.side_by_side`, with pytest's options. `make test` runs them so.

Those of this machine's kernel, and of a cluster on it, run one after the other and wait for most of the time. Beside them run those that
leave the machine alone; what these say is shown when the others are over. A path among the options runs that alone, as pytest does.

With CI set, a few that failed are run once more when nothing else runs, and those that pass then are named: a machine that others share may
have failed, not the code. Not so where putting back is at stake: there one failure in many is a failure.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

HOUSE = Path(__file__).parents[1]
# Whole folders and files that neither read nor change settings of this kernel, nor take its lock. What is not named here has it to itself.
BESIDE = (
    "tests/analysis",
    "tests/designs",
    "tests/gpu",
    "tests/io",
    "tests/jobs/test_arrivals.py",
    "tests/jobs/test_arrivals_command.py",
    "tests/jobs/test_classes.py",
    "tests/jobs/test_dispatcher.py",
    "tests/jobs/test_engine.py",
    "tests/jobs/test_faults.py",
    "tests/jobs/test_federated.py",
    "tests/jobs/test_fltk.py",
    "tests/jobs/test_job_stream.py",
    "tests/jobs/test_kubernetes_life.py",
    "tests/jobs/test_kubernetes_settings.py",
    "tests/jobs/test_learning_kinds.py",
    "tests/jobs/test_pod.py",
    "tests/jobs/test_scaled.py",
    "tests/jobs/test_stream.py",
    "tests/monitors",
    "tests/power",
    "tests/targets",
    "tests/tweaks",
    "tests/workloads",
    "tests/test_action.py",
    "tests/test_adaptive_endings.py",
    "tests/test_design_endings.py",
    "tests/test_design_sessions.py",
    "tests/test_spread.py",
    "tests/test_style.py",
    "tests/test_variant_sessions.py",
)
# More are not the machine's fault.
FEW = 4
# Words in the name of a test, or of its file, whose failure counts though it may not come again: crashes are at random moments.
COUNTS = re.compile(r"kill|restor|put_back|journal|recover|crash")
CACHES = {False: ".pytest_cache", True: ".pytest_cache/beside"}  # what failed last is each half's own


def main(options: Sequence[str]) -> int:
    """Returns: pytest's exit status; where both have something to tell, that of the worse."""
    command = [sys.executable, "-m", "pytest", *options]
    code = side_by_side(command, options)
    if code == pytest.ExitCode.TESTS_FAILED and os.environ.get("CI"):
        failed = [one for cache in CACHES.values() for one in last_failed(HOUSE / cache)]
        if worth_another_look(failed):
            return again(command, failed)
    return code


def last_failed(cache: Path) -> list[str]:
    """The tests that pytest's cache has as failed."""
    try:
        found: dict[str, bool] = json.loads((cache / "v/cache/lastfailed").read_text())
    except (OSError, ValueError):
        return []
    return list(found)


def worth_another_look(failed: Sequence[str]) -> bool:
    """May it have been the machine?"""
    return 0 < len(failed) <= FEW and all("::" in one and not COUNTS.search(one) for one in failed)


def again(command: Sequence[str], failed: Sequence[str]) -> int:
    """Run these tests, nothing beside them. Returns: pytest's exit status."""
    print("\nFailed, and run once more by themselves:", *failed, sep="\n  ", flush=True)
    code = subprocess.run([*command, *failed], cwd=HOUSE, check=False).returncode
    if code == pytest.ExitCode.OK:
        print("UNSTEADY: these failed, and passed when nothing ran beside them:", *failed, sep="\n  ", flush=True)
    return code


def side_by_side(command: Sequence[str], options: Sequence[str]) -> int:
    """Run both halves, or the paths that were asked for. Returns: pytest's exit status, that of the worse."""
    # A shell that starts this in the background has it ignored, and what ignores Ctrl-C from its start cannot test it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryFile() as said:
        if any((HOUSE / option.partition("::")[0]).exists() for option in options):
            beside = None
            alone = subprocess.Popen(command, cwd=HOUSE)
        else:
            notes = ["-o", f"cache_dir={CACHES[True]}"]
            beside = subprocess.Popen([*command, *notes, *BESIDE], cwd=HOUSE, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            alone = subprocess.Popen([*command, *(f"--ignore={one}" for one in BESIDE)], cwd=HOUSE)
        # Ctrl-C comes to both from the terminal. They end when they have put back what they changed: nobody may leave before them.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = alone.wait()
        if beside is None:
            return code
        print("\nBeside these, in a process of their own:", flush=True)
        return worse(code, shown(beside, said.fileno()))


def worse(one: int, other: int) -> int:
    """Of two exit statuses of pytest the one that a caller must hear of: one half may well have none of the tests that were asked for."""
    bad = {one, other} - {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    return max(bad) if bad else min(one, other)


def shown(process: subprocess.Popen[bytes], said: int) -> int:
    """Show what a process says, from its first word to its end. Returns: its exit status."""
    at = 0
    while True:
        code = process.poll()
        while block := os.pread(said, 65536, at):
            os.write(sys.stdout.fileno(), block)
            at += len(block)
        if code is not None:
            return code
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
