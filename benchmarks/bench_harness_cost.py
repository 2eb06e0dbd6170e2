"""Measure what the harness itself costs."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.kernel import lock, probes
from fixtures.kernel.machine import Machine, Write
from fixtures.kernel.state_dirs import state_dir
from fixtures.kernel.tunables import sysctl_path
from fixtures.process.child import ask
from fixtures.telemetry.client import Sampler

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

KEYS = {
    "vm.swappiness": "10",
    "vm.dirty_ratio": "30",
    "vm.dirty_background_ratio": "5",
    "vm.dirty_expire_centisecs": "2000",
    "vm.dirty_writeback_centisecs": "300",
    "vm.overcommit_memory": "1",
    "vm.max_map_count": "262144",
    "vm.min_free_kbytes": "131072",
    "vm.vfs_cache_pressure": "50",
    "vm.page-cluster": "0",
    "net.core.rmem_max": "134217728",
    "net.core.wmem_max": "134217728",
    "net.core.netdev_max_backlog": "250000",
    "net.core.somaxconn": "8192",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_fin_timeout": "15",
    "net.ipv4.tcp_rmem": "4096 87380 134217728",
    "net.ipv4.tcp_wmem": "4096 65536 134217728",
    "fs.inotify.max_user_watches": "1048577",
    "kernel.sched_autogroup_enabled": "0",
}
MAX_CYCLE_S = 0.035
MAX_CELL_CPU_S = {"matrix": 0.012, "turns": 0.060}
MAX_SAMPLER_SHARE = 0.004
MAX_PLAN_CPU_S = 1.2
SAMPLED_S = 10.0
# Both sessions have told what their blocks can detect, after the third: importing SciPy for that is
# no cost of a cell.
BLOCKS = (4, 14)
CPU_OF_A_SESSION = """
import sys, time, pytest
from fixtures.kernel.machine import Machine

tweaks_s = 0.0

def timed(method):
    def call(*args):
        global tweaks_s
        started_s = time.process_time()
        try:
            return method(*args)
        finally:
            tweaks_s += time.process_time() - started_s
    return call

Machine.apply, Machine.restore = timed(Machine.apply), timed(Machine.restore)
code = pytest.main(sys.argv[1:])
print("cpu_s", time.process_time() - tweaks_s)
sys.exit(code)
"""


@pytest.mark.skipif(probes.settings() is not None, reason=f"{probes.settings()}")
def bench_apply_read_back_restore(benchmark: BenchmarkFixture) -> None:
    """Apply 20 sysctls to the kernel (snapshot, journal, read back), then restore them."""
    machine = Machine()
    writes = [Write(sysctl_path(key), value, key) for key, value in KEYS.items()]

    def cycle() -> None:
        machine.apply("harness-cost", writes)
        assert not machine.restore().stuck

    with lock.machine_held(machine.journal.folder):
        machine.restore()
        benchmark.pedantic(cycle, rounds=30, warmup_rounds=2)
    if benchmark.stats:
        assert benchmark.stats.stats.median <= MAX_CYCLE_S


@pytest.mark.parametrize("design", list(MAX_CELL_CPU_S))
def bench_cpu_of_a_cell(rounds: Callable[[list[float]], None], tmp_path: Path, design: str) -> None:
    """Measure the CPU seconds that a cell without tweak set and workload adds to pytest.

    Two sessions of idle cells, one with more blocks than the other: the cost of a session's start
    and end cancels.
    """

    def session(blocks: int) -> tuple[float, int]:
        saved = tmp_path / f"{blocks}.json"
        arguments = [
            "benchmarks/bench_kernel_tweaks.py",
            "--workloads=idle",
            "--tweaks=tcp-cubic",
            f"--blocks={blocks}",
        ]
        arguments.append(f"--design={design}")
        command = [
            sys.executable,
            "-c",
            CPU_OF_A_SESSION,
            *arguments,
            f"--benchmark-json={saved}",
            f"--benchmark-storage={tmp_path}",
        ]
        answer = ask(*command, within_s=600.0)
        assert answer.code == 0, answer.output
        return float(answer.out.rsplit("cpu_s", 1)[1]), len(
            json.loads(saved.read_text())["benchmarks"]
        )

    (few_s, few), (many_s, many) = map(session, BLOCKS)
    cost_s = (many_s - few_s) / (many - few)
    rounds([cost_s])
    assert cost_s <= MAX_CELL_CPU_S[design]


def bench_sampler_cpu(rounds: Callable[[list[float]], None]) -> None:
    """Measure the CPU seconds that the sampler takes in ten seconds at 10 Hz."""
    with lock.machine_held(state_dir()), Sampler(hz=10.0) as sampler:
        sampler.begin(os.getpid())
        time.sleep(SAMPLED_S)
        seen = sampler.end()
    assert seen.columns, seen.missing
    rounds([seen.sampler_cpu_s])
    assert seen.sampler_cpu_s <= MAX_SAMPLER_SHARE * SAMPLED_S


def bench_cpu_of_a_plan(rounds: Callable[[list[float]], None]) -> None:
    """Measure the CPU seconds of `pytest benchmarks/ --plan`, the best of three."""
    used_s = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert (
            ask(sys.executable, "-m", "pytest", "benchmarks/", "--plan", within_s=120.0).code == 0
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    rounds(used_s)
    assert min(used_s) <= MAX_PLAN_CPU_S
