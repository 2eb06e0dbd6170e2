"""A `process` package: read, refused, rendered, split, planned, kept from operators; in a pod."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.designs.switch import run_time_only
from fixtures.kernel.machine import Write
from fixtures.kernel.tunables import Tunables
from fixtures.kubernetes import api, skyhook
from fixtures.kubernetes.ways import ByAgent, ByOperator, plan_of
from fixtures.terms import BadInput, Order, TweakSet
from fixtures.tweaks import process
from fixtures.tweaks.local import plan
from fixtures.tweaks.manifest import parse
from fixtures.tweaks.skyhook import packages
from fixtures.workloads import load
from tests.cluster.test_manifests import SPOT, job

HEAD = "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata:\n  name: x\n"
OURS = """\
    mine:
      version: 1.0.0
      image: deeptweak/process
      configMap:
        environment.conf: |-
          # comments are not read
          MALLOC_ARENA_MAX=1
          GLIBC_TUNABLES = glibc.malloc.hugetlb=1
        process.conf: |-
          Nice=+5
          CPUAffinity=1 0,3
          IOSchedulingClass=idle
          LimitMEMLOCK=8M:infinity
"""
TUNING = """\
    tuning:
      version: 1.1.4
      image: ghcr.io/nvidia/skyhook-packages/tuning
      dependsOn: {mine: 1.0.0}
      configMap:
        sysctl.conf: vm.swappiness=10
        ulimit.conf: nofile=77
"""


def manifest(*packages: str) -> TweakSet:
    return parse(f"{HEAD}spec:\n  packages:\n{''.join(packages)}", "x", "x.yaml")


def of(section: str, *lines: str) -> TweakSet:
    text = "".join(f"          {line}\n" for line in lines)
    return manifest(
        "    mine:\n      version: 1.0.0\n      image: deeptweak/process\n      configMap:\n     "
        f"   {section}: |-\n{text}"
    )


def asked(tweakset: TweakSet) -> list[tuple[str, str, str]]:
    return [(t.kind, t.key, t.value) for t in tweakset.tweaks]


def test_variables_and_directives_are_settings_in_order() -> None:
    """As written; requests are in the kernel's words: CPU ranges, bytes, numbers without sign."""
    tweakset = manifest(OURS)
    assert asked(tweakset) == [
        ("environment", "MALLOC_ARENA_MAX", "1"),
        ("environment", "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
        ("process", "Nice", "+5"),
        ("process", "CPUAffinity", "1 0,3"),
        ("process", "IOSchedulingClass", "idle"),
        ("process", "LimitMEMLOCK", "8M:infinity"),
    ]
    assert process.requested(tweakset) == {
        "MALLOC_ARENA_MAX": "1",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "Nice": "5",
        "CPUAffinity": "0-1,3",
        "IOSchedulingClass": "idle",
        "LimitMEMLOCK": "8388608:infinity",
    }


@pytest.mark.parametrize(
    ("section", "line", "says"),
    [
        ("environment.conf", "NAME=", "'NAME=' is not an assignment"),
        ("environment.conf", "1ST=1", "'1ST' is not a valid variable name"),
        ("environment.conf", "Nice=5", "'Nice' is not a valid variable name"),
        ("environment.conf", "A=\u200b", "is not an assignment"),
        ("environment.conf", "PYTHONPATH=/tmp", "PYTHONPATH cannot be set: the harness finds"),
        (
            "environment.conf",
            "TOKENIZERS_PARALLELISM=true",
            "TOKENIZERS_PARALLELISM cannot be set: each workload",
        ),
        ("process.conf", "Nice=20", "Nice=20 cannot be set; write -20"),
        ("process.conf", "IOSchedulingClass=none", "IOSchedulingClass=none cannot be set"),
        ("process.conf", "LimitNOFILE=9:8", "a soft limit above the hard one"),
        ("process.conf", "OOMScoreAdjust=5", "unknown directive OOMScoreAdjust"),
    ],
)
def test_an_invalid_process_setting_is_refused_with_its_line(
    section: str, line: str, says: str
) -> None:
    with pytest.raises(BadInput, match=rf"^x\.yaml: package mine, {section} line 2: .*") as refusal:
        of(section, "# a comment", line)
    assert says in str(refusal.value)


def test_a_setting_of_a_start_cannot_be_switched() -> None:
    tweakset = manifest(OURS)
    (why,) = run_time_only(tweakset, plan(of("environment.conf", "A=1"), Tunables())).cannot
    assert all(t.key in why for t in tweakset.tweaks)


def test_a_plan_needs_no_root_and_knows_what_is_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that the harness has already is inherited; one that it lacks is None."""
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = plan(of("environment.conf", "MALLOC_ARENA_MAX=1", "OMP_NUM_THREADS=2"), Tunables())
    assert (found.cannot, found.writes) == ((), ())
    assert found.inherited == {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": None}
    assert found.already_in_force(Tunables()) == ["MALLOC_ARENA_MAX"]


def test_unavailable_process_settings_are_known_before_a_run(tmp_path: Path) -> None:
    """Too many CPUs, a missing library; only a thread tried them: this process is as before."""
    before = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    (why,) = plan(of("process.conf", "CPUAffinity=0,9999", "Nice=19"), Tunables()).cannot
    assert why.startswith("CPUAffinity=0,9999: ")
    (why,) = plan(
        of("environment.conf", f"LD_PRELOAD=libc.so.6:{tmp_path}/none.so"), Tunables()
    ).cannot
    assert why == f"LD_PRELOAD: {tmp_path}/none.so does not exist"
    assert before == (os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0))


def test_the_operator_gets_its_own_packages_alone() -> None:
    """And nothing that depends on ours; a set of ours alone goes by the agent."""
    (body,) = skyhook.resources(manifest(OURS, TUNING), api.SKYHOOKS, lambda: "n", SPOT)
    assert list(body["spec"]["packages"]) == ["tuning"]
    assert "dependsOn" not in body["spec"]["packages"]["tuning"]
    assert packages(manifest(OURS)) == []
    assert [
        process.alone(one) for one in (manifest(OURS), manifest(OURS, TUNING), TweakSet("stock"))
    ] == [True, False, False]


@pytest.mark.parametrize("way", [ByAgent(), ByOperator(api.SKYHOOKS)], ids=["agent", "operator"])
def test_on_a_cluster_a_pod_can_have_what_needs_no_capability(way: ByAgent | ByOperator) -> None:
    both = manifest(OURS, TUNING.replace("        ulimit.conf: nofile=77\n", ""))
    found = plan_of(way, None, both)
    assert (found.cannot, found.process) == ((), process.requested(both))
    assert found.writes == (Write("/proc/sys/vm/swappiness", "10", "vm.swappiness"),)
    assert set(found.inherited.values()) == {None}
    refused = plan_of(way, None, of("process.conf", "Nice=-1", "IOSchedulingClass=realtime")).cannot
    assert [why.partition(":")[0] for why in refused] == ["Nice=-1", "IOSchedulingClass=realtime"]


def test_in_a_pod_a_wrapper_applies_all_settings_but_variables() -> None:
    order = Order(
        load("idle:wait_s=0.005"), 4, 1, 7, process={"A": "1", "Nice": "5", "CPUAffinity": "0-1,3"}
    )
    (container,) = job(order=order)["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["command"] == [
        "python",
        "-m",
        "fixtures.kernel.process_settings",
        "Nice=5",
        "CPUAffinity=0-1,3",
        "--",
        "idle",
    ]
    (plain,) = job(order=replace(order, process={"A": "1"}))["spec"]["template"]["spec"][
        "containers"
    ]
    assert plain["command"] == ["python", "-m", "fixtures.workloads.idle"]
    assert plain["args"] == container["args"]


@pytest.mark.parametrize(("threads", "fails"), [(2, False), (4, True), (None, False)])
def test_a_variable_is_in_name_only_if_the_thread_count_differs(
    threads: int | None,
    fails: bool,  # noqa: FBT001
) -> None:
    facts = {} if threads is None else {"threads": threads}
    assert bool(process.in_name_only({"OMP_NUM_THREADS": "2,1"}, facts)) == fails


def test_another_value_that_the_harness_has_is_told_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be a token or a password, and a saved run is shown around."""
    monkeypatch.setenv("HF_TOKEN", "topsecret")
    assert plan(of("environment.conf", "HF_TOKEN=abc"), Tunables()).inherited == {
        "HF_TOKEN": "(another value)"
    }
