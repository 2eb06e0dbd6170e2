"""The programs of a cluster, built from their Go modules once and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import places

MODULES = Path(__file__).parents[1] / "programs"
LAST_LINES = 20


@dataclass(frozen=True)
class Module:
    """One go.mod and the commands that are built from it: program's name → its package."""

    name: str
    commands: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return MODULES / self.name


KUBERNETES = Module(
    "kubernetes",
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
    },
)
ETCD = Module("etcd", {"etcd": "go.etcd.io/etcd/server/v3"})
KWOK = Module("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
ALL = (KUBERNETES, ETCD, KWOK)


def missing() -> list[str]:
    """What is not installed here that a cluster of our own needs, each as one would install it."""
    plugins = [
        f"{name} (containernetworking-plugins)"
        for name in ("bridge", "loopback", "host-local")
        if not (cni() / name).exists()
    ]
    wanted = {"containerd": "containerd", "ctr": "containerd", "runc": "runc",
              "busybox": "busybox-static", "ip": "iproute2", "openssl": "openssl",
              "unshare": "util-linux", "setpriv": "util-linux"}  # fmt: skip
    tools = [f"{name} ({package})" for name, package in wanted.items() if not shutil.which(name)]
    go = (
        []
        if shutil.which("go") or all(built(module) for module in ALL)
        else ["go (https://go.dev/dl)"]
    )
    return [*tools, *plugins, *go]


def cni() -> Path:
    """Where the CNI plugins are: Debian's place, or everybody else's."""
    return next(
        (p for p in (Path("/usr/lib/cni"), Path("/opt/cni/bin")) if (p / "bridge").exists()),
        Path("/usr/lib/cni"),
    )


def key(module: Module) -> str:
    """What a program was made of: change go.mod, go.sum or Go, and it is built anew.

    Without Go, a program that was built elsewhere and copied here is as good as any.
    """
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((module.folder / name).read_bytes())
    if shutil.which("go"):
        digest.update(_go("env", "GOVERSION", folder=module.folder).encode())
    return digest.hexdigest()


def built(module: Module) -> bool:
    there = all((places.programs() / name).exists() for name in module.commands)
    if not there or not shutil.which("go"):
        return there
    return _key_file(module).exists() and _key_file(module).read_text() == key(module)


def build(module: Module) -> None:
    """Build a module's programs, unless they are there.

    From an empty cache: kubernetes 4 min on 2 cores, the others 1 min each.

    Raises: RuntimeError, with the last lines that Go said.
    """
    if built(module):
        return
    target = places.programs()
    target.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    print(f"building {', '.join(module.commands)} …", file=sys.stderr, flush=True)
    _key_file(module).unlink(missing_ok=True)
    for name, package in module.commands.items():
        _compile(module, target / name, package)
        print(f"  {name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    _key_file(module).write_text(key(module))


def _compile(module: Module, target: Path, package: str) -> None:
    flags = ["-mod=readonly", "-trimpath", "-ldflags", f"-s -w {_version(module)}"]
    # A program that is running cannot be written over, but replaced.
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    command = ["go", "build", *flags, "-o", str(fresh), package]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""}
    lines: deque[str] = deque(maxlen=LAST_LINES)
    with subprocess.Popen(
        command,
        cwd=module.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as go:
        lines.extend(go.stdout or ())
    if go.returncode:
        said = "".join(lines) or "(nothing)"
        raise RuntimeError(
            f"{target.name} of {module.folder / 'go.mod'} cannot be built: go build ended with "
            f"{go.returncode} and said\n{said}"
        )
    fresh.replace(target)


def _version(module: Module) -> str:
    # What the API server says it is; a build outside of its repository would say v0.0.0.
    if module is not KUBERNETES:
        return ""
    version = _go("list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes", folder=module.folder)
    parts = re.fullmatch(r"v(\d+)\.(\d+)\..*", version)
    if not parts:
        raise RuntimeError(
            f"{module.folder / 'go.mod'}: no release of k8s.io/kubernetes: {version!r}"
        )
    words = {"gitVersion": version, "gitMajor": parts[1], "gitMinor": parts[2]}
    return " ".join(
        f"-X k8s.io/component-base/version.{name}={value}" for name, value in words.items()
    )


def _go(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        ["go", *arguments], cwd=folder, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(
            f"go {' '.join(arguments)} ended with {done.returncode} and said\n{done.stderr}"
        )
    return done.stdout.strip()


def _key_file(module: Module) -> Path:
    return places.programs() / f"{module.folder.name}.key"
