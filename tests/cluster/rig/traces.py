"""A cluster's traces and their removal: processes, network, cgroups, folders, kernel settings.

Written so that it can be done by somebody else: a killed cluster's leftovers are cleared by the
next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from fixtures.kernel.tunables import Snapshot, Tunables, diff, is_config, sysctl_path
from tests.kernel_lock import kernel_held

from . import node, places
from .started import kill

if TYPE_CHECKING:
    from .places import Cluster

# Settings that are not as they were: path → (before, now).
Differing = Mapping[str, tuple[str | None, str | None]]

PATIENCE_S = 600
GONE_S = 30
# What kubelet and bridge plugin set for good; all else of the kernel's settings they leave alone
# (checked when a cluster has gone).
TAKEN = (
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.keys.root_maxkeys",
    "kernel.keys.root_maxbytes",
    "net.ipv4.ip_forward",
)
# What the kernel sets with ip_forward, each way.
FOLLOWING = ("/proc/sys/net/ipv4/conf/*/forwarding", "/proc/sys/net/ipv4/conf/*/accept_redirects")


@contextlib.contextmanager
def alive(cluster: Cluster) -> Iterator[int]:
    """Mark the cluster alive while this process, or an heir of the handle, holds the lock."""
    with (cluster.folder / "alive").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle.fileno()


def is_alive(cluster: Cluster) -> bool:
    try:
        with (cluster.folder / "alive").open() as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


@contextlib.contextmanager
def births() -> Iterator[None]:
    """Hold off clearing: a folder whose holder has not started yet looks like a dead cluster."""
    with (places.CLUSTERS / "births").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def clear_dead() -> list[Cluster]:
    if not places.CLUSTERS.is_dir():
        return []
    with births():
        found = [
            places.Cluster(folder)
            for folder in sorted(places.CLUSTERS.glob("*"))
            if folder.is_dir()
        ]
        dead = [cluster for cluster in found if not is_alive(cluster)]
        for cluster in dead:
            clear(cluster)
    return dead


def clear(cluster: Cluster) -> Differing:
    """Remove a cluster's traces; return settings that differ, path → (before, now)."""
    _kill_all(cluster)
    subprocess.run(["ip", "link", "delete", cluster.bridge], check=False, capture_output=True)
    for top in node.cgroups(cluster):
        _remove_cgroups(top)
    differing = put_back(cluster)
    _remove_folders(cluster)
    return differing


def remember(cluster: Cluster) -> None:
    """Write down the machine's settings, before the first program starts.

    Call it with the kernel held.

    Where another cluster is up, they are those before that one.
    """
    others = _others(cluster)
    text = others[0].before.read_text() if others else json.dumps(Tunables().snapshot())
    fresh = cluster.before.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.replace(cluster.before)


def put_back(cluster: Cluster) -> Differing:
    """Write back the settings that a cluster takes; return differences that others made.

    Where another cluster is up, that is left to it.
    """
    if not cluster.before.exists():
        return {}
    with kernel_held(PATIENCE_S):
        before: Snapshot = json.loads(cluster.before.read_text())
        differing: Differing = {}
        if not _others(cluster):
            following = [
                path for path in before if any(fnmatch(path, pattern) for pattern in FOLLOWING)
            ]
            for path in [*map(sysctl_path, TAKEN), *following]:
                if path in before and Tunables().read(path) not in (None, before[path]):
                    Path(path).write_text(before[path])
            # Network devices of others may have come or gone meanwhile; a configuration file may
            # not.
            found = diff(before, Tunables().snapshot())
            differing = {
                path: change
                for path, change in found.items()
                if None not in change or is_config(path)
            }
        cluster.before.unlink()
    return differing


def _others(cluster: Cluster) -> list[Cluster]:
    found = [
        places.Cluster(path.parent)
        for path in sorted(places.CLUSTERS.glob(f"*/{cluster.before.name}"))
    ]
    return [other for other in found if other != cluster and is_alive(other)]


def _kill_all(cluster: Cluster) -> None:
    # Twice and more: a shim that is killed may leave a container, a kubelet's probe may have just
    # begun.
    deadline = time.monotonic() + GONE_S
    while running := [*_marked(cluster), *_contained(cluster)]:
        for pid in running:
            kill(pid)
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"processes of the cluster in {cluster.folder} outlive SIGKILL by {GONE_S} s: "
                f"{running}. Are they in a disk's wait?"
            )
        time.sleep(0.05)


def _marked(cluster: Cluster) -> list[int]:
    """Programs and shims: the mark is in their environment. This process may have it too."""
    mark = f"{places.MARK}={cluster.folder}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                mark in (folder / "environ").read_bytes().split(b"\0")
                and int(folder.name) != os.getpid()
            ):
                found.append(int(folder.name))
    return found


def _contained(cluster: Cluster) -> list[int]:
    """Containers' processes: those in its cgroups."""
    found: set[int] = set()
    for top in node.cgroups(cluster):
        for members in top.glob("**/cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(int(pid) for pid in members.read_text().split())
    return sorted(found)


def _remove_cgroups(top: Path) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        deadline = time.monotonic() + GONE_S
        while True:
            try:
                Path(folder).rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:  # a killed process is not yet reaped
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def _remove_folders(cluster: Cluster) -> None:
    """Remove the cluster's folder and its mount points, unless others have put something there.

    Where another cluster is up, they are left to it: a mount point that is removed takes with it
    what others have mounted there.
    """
    made = cluster.folder / "made"
    folders = made.read_text().splitlines(keepends=True) if made.exists() else []
    with kernel_held(PATIENCE_S):
        if others := _others(cluster):
            with (others[0].folder / made.name).open("a") as sink:
                sink.writelines(folders)
        else:
            for folder in reversed(folders):
                with contextlib.suppress(OSError):
                    Path(folder.removesuffix("\n")).rmdir()
    mounted = [
        line
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
        if f" {cluster.folder}/" in line
    ]
    if mounted:  # what is mounted there may be anybody's
        raise RuntimeError(
            f"{cluster.folder} is not removed, something is mounted in it: {mounted}"
        )
    shutil.rmtree(cluster.folder)
