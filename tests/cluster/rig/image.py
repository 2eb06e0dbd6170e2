"""The test cluster's images, built without a registry, and the overlay with the local Python."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import yaml

from . import places

NAME = "deeptweak.test/rig:1"
# the same under another name: a user's image, which nobody has built for this harness
OWN = "deeptweak.test/own:1"
PAUSE = "deeptweak.test/pause:1"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FOLDERS = (
    "bin",
    "dev",
    "etc",
    "home",
    "lib",
    "lib64",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr",
    "usr/bin",
    "usr/lib",
    "var",
)
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def archive() -> Path:
    """Pack all images as `docker save` does; rebuild when busybox or this file changed."""
    found = shutil.which("busybox")
    if not found:
        raise RuntimeError(
            "The images of the test cluster are made of busybox, which is not here: apt-get "
            "install busybox-static."
        )
    busybox = Path(found)
    digest = hashlib.sha256(busybox.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:16]
    target = places.cache() / "images" / f"{digest}.tar"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}")
        _save(fresh, _layer(busybox))
        fresh.replace(target)
    return target


def _layer(busybox: Path) -> bytes:
    """The file system: busybox, a link for each command, and the /etc files for name look-up."""
    commands = subprocess.run(
        [str(busybox), "--list"], check=True, capture_output=True, text=True
    ).stdout.split()
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in FOLDERS:
            tar.addfile(_entry(name, tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755))
        _add(tar, "bin/busybox", busybox.read_bytes(), 0o755)
        for name in commands:
            link = _entry(f"bin/{name}", tarfile.SYMTYPE, 0o777)
            link.linkname = "busybox"
            if name != "busybox":
                tar.addfile(link)
        for name, text in FILES.items():
            _add(tar, name, text.encode(), 0o644)
    return sink.getvalue()


def _save(target: Path, layer: bytes) -> None:
    diff = hashlib.sha256(layer).hexdigest()
    # `pause` holds a pod's namespaces and does nothing else.
    programs = {NAME: None, OWN: None, PAUSE: ["/bin/sleep", "2147483647"]}
    manifest = []
    with tarfile.open(target, "w") as tar:
        for name, program in programs.items():
            config = json.dumps(_config(diff, name, program)).encode()
            file = hashlib.sha256(config).hexdigest() + ".json"
            _add(tar, file, config, 0o644)
            manifest.append({"Config": file, "RepoTags": [name], "Layers": [f"{diff}/layer.tar"]})
        _add(tar, f"{diff}/layer.tar", layer, 0o644)
        _add(tar, "manifest.json", json.dumps(manifest).encode(), 0o644)


def _config(diff: str, name: str, program: list[str] | None) -> dict[str, Any]:
    return {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(
            platform.machine(), platform.machine()
        ),
        "os": "linux",
        "created": "2026-01-01T00:00:00Z",
        "config": {
            "Env": [f"PATH={SYSTEM_PATH}"],
            "Entrypoint": program,
            "WorkingDir": "/",
            "Labels": {"name": name},
        },  # one of another name is another image
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]},
        "history": [{"created": "2026-01-01T00:00:00Z", "created_by": "deeptweak tests"}],
    }


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = _entry(name, tarfile.REGTYPE, mode)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def folders() -> dict[str, Path]:
    """The local Python, packages and repository for the image, keyed by a valid volume name."""
    wanted = {
        "house": places.HOUSE,
        "venv": Path(sys.prefix),
        "python": Path(sys.base_prefix),
        "usr": Path("/usr"),
    }
    wanted |= {
        name: Path(f"/{name}")
        for name in ("bin", "sbin", "lib", "lib64")
        if Path(f"/{name}").is_dir()
    }
    paths = list(wanted.values())
    # A folder in another's comes with it; of two names for the same one, the first stays.
    inside = [
        any(path != p and path.is_relative_to(p) for p in paths) or path in paths[:place]
        for place, path in enumerate(paths)
    ]
    return {
        name: path for (name, path), drop in zip(wanted.items(), inside, strict=True) if not drop
    }


def overlay() -> dict[str, Any]:
    """Build a --pod-overlay that mounts these folders in place."""
    variables = {
        "PATH": f"{Path(sys.prefix) / 'bin'}:{SYSTEM_PATH}",
        "PYTHONPATH": str(places.HOUSE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/tmp",  # noqa: S108 the pod's own
    }
    volumes = [
        {"name": f"host-{name}", "hostPath": {"path": str(path)}}
        for name, path in folders().items()
    ]
    return {
        "spec": {"volumes": volumes},
        "container": {
            "imagePullPolicy": "IfNotPresent",
            "env": [{"name": name, "value": value} for name, value in variables.items()],
            "volumeMounts": [
                {"name": f"host-{name}", "mountPath": str(path), "readOnly": True}
                for name, path in folders().items()
            ],
        },
    }


def write_overlay(target: Path) -> Path:
    target.write_text(yaml.safe_dump(overlay(), sort_keys=False))
    return target
