"""The surroundings that a run records, and differences between runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.labels import Machines, identity_of
from analysis.machine import ProvenanceChange, differences, facts
from tests.analysis.report.pages import SWAPPINESS, read
from tests.synthetic import STOCK, Arm, Made

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


MADE = Made(arms=(STOCK, Arm("tuned", requested=SWAPPINESS)), blocks=3)
RUN = read(MADE)


def machine(**told: object) -> list[tuple[str, str, str]]:
    found = facts(replace(RUN, machine=told))
    return [
        (one.group, one.key, one.value) for one in found if one.group not in {"plan", "tunables"}
    ]


def changes(one: Mapping[str, object], other: Mapping[str, object]) -> list[ProvenanceChange]:
    return differences([replace(RUN, machine=one), replace(RUN, machine=other)])


def test_facts_stand_in_groups_with_their_units_written_out(snapshot: SnapshotAssertion) -> None:
    """Nulls are no facts; boot tokens keep order; driver and GPU are apart; the rest is other."""
    gpu = {"name": "H200", "driver_version": "570.1", "memory_total_bytes": 2**37}
    told = {
        "cpu_model": "EPYC",
        "mem_total_bytes": 25276502016,
        "is_root": True,
        "os": "Debian",
        "colour": "red",
        "cpu_governor": None,
    }
    assert (
        machine(
            **told,
            cmdline="quiet hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=5128",
            gpus=[gpu],
        )
        == snapshot
    )
    assert machine(gpus="no NVIDIA driver") == [("hardware", "gpus", "no NVIDIA driver")]


def test_the_plan_is_told_too(snapshot: SnapshotAssertion) -> None:
    plan = {one.key: one.value for one in facts(RUN) if one.group == "plan"}
    assert plan == snapshot


def test_one_boot_token_of_many_is_found() -> None:
    found = changes({"cmdline": "a=1 isolcpus=2-11 b=2"}, {"cmdline": "b=2 a=1"})
    assert found == [ProvenanceChange("boot command line", "isolcpus", ("2-11", None))]


def test_a_package_and_a_driver_are_named() -> None:
    one = {
        "python_packages": {"torch": "2.14", "numpy": "2.4"},
        "gpus": [{"name": "H200", "driver_version": "570"}],
    }
    other = {
        "python_packages": {"torch": "2.15", "numpy": "2.4"},
        "gpus": [{"name": "H200", "driver_version": "580"}],
    }
    assert changes(one, other) == [
        ProvenanceChange("driver", "gpu0 driver_version", ("570", "580")),
        ProvenanceChange("packages", "python_packages: torch", ("2.14", "2.15")),
    ]


def test_a_tunable_found_different_is_listed_and_an_unread_not() -> None:
    def found(value: str) -> object:
        def change(saved: dict[str, object]) -> None:
            for one in saved["benchmarks"]:  # type: ignore[attr-defined]
                before = one["extra_info"]["tweak"]["before"]
                before |= dict.fromkeys(before, value)

        return change

    other = read(MADE, found("60"))  # type: ignore[arg-type]
    third = read(Made(arms=(STOCK,), blocks=3))
    assert [one for one in differences([RUN, other]) if one.group == "tunables"] == [
        ProvenanceChange("tunables", "vm.swappiness", ("0", "60"))
    ]
    assert [one for one in differences([RUN, third]) if one.group == "tunables"] == []
    assert [one.values for one in differences([RUN, other, third]) if one.group == "tunables"] == [
        ("0", "60", None)
    ]


GIB = 2**30
FACTS = {
    "cpu_model": "EPYC",
    "cpu_count": 64,
    "mem_total_bytes": 256 * GIB,
    "gpus": [{"name": "H100"}, {"name": "H100"}],
    "hostname": "node-1",
    "kernel_release": "6.18",
}


SAME: list[dict[str, object]] = [
    {"hostname": "node-2"},
    {"kernel_release": "7.0"},
    {"mem_total_bytes": 250 * GIB},
]
OTHER: list[dict[str, object]] = [
    {"cpu_model": "Xeon"},
    {"cpu_count": 32},
    {"mem_total_bytes": 128 * GIB},
    {"mem_total_bytes": 230 * GIB},
    {"mem_total_bytes": None},
    {"gpus": [{"name": "H100"}]},
    {"gpus": "no NVIDIA driver"},
]


def test_only_host_kernel_and_a_little_memory_leave_the_hardware() -> None:
    alike = [identity_of(FACTS).same_as(identity_of(FACTS | facts)) for facts in (*SAME, *OTHER)]
    assert alike == [True] * len(SAME) + [False] * len(OTHER)


def test_machines_are_numbered_as_they_are_met() -> None:
    machines = Machines()
    numbers = [
        machines.number_of(facts)
        for facts in (FACTS, {}, FACTS | {"hostname": "node-2"}, {"hostname": "x"})
    ]
    assert numbers == [0, 1, 0, 1]
    assert list(map(str, machines.known)) == ["EPYC, 64 CPUs, 256 GiB, 2 × H100", "unknown machine"]
