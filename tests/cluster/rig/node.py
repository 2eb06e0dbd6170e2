"""The machine as a node: containerd, runc, pod bridge and kubelet in a mount namespace.

All mounts of containers, volumes and pods' networks live in that namespace and go with its last
process. The fixed places where these programs write (`OURS`) are covered there by folders of the
cluster, so that nothing stays behind and a containerd or kubelet of the machine itself is not met.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from . import image, programs
from .control_plane import Api, kubeconfig_of, kubelet_user
from .started import Started, free_port

if TYPE_CHECKING:
    from .places import Cluster

CGROUPS = Path("/sys/fs/cgroup")
CAP_SYS_RESOURCE = 24
OURS = (
    "/var/lib/kubelet",
    "/var/log/pods",
    "/var/log/containers",
    "/var/lib/cni",
    "/run/containerd",
    "/run/netns",
)


def cover(cluster: Cluster) -> None:
    """Propagate mounts of this namespace to containers only, and cover the programs' places.

    To be called in a mount namespace of its own; the folders that had to be made are written down
    for `traces`.
    """
    _mount("--make-rprivate", "/")
    _mount("--make-rshared", "/")
    made = cluster.folder / "made"
    for place in OURS:
        path = Path(place)
        for missing in reversed([p for p in (path, *path.parents) if not p.exists()]):
            missing.mkdir()
            with made.open("a") as sink:
                sink.write(f"{missing}\n")
        own = cluster.folder / "covers" / place.lstrip("/")
        own.mkdir(parents=True, exist_ok=True)
        _mount("--bind", str(own), place)
    # The API server finds the kubelet by the node's name; the machine's hosts file stays as it is.
    hosts = cluster.folder / "hosts"
    hosts.write_text(f"{Path('/etc/hosts').read_text()}\n127.0.0.1 {cluster.node}\n")
    _mount("--bind", str(hosts), "/etc/hosts")


def start(cluster: Cluster, started: Started) -> None:
    _configure_containerd(cluster)
    started.start("containerd", "containerd", "-c", str(cluster.folder / "containerd.toml"))
    started.wait("containerd", lambda: _ctr(cluster, "version").returncode == 0)
    imported = _ctr(cluster, "-n", "k8s.io", "images", "import", str(image.archive()))
    if imported.returncode:
        raise RuntimeError(f"containerd does not take the images: {imported.stderr}")
    for folder in cgroups(cluster):
        _make_cgroup(folder)
    config = cluster.folder / "kubelet.yaml"
    config.write_text(yaml.safe_dump(_kubelet(cluster), sort_keys=False))
    started.start(
        "kubelet",
        "kubelet",
        f"--config={config}",
        f"--kubeconfig={kubeconfig_of(cluster, kubelet_user(cluster))}",
        f"--hostname-override={cluster.node}",
        f"--cert-dir={cluster.certificates / 'kubelet'}",
    )


def ready(cluster: Cluster, api: Api) -> bool:
    """Can pods run? The node says so, and the default service account is there."""
    node = api.get(f"/api/v1/nodes/{cluster.node}")
    conditions = node["status"].get("conditions", []) if node else []
    account = api.get("/api/v1/namespaces/default/serviceaccounts/default")
    return (
        account is not None
        and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        and not node["spec"].get("taints")
    )


def cgroups(cluster: Cluster) -> list[Path]:
    """The cgroup above all containers: one per version 1 hierarchy, or the only one (version 2)."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS / cluster.cgroup.lstrip("/")]
    return [
        hierarchy / cluster.cgroup.lstrip("/")
        for hierarchy in sorted(CGROUPS.iterdir())
        if hierarchy.is_dir() and not hierarchy.is_symlink()
    ]


def _make_cgroup(folder: Path) -> None:
    parent = folder.parent
    if (parent / "cgroup.controllers").exists() and (CGROUPS / "cgroup.controllers").exists():
        for controller in (parent / "cgroup.controllers").read_text().split():
            # What cannot be handed down, the kubelet names if it needs it.
            with contextlib.suppress(OSError):
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")
    folder.mkdir(exist_ok=True)
    # Version 1 wants them told, before a process can be in it.
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (parent / name).exists() and (folder / name).exists():
            (folder / name).write_text((parent / name).read_text())


def _configure_containerd(cluster: Cluster) -> None:
    plugins = cluster.folder / "cni"
    plugins.mkdir(exist_ok=True)
    addresses = {"type": "host-local", "subnet": cluster.subnet, "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {
        "type": "bridge",
        "bridge": cluster.bridge,
        "isGateway": True,
        "ipMasq": False,
        "ipam": addresses,
    }
    network = {"cniVersion": "0.4.0", "name": "rig", "plugins": [bridge, {"type": "loopback"}]}
    (plugins / "10-rig.conflist").write_text(json.dumps(network))
    (cluster.folder / "containerd.toml").write_text(f"""\
version = 2
root = "{cluster.folder / "containerd"}"
state = "{cluster.folder / "containerd-state"}"
[grpc]
  address = "{cluster.containerd}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image.PAUSE}"
  disable_apparmor = true  # its profile would stay in the kernel
  # Without CAP_SYS_RESOURCE no container can be less likely to be killed than containerd is.
  restrict_oom_score_adj = {"false" if _may_protect_from_oom() else "true"}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{programs.cni()}"
    conf_dir = "{plugins}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{_snapshotter(cluster)}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
""")


def _may_protect_from_oom() -> bool:
    status = Path("/proc/self/status").read_text().splitlines()
    capabilities = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))
    return bool(capabilities >> CAP_SYS_RESOURCE & 1)


def _snapshotter(cluster: Cluster) -> str:
    # In a container the folder may itself lie on an overlay, upon which no other can be put.
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", str(cluster.folder)], check=True, capture_output=True, text=True
    ).stdout
    return "native" if "overlay" in kind else "overlayfs"


def _kubelet(cluster: Cluster) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": free_port(),
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(cluster.certificates / "apiserver-kubelet.crt")},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cluster.cgroup,
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{cluster.containerd}",
        "makeIPTablesUtilChains": False,
        "volumePluginDir": str(cluster.folder / "volume-plugins"),
        # A machine with a full disk or little memory runs tests as well as any.
        "evictionHard": {"memory.available": "100Mi",
                         **dict.fromkeys(("nodefs.available", "nodefs.inodesFree"), "1%"),
                         **dict.fromkeys(("imagefs.available", "imagefs.inodesFree"), "1%")},
        "imageGCHighThresholdPercent": 100,
    }  # fmt: skip


def _ctr(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["ctr", "-a", str(cluster.containerd), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)
