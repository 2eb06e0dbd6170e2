"""Needs that a test has of the machine, whether they are met, and the tier for such a test.

A test says it by a mark, `@pytest.mark.needs("torch")`; a fixture, which is where most needs arise,
by `@requires("kernel")` below `@pytest.fixture`: every test that takes it, directly or not, then
has that need. A test without needs runs in `make test`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    import pytest

Tier = Literal["quick", "machine", "cluster"]
Fixture = TypeVar("Fixture", bound=Callable[..., Any])
TIERS: dict[Tier, str] = {
    "quick": "make test",
    "machine": "make test-machine",
    "cluster": "make test-cluster",
}
REFERENCE = Path(__file__).parents[2] / "shared" / "reference"
_DECLARED = "needs"
tier_now: Tier = "quick"  # that of the test that runs


@dataclass(frozen=True)
class Need:
    """`unavailable_reason` answers None where the machine has it.

    What is `installable` must not be missing where CI is set.
    """

    unavailable_reason: Callable[[], str | None]
    tier: Tier = "machine"
    installable: bool = False


def _module(name: str, extra: str = "workloads") -> Need:
    def reason() -> str | None:
        return (
            None
            if importlib.util.find_spec(name)
            else f"{name} is not installed: pip install -e '.[{extra}]'"
        )

    return Need(reason, installable=True)


def _program(name: str, package: str, *, installable: bool = False) -> Need:
    def reason() -> str | None:
        there = shutil.which(name) or Path(sys.executable).with_name(name).exists()
        return None if there else f"{name} is not installed: {package}"

    return Need(reason, installable=installable)


def chromium() -> str | None:
    """The path of the browser that tests drive; None where there is none."""
    return next(
        filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None
    )


@cache
def _cluster(*, forbidden: bool) -> str | None:
    # Asked only where a test on a cluster is about to run.
    from tests.cluster.rig import up

    if os.environ.get("KUBECONFIG"):
        return None
    reason = up.forbidden() if forbidden else up.why_not()
    return f"no cluster: set KUBECONFIG. {reason}" if reason else None


def _dlio() -> str | None:
    from fixtures.studies.io import dlio

    try:
        dlio.find()
    except dlio.NoDlio:
        return (
            "DLIO is not installed: put dlio-benchmark into an environment of its own and its "
            f"path in {dlio.VARIABLE}"
        )
    return None


def _nvrtc() -> str | None:
    from fixtures.studies.gpu import device

    try:
        there = not device.unavailable_reason() and bool(device.compiler_version())
    except (RuntimeError, OSError):
        there = False
    return (
        None
        if there
        else "NVRTC is not installed: install torch for CUDA, or cuda-bindings and "
        "nvidia-cuda-nvrtc"
    )


def _others() -> str | None:
    from fixtures.telemetry.others import Others

    try:
        Others()
    except OSError as error:
        return str(error)
    return None


def _probe(name: str, *arguments: str) -> str | None:
    from fixtures.kernel import probes

    reason: str | None = getattr(probes, name)(*arguments)
    return reason


NEEDS: dict[str, Need] = {
    "reference": Need(
        lambda: None if REFERENCE.is_dir() else f"other people's data are not here ({REFERENCE})",
        tier="quick",
    ),
    "others": Need(_others, tier="quick"),
    "session": Need(lambda: None),
    "kernel": Need(lambda: _probe("write", "/proc/sys/vm/swappiness")),
    "root": Need(lambda: _probe("capability", "SYS_ADMIN")),
    "namespaces": Need(lambda: _probe("mount") or _probe("namespace", "net")),
    "cgroups": Need(lambda: _probe("cgroup") or _probe("cgroup", "memory")),
    "rights of a cluster": Need(lambda: _cluster(forbidden=True), tier="cluster"),
    "cluster": Need(lambda: _cluster(forbidden=False), tier="cluster", installable=True),
    "torch": _module("torch"),
    "h5py": _module("h5py"),
    "tfrecord": _module("tfrecord"),
    "psutil": _module("psutil", "monitors"),
    "shtab": replace(_module("shtab", "test"), tier="quick"),
    "nbclient": _module("nbclient", "dev"),
    "py-spy": _program("py-spy", "pip install -e '.[monitors]'", installable=True),
    "cc": _program("cc", "apt-get install gcc", installable=True),
    "fish": _program("fish", "apt-get install fish"),
    "zsh": _program("zsh", "apt-get install zsh"),
    "ip": _program("ip", "apt-get install iproute2", installable=True),
    "unshare": _program("unshare", "apt-get install util-linux", installable=True),
    "perf": _program("perf", "apt-get install linux-perf", installable=True),
    "chromium": Need(
        lambda: None if chromium() else "no Chromium: apt-get install chromium", installable=True
    ),
    "dlio": Need(_dlio),
    "nvrtc": Need(_nvrtc),
    "nsys": _program("nsys", "NVIDIA Nsight Systems"),
    "ncu": _program("ncu", "NVIDIA Nsight Compute"),
    "dcgmi": _program("dcgmi", "NVIDIA DCGM"),
    "nvidia-smi": _program("nvidia-smi", "NVIDIA's driver"),
    "gpu": Need(lambda: None if Path("/proc/driver/nvidia/version").exists() else "no NVIDIA GPU"),
}


def requires(*names: str) -> Callable[[Fixture], Fixture]:
    """Declare what a fixture needs. Stands below `@pytest.fixture`, which takes no marks."""
    assert not (unknown := set(names) - NEEDS.keys()), f"unknown needs: {unknown}"

    def declare(function: Fixture) -> Fixture:
        setattr(function, _DECLARED, names)
        return function

    return declare


def needs_of(item: pytest.Item) -> dict[str, None]:
    """Everything that a test needs, by its own marks and by its fixtures, in that order."""
    found = dict.fromkeys(name for mark in item.iter_markers("needs") for name in mark.args)
    definitions = getattr(item, "_fixtureinfo", None)
    for fixtures in definitions.name2fixturedefs.values() if definitions else ():
        found |= dict.fromkeys(
            name for one in fixtures[-1:] for name in getattr(one.func, _DECLARED, ())
        )
    return found
