"""Which machines are the same: series must not go on from one kind to another."""

from __future__ import annotations

import pytest

from analysis.history.hardware import Machines, machine_of

GIB = 2**30
FACTS = {
    "cpu_model": "EPYC",
    "cpu_count": 64,
    "mem_total_bytes": 256 * GIB,
    "gpus": [{"name": "H100"}, {"name": "H100"}],
    "hostname": "node-1",
    "kernel_release": "6.18",
}


@pytest.mark.parametrize("same", [{"hostname": "node-2"}, {"kernel_release": "7.0"}, {"mem_total_bytes": 250 * GIB}])
def test_another_host_kernel_or_a_little_less_memory_is_the_same_hardware(same: dict[str, object]) -> None:
    assert machine_of(FACTS).same_as(machine_of(FACTS | same))


@pytest.mark.parametrize(
    "other",
    [
        {"cpu_model": "Xeon"},
        {"cpu_count": 32},
        {"mem_total_bytes": 128 * GIB},
        {"mem_total_bytes": None},
        {"gpus": [{"name": "H100"}]},
        {"gpus": "no NVIDIA driver"},
    ],
)
def test_another_processor_memory_or_gpu_is_another_machine(other: dict[str, object]) -> None:
    assert not machine_of(FACTS).same_as(machine_of(FACTS | other))


def test_machines_are_numbered_as_they_are_met() -> None:
    machines = Machines()
    numbers = [machines.number_of(facts) for facts in (FACTS, {}, FACTS | {"hostname": "node-2"}, {"hostname": "x"})]
    assert numbers == [0, 1, 0, 1]
    assert list(map(str, machines.known)) == ["EPYC, 64 CPUs, 256 GiB, 2 × H100", "unknown machine"]
