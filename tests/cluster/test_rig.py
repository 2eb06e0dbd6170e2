"""The cluster under the tests goes without a trace, though its user is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.rig import node, places
from tests.waiting import until


@pytest.mark.needs("rights of a cluster", "cluster")
@pytest.mark.skipif(
    bool(os.environ.get("KUBECONFIG")), reason="KUBECONFIG's cluster is not this machine's"
)
def test_a_cluster_goes_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """Nothing of it is left: no program, no bridge, no cgroup, no folder."""
    program = (
        "import time; from tests.cluster.rig import up\nwith up.borrowed() as at: "
        "print(at['KUBECONFIG'], flush=True); time.sleep(1e6)"
    )
    with (tmp_path / "said").open("w") as sink:
        borrower = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=places.HOUSE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        )
    assert borrower.stdout
    with borrower:
        said = borrower.stdout.readline().strip()
        borrower.kill()
    assert said, (tmp_path / "said").read_text()
    cluster = places.Cluster(Path(said).parent)
    # It waits for the kernel, which other tests hold.
    until(lambda: not cluster.folder.exists(), "it did not end", within_s=1200)
    assert not [folder for folder in node.cgroups(cluster) if folder.exists()]
    assert not Path("/sys/class/net", cluster.bridge).exists()
    mark = f"{places.MARK}={cluster.folder}".encode()
    assert not [path for path in Path("/proc").glob("[0-9]*/environ") if mark in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""
