"""What tests need of the machine, in one place: `@pytest.mark.needs("root", "torch")`.

With CI set, a need that any CI machine can meet and that is not met fails the test instead of skipping it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from fixtures.gpu import compiler
from fixtures.io.dlio import installed
from tests.cluster.rig import kind, up
from tests.kernel_lock import kernel_lock, kernel_unchanged

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["kernel_lock", "kernel_unchanged"]  # fixtures

# No deadline: a test never judges time. With CI set, hypothesis itself draws the same examples every time.
if not os.environ.get("CI"):
    hypothesis.settings.register_profile("house", deadline=None)
    hypothesis.settings.load_profile("house")


def chromium() -> str | None:
    """The path of the browser that tests drive; None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)


def cluster() -> bool:
    """Is there a Kubernetes cluster, or can one be made here?"""
    return bool(os.environ.get("KUBECONFIG")) or not up.why_not() or kind.runs()


def dlio() -> bool:
    """Is there a DLIO that runs?"""
    try:
        installed.find()
    except installed.NoDlio:
        return False
    return True


def program(name: str) -> bool:
    """Is there a program of that name, on the path or in this Python's environment?"""
    return shutil.which(name) is not None or Path(sys.executable).with_name(name).exists()


def nvrtc() -> bool:
    """Is CUDA's compiler here? It needs no GPU; torch for CUDA brings it, torch for CPUs does not."""
    if compiler.missing():
        return False
    try:
        return bool(compiler.version())
    except (RuntimeError, OSError):
        return False


REFERENCE = Path(__file__).parents[2] / "shared" / "reference"
NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "root": (lambda: os.geteuid() == 0, "it changes the running kernel: run as root"),
    "torch": (lambda: importlib.util.find_spec("torch") is not None, "torch is not installed: `make test` installs it"),
    "cc": (lambda: shutil.which("cc") is not None, "it compiles a small C library: install a C compiler"),
    "go": (lambda: shutil.which("go") is not None, "actionlint is built with Go: install Go"),
    "unshare": (lambda: shutil.which("unshare") is not None, "it needs util-linux's unshare"),
    "chromium": (lambda: chromium() is not None, "it opens a page in a browser: install Chromium, or `make test` with CI set and as root"),
    "reference": (REFERENCE.is_dir, f"it reads other people's data, which is not here ({REFERENCE})"),
    "cluster": (cluster, f"it needs a Kubernetes cluster: set KUBECONFIG, or install kind and Docker. {up.why_not()}"),
    "dlio": (dlio, f"it runs DLIO itself: install dlio-benchmark in an environment of its own and put its path into {installed.VARIABLE}"),
    "psutil": (lambda: importlib.util.find_spec("psutil") is not None, "psutil is not installed: `make test` installs it"),
    "py-spy": (lambda: program("py-spy"), "py-spy is not installed: `make test` installs it"),
    "perf": (lambda: program("perf"), "it runs perf: apt-get install linux-perf, or `make test` with CI set and as root"),
    "top": (lambda: program("top"), "it runs top: apt-get install procps, or `make test` with CI set and as root"),
    "nsys": (lambda: program("nsys"), "it runs NVIDIA Nsight Systems"),
    "ncu": (lambda: program("ncu"), "it runs NVIDIA Nsight Compute"),
    "dcgmi": (lambda: program("dcgmi"), "it runs NVIDIA DCGM"),
    "nvidia-smi": (lambda: program("nvidia-smi"), "it runs nvidia-smi: it needs NVIDIA's driver"),
    "nvrtc": (nvrtc, "it compiles a CUDA kernel: install torch for CUDA, or cuda-bindings and nvidia-cuda-nvrtc"),
    "gpu": (lambda: Path("/proc/driver/nvidia/version").exists(), "it needs an NVIDIA GPU"),
}
# What a CI machine may lack: data that must not be copied, an installation of gigabytes that nothing else needs, and hardware.
MAY_LACK = {"reference", "dlio", "nvrtc", "gpu", "nsys", "ncu", "dcgmi", "nvidia-smi"}


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
