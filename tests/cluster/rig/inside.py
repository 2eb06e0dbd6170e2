"""The programs of a cluster, started and stopped in a mount namespace of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.kernel_lock import kernel_held

from . import control_plane, image, node, places, traces
from .started import Started


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
        # The bridge plugin would set it with the first pod, in the middle of somebody's measurement.
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
