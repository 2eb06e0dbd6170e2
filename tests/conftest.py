"""What tests need of the machine, in one place: `@pytest.mark.needs("root", "torch")`.

With CI set, a need that any CI machine can meet and that is not met fails the test instead of skipping it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.kernel_lock import kernel_lock, kernel_unchanged

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["kernel_lock", "kernel_unchanged"]  # fixtures

# No deadline: a test never judges time. With CI set, hypothesis itself draws the same examples every time.
if not os.environ.get("CI"):
    hypothesis.settings.register_profile("house", deadline=None)
    hypothesis.settings.load_profile("house")

REFERENCE = Path(__file__).parents[2] / "shared" / "reference"
NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "root": (lambda: os.geteuid() == 0, "it changes the running kernel: run as root"),
    "torch": (lambda: importlib.util.find_spec("torch") is not None, "torch is not installed: `make test` installs it"),
    "cc": (lambda: shutil.which("cc") is not None, "it compiles a small C library: install a C compiler"),
    "go": (lambda: shutil.which("go") is not None, "actionlint is built with Go: install Go"),
    "unshare": (lambda: shutil.which("unshare") is not None, "it needs util-linux's unshare"),
    "reference": (REFERENCE.is_dir, f"it reads other people's data, which is not here ({REFERENCE})"),
    "gpu": (lambda: Path("/proc/driver/nvidia/version").exists(), "it needs an NVIDIA GPU"),
}
# What a CI machine may lack: data that must not be copied, and hardware.
MAY_LACK = {"reference", "gpu"}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or in CI fail, a test whose needs are not met."""
    for marker in item.iter_markers("needs"):
        for need in marker.args:
            met, reason = NEEDS[need]
            if met():
                continue
            if os.environ.get("CI") and need not in MAY_LACK:
                pytest.fail(f"not skipped in CI: {reason}", pytrace=False)
            pytest.skip(reason)
