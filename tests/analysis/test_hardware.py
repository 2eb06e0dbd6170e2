"""Which machines are the same: series must not go on from one kind to another."""

from __future__ import annotations

from analysis.hardware import Machines, machine_of

GIB = 2**30
FACTS = {
    "cpu_model": "EPYC",
    "cpu_count": 64,
    "mem_total_bytes": 256 * GIB,
    "gpus": [{"name": "H100"}, {"name": "H100"}],
    "hostname": "node-1",
    "kernel_release": "6.18",
}


SAME: list[dict[str, object]] = [{"hostname": "node-2"}, {"kernel_release": "7.0"}, {"mem_total_bytes": 250 * GIB}]
OTHER: list[dict[str, object]] = [
    {"cpu_model": "Xeon"},
    {"cpu_count": 32},
    {"mem_total_bytes": 128 * GIB},
    {"mem_total_bytes": 230 * GIB},
    {"mem_total_bytes": None},
    {"gpus": [{"name": "H100"}]},
    {"gpus": "no NVIDIA driver"},
]


def test_another_host_kernel_or_a_little_less_memory_is_the_same_hardware_and_nothing_else() -> None:
    alike = [machine_of(FACTS).same_as(machine_of(FACTS | facts)) for facts in (*SAME, *OTHER)]
    assert alike == [True] * len(SAME) + [False] * len(OTHER)


def test_machines_are_numbered_as_they_are_met() -> None:
    machines = Machines()
    numbers = [machines.number_of(facts) for facts in (FACTS, {}, FACTS | {"hostname": "node-2"}, {"hostname": "x"})]
    assert numbers == [0, 1, 0, 1]
    assert list(map(str, machines.known)) == ["EPYC, 64 CPUs, 256 GiB, 2 × H100", "unknown machine"]
