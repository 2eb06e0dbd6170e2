"""A design's names suit pytest: each cell has an id of its own, and `-k` finds it by key name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.designs.profiles import manifest

HOUSE = Path(__file__).parents[2]
# Of vm.vfs_cache_pressure, net/ipv4/conf/eth0.1/rp_filter, LimitNOFILE of containerd, a pool of 1
# GiB pages and the script package thp: slashes, colons and capitals are no part of a name.
WORDS = (
    "no-vm.vfs_cache_pressure",
    "no-net.ipv4.conf.eth0-1.rp_filter",
    "no-containerd.limitnofile",
    "no-hugepages-1g",
    "no-script-thp",
)


def test_a_cell_is_found_by_its_keys_name(tmp_path: Path) -> None:
    file = tmp_path / "odd_name.yaml"
    sections = {
        "sysctl.conf": "vm.vfs_cache_pressure=50\nnet/ipv4/conf/eth0.1/rp_filter=2",
        "grub.conf": "hugepagesz=1G hugepages=2",
        "service_containerd.conf": "[Service]\nLimitNOFILE=9",
    }
    file.write_text(manifest(sections, scripts=("thp",)))
    asked = [
        "--design=ablation",
        f"--tweaks={file}",
        "--workloads=idle",
        "--blocks=1",
        "--collect-only",
        "-q",
    ]
    words = " or ".join(f"odd_name.{word}" for word in WORDS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "benchmarks/bench_kernel_tweaks.py",
        *asked,
        "-k",
        words,
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert sorted(found) == sorted(
        f"benchmarks/bench_kernel_tweaks.py::bench_step_time[idle-odd_name.{word}-b1]"
        for word in WORDS
    )
