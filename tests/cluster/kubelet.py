"""`python -m tests.cluster.kubelet stop|start NODE`: freeze or thaw this machine's kubelet.

A frozen kubelet looks hung: its containers go on, and the cluster is not told of them. Ending the
cluster ends a frozen kubelet, too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

SIGNALS = {"stop": signal.SIGSTOP, "start": signal.SIGCONT}


def found(node: str) -> int | None:
    """Process id of the kubelet that speaks for a node; None where it is not on this machine."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if Path(words[0]).name == "kubelet" and f"--hostname-override={node}" in words:
                return int(folder.name)
    return None


def main(what: str, node: str) -> int:
    """Returns the exit code."""
    pid = found(node)
    if pid is None:
        print(f"no kubelet of {node} on this machine", file=sys.stderr)
        return 1
    os.kill(pid, SIGNALS[what])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
