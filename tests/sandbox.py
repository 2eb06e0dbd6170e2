"""Run commands under a container's restrictions by util-linux alone, without a container.

`python -m tests.sandbox COMMAND…` runs a command by hand, with the view and the rights of root in a
default container.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fixtures.kernel.state_dirs import ROOT_STATE_DIR

HOUSE = Path(__file__).parents[1]
NEEDED = (HOUSE, Path(sys.prefix), Path(sys.base_prefix))
NOBODY = 65534  # what it can do, any user can
# Defaults of Docker and containerd (moby: oci/caps/defaults.go).
CAPABILITIES = (
    "chown,dac_override,fsetid,fowner,mknod,net_raw,setgid,setuid,setfcap,setpcap,"
    "net_bind_service,sys_chroot,kill,audit_write"
)
# Their read-only mounts (containerd: oci/spec.go), each on itself.
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def private_mounts(*commands: str) -> tuple[str, ...]:
    """Run what follows with private mounts, after these commands."""
    return (
        "unshare",
        "--mount",
        "--propagation=private",
        "bash",
        "-ec",
        "; ".join([*commands, 'exec "$@"']),
        "bash",
    )


def as_nobody(hold: Path) -> tuple[str, ...]:
    """Run what follows as an ordinary user who sees this Python and repository, wherever they are.

    Each closed folder is covered by an empty one with only what is needed in it. The lock that the
    tests hold is out of sight too, for an ordinary user's run respects it.
    """
    commands = []
    for number, path in enumerate(NEEDED):
        commands += [f"mkdir -p {hold}/{number}", f"mount --bind '{path}' {hold}/{number}"]
    closed = {
        next((p for p in reversed(path.parents) if not p.stat().st_mode & 0o001), None)
        for path in NEEDED
    } - {None}
    commands += [_covered(folder) for folder in sorted(map(str, closed))]
    for number, path in enumerate(NEEDED):
        if any(path.is_relative_to(str(folder)) for folder in closed):
            commands += [f"mkdir -p '{path}'", f"mount --bind {hold}/{number} '{path}'"]
    user = (
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    )
    return (*private_mounts(*commands, _covered(ROOT_STATE_DIR)), *user)


def sandboxed() -> tuple[str, ...]:
    """Run what follows as root in a container: own PIDs, few rights, read-only /proc/sys, /sys."""
    commands = [
        f"if [ -e {path} ]; then mount --bind {path} {path}; mount -o remount,bind,ro {path}; fi"
        for path in READ_ONLY
    ]
    commands += [
        "for point in $(findmnt -rno TARGET -R /sys); do mount -o remount,bind,ro $point; done"
    ]
    kept = "-all,+" + CAPABILITIES.replace(",", ",+")
    few = ("setpriv", f"--bounding-set={kept}", f"--inh-caps={kept}", "--no-new-privs")
    return (
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        *private_mounts(*commands, _covered(ROOT_STATE_DIR)),
        *few,
    )


def _covered(folder: Path | str) -> str:
    return f"mkdir -p {folder}; mount -t tmpfs -o mode=755 none {folder}"


if __name__ == "__main__":
    sys.exit(subprocess.run([*sandboxed(), *sys.argv[1:]], check=False).returncode)
