"""The process that holds a cluster: start, wait for the user's end, remove everything.

Whoever wants the cluster holds the other end of its standard input: when that closes, and be it by
SIGKILL, the cluster goes. `--until-told` waits for SIGTERM instead. The programs are started by a
second process (`keep`) in a mount namespace; this one is outside, where nothing of theirs is
mounted, and removes what they leave.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.kernel_lock import kernel_held

from . import control_plane, image, node, places, traces
from .started import Started

END_S = 90


def hold(folder: Path, *, until_told: bool) -> int:
    """Start a cluster, keep it and clear it away; 0 if it came up and went without a trace."""
    cluster = places.Cluster(folder)
    told = _signals()
    inside = subprocess.Popen(
        [
            "setpriv",
            "--pdeathsig",
            "TERM",
            "unshare",
            "--mount",
            sys.executable,
            "-m",
            "tests.cluster.rig",
            "inside",
            str(folder),
        ],
        stdin=subprocess.DEVNULL,
    )
    try:
        _wait([told] if until_told else [told, sys.stdin.fileno()])
    finally:
        code = _ended(inside)
        differing = traces.clear(cluster)
    for path, (before, now) in differing.items():
        print(f"{path}: was {before!r} before the cluster, is {now!r} after it", file=sys.stderr)
    return code or bool(differing)


def _signals() -> int:
    """Return a pipe for SIGTERM, SIGINT and ended programs; none interrupts the clean-up."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return read


def _wait(handles: list[int]) -> None:
    # Whatever a signal's pipe says is the end; of standard input it is the end of file.
    while True:
        ready = select.select(handles, [], [])[0]
        if handles[0] in ready or not os.read(ready[0], 1):
            return


def _ended(inside: subprocess.Popen[bytes]) -> int:
    inside.terminate()  # nothing, if it has ended
    try:
        return inside.wait(END_S)
    except subprocess.TimeoutExpired:
        inside.kill()
        return inside.wait()


# -- inside the mount namespace


def keep(folder: Path) -> int:
    cluster = places.Cluster(folder)
    os.environ[places.MARK] = str(folder)
    cluster.logs.mkdir(exist_ok=True)
    started = Started(cluster.logs, str(folder))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _start(cluster, started)
        while True:
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        # The kubelet first, lest it start again what is killed.
        for name in reversed(list(started.processes)):
            started.stop(name)


def _start(cluster: places.Cluster, started: Started) -> None:
    with kernel_held(traces.PATIENCE_S):
        traces.remember(cluster)
        node.cover(cluster)
        api = control_plane.start(cluster, started)
        node.start(cluster, started)
        started.wait(f"node {cluster.node}", lambda: node.ready(cluster, api))
        # The bridge plugin would set it with the first pod, in the middle of somebody's
        # measurement.
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    about = {
        "KUBECONFIG": str(cluster.kubeconfig),
        "DEEPTWEAK_RIG_NODE": cluster.node,
        "DEEPTWEAK_RIG_IMAGE": image.NAME,
        "DEEPTWEAK_RIG_OVERLAY": str(image.write_overlay(cluster.folder / "overlay.yaml")),
    }
    fresh = cluster.ready.with_suffix(".fresh")
    fresh.write_text(json.dumps(about))
    fresh.replace(cluster.ready)
