"""Places of a test cluster: builds in the user's cache, its own writes in a folder per cluster."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

HOUSE = Path(__file__).parents[3]
# Short, since a socket's path holds 107 characters; on a disk, since containers write there;
# fixed, so that a later rig finds the traces of a killed one.
CLUSTERS = Path("/var/tmp/deeptweak-rig")  # noqa: S108 ours alone, mode 0700
KEPT = CLUSTERS / "kept"
# In the environment of every process of a cluster: by it a later one knows what a killed one left
# running.
MARK = "DEEPTWEAK_RIG"


def cache() -> Path:
    """What is built once for all clusters: programs and images."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "deeptweak-cluster"


def programs() -> Path:
    return cache() / "bin"


@dataclass(frozen=True)
class Cluster:
    """One cluster, known by its folder.

    What else it takes of the machine carries a name derived from that, so that two can run side by
    side.
    """

    folder: Path

    @property
    def id(self) -> str:
        return hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]

    @property
    def node(self) -> str:
        return f"rig-{self.id}"

    @property
    def bridge(self) -> str:
        """Pods' network; an interface's name has at most 15 characters."""
        return f"dt{self.id}"

    @property
    def cgroup(self) -> str:
        """Above all its containers."""
        return f"/deeptweak-rig-{self.id}"

    @property
    def subnet(self) -> str:
        return f"10.{88 + int(self.id[0], 16)}.{int(self.id[1:3], 16)}.0/24"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    @property
    def certificates(self) -> Path:
        return self.folder / "pki"

    @property
    def logs(self) -> Path:
        return self.folder / "log"

    @property
    def containerd(self) -> Path:
        return self.folder / "containerd.sock"

    @property
    def ready(self) -> Path:
        """Written when pods can run: how to reach it (JSON)."""
        return self.folder / "ready.json"

    @property
    def before(self) -> Path:
        """The machine's settings before the first program started (JSON)."""
        return self.folder / "before.json"
