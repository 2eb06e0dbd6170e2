"""A cluster by kind, with Docker: its node is a container with this Python below `SHARED`."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import yaml

from . import image

SHARED = Path("/this-machine")


def runs() -> bool:
    if not (shutil.which("kind") and shutil.which("docker")):
        return False
    return subprocess.run(["docker", "info"], check=False, capture_output=True).returncode == 0


@contextlib.contextmanager
def borrowed() -> Iterator[dict[str, str]]:
    """A kind cluster of one node for as long as it is wanted, with the image loaded.

    Raises: RuntimeError, with what kind said.
    """
    name = f"deeptweak-{uuid.uuid4().hex[:6]}"
    with tempfile.TemporaryDirectory(prefix="kind-") as folder:
        kubeconfig, config = Path(folder) / "kubeconfig", Path(folder) / "kind.yaml"
        mounts = [
            {"hostPath": str(path), "containerPath": f"{SHARED}{path}", "readOnly": True}
            for path in image.folders().values()
        ]
        node = {"role": "control-plane", "extraMounts": mounts}
        config.write_text(
            yaml.safe_dump(
                {"apiVersion": "kind.x-k8s.io/v1alpha4", "kind": "Cluster", "nodes": [node]}
            )
        )
        _kind(
            "create",
            "cluster",
            f"--name={name}",
            f"--config={config}",
            f"--kubeconfig={kubeconfig}",
            "--wait=300s",
        )
        try:
            _kind("load", "image-archive", str(image.archive()), f"--name={name}")
            yield {
                "KUBECONFIG": str(kubeconfig),
                "DEEPTWEAK_RIG_NODE": f"{name}-control-plane",
                "DEEPTWEAK_RIG_IMAGE": image.NAME,
                "DEEPTWEAK_RIG_OVERLAY": str(
                    image.write_overlay(Path(folder) / "overlay.yaml", below=SHARED)
                ),
            }
        finally:
            _kind("delete", "cluster", f"--name={name}", f"--kubeconfig={kubeconfig}")


def _kind(*arguments: str) -> None:
    done = subprocess.run(["kind", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"kind {' '.join(arguments)} ended with {done.returncode} and said\n{done.stderr}"
        )
