"""Simulated nodes by KWOK: ordinary nodes to the API server, whose pods start, end, run nothing.

KWOK's own stages are in force: a pod runs as soon as it is bound, one of a Job succeeds at once. It
needs Go to be built, and nothing else of this machine, so it serves any cluster.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from . import clients, programs
from .started import Started, free_port

if TYPE_CHECKING:
    from .clients import Client

OURS = "kwok.x-k8s.io/node"
PATIENCE_S = 120


@contextlib.contextmanager
def nodes(
    kubeconfig: Path, count: int, *, gpus: int = 0, log: Sequence[str] = ()
) -> Iterator[list[str]]:
    """Simulated nodes for as long as they are wanted; returns their names.

    `gpus` each has to offer; `log` is what every container on them has said (only where the API
    server reaches this machine's loopback). Afterwards they, their pods and their leases are gone.
    """
    programs.build(programs.KWOK)
    api = clients.client(kubeconfig)
    core = clients.of(api)
    batch = uuid.uuid4().hex[:6]
    names = [f"simulated-{batch}-{number}" for number in range(count)]
    with tempfile.TemporaryDirectory(prefix="kwok-") as folder:
        started = Started(Path(folder))
        port = free_port()
        try:
            started.start("kwok", *_command(Path(folder), kubeconfig, batch, port, log))
            for name in names:
                core.create_node(_node(name, batch, port, gpus))
            started.wait(f"{count} simulated nodes", lambda: len(_ready(core, batch)) == count)
            yield names
        finally:
            _remove(api, batch, names)
            started.stop("kwok")
            api.close()


def _command(
    folder: Path, kubeconfig: Path, batch: str, port: int, log: Sequence[str]
) -> list[str]:
    certificate, key = folder / "kwok.crt", folder / "kwok.key"
    command = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "30",
        "-subj",
        "/CN=kwok",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(["openssl", *command], check=True, capture_output=True)
    said = folder / "said"
    stamp = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    # As a container runtime writes it.
    said.write_text("".join(f"{stamp} stdout F {line}\n" for line in log))
    config = folder / "kwok.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kwok.x-k8s.io/v1alpha1",
                "kind": "ClusterLogs",
                "metadata": {"name": "said"},
                "spec": {"logs": [{"logsFile": str(said), "follow": False}]},
            }
        )
    )
    return [
        "kwok",
        f"--kubeconfig={kubeconfig}",
        f"--config={config}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={OURS}={batch}",
        "--node-ip=127.0.0.1",
        f"--node-port={port}",
        f"--server-address=127.0.0.1:{port}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        "--node-lease-duration-seconds=40",
    ]


def _node(name: str, batch: str, port: int, gpus: int) -> dict[str, Any]:
    offered = {
        "cpu": "8",
        "memory": "32Gi",
        "pods": "110",
        **({"nvidia.com/gpu": str(gpus)} if gpus else {}),
    }
    system = os.uname()
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {OURS: batch, "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "simulated": batch,
            },
        },
        "status": {
            # KWOK would say so itself, of five nodes a second.
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Simulated",
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
            ],
            "capacity": offered,
            "allocatable": offered,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "nodeInfo": {
                "bootID": str(uuid.uuid4()),
                "machineID": uuid.uuid4().hex,
                "systemUUID": str(uuid.uuid4()),
                "kernelVersion": system.release,
                "osImage": "simulated",
                "containerRuntimeVersion": "kwok://0.7.0",
                "kubeletVersion": "v1.34.4",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def _ready(core: Client, batch: str) -> list[str]:
    found = core.list_node(label_selector=f"simulated={batch}").items
    return [
        n.metadata.name
        for n in found
        if any(c.type == "Ready" and c.status == "True" for c in n.status.conditions or ())
        and not n.spec.taints
    ]


def _remove(api: Client, batch: str, names: Sequence[str]) -> None:
    """Delete pods while KWOK ends them, then nodes, then leases, which nothing else collects."""
    core, leases = clients.of(api), clients.of(api, "CoordinationV1Api")
    clients.end_pods(
        api,
        lambda: [
            pod for pod in core.list_pod_for_all_namespaces().items if pod.spec.node_name in names
        ],
    )
    core.delete_collection_node(label_selector=f"simulated={batch}")
    for name in names:
        with clients.if_there():
            leases.delete_namespaced_lease(name, "kube-node-lease")
