"""`--design=turns` on a real kubelet: the Jobs of a block stay alive and take turns.

However it ends, nothing is left of it.

That nothing is left in the cluster, on the node and in its kernel is checked as each test leaves
its `place`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from analysis.compare import compare
from analysis.load import load
from fixtures.kernel import pods
from tests.cluster.rig import clients
from tests.cluster.runs import LOOK_EVERY_S, ClusterPlace, swappiness_is
from tests.cluster.sessions.test_kill_run import kill_agent
from tests.cluster.sessions.test_trouble import cells
from tests.sessions import another_swappiness, caught, swappiness
from tests.test_session import SCHEMA
from tests.waiting import until as comes

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.needs("root")

Json = dict[str, Any]
STEPS = "--steps=400"  # as many slices: enough to be caught in one
SOMAXCONN = "net.core.somaxconn"


def turns(place: ClusterPlace, value: int, *options: str) -> subprocess.Popen[str]:
    """A session of stock twice, and of a set with a swappiness."""
    tweaks = place.manifest("reclaim", sysctl=f"vm.swappiness = {value}")
    return place.start("--design=turns", f"--tweaks={tweaks}", "--benchmark-save=one", *options)


@contextlib.contextmanager
def in_a_slice(place: ClusterPlace, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Freeze a session in the set's turn, with its workload's steps begun or done."""
    value = another_swappiness()
    process = turns(place, value, STEPS, *options)

    def switched() -> bool:
        with contextlib.suppress(FileNotFoundError):
            return swappiness_is(value) and place.journal.read_text().count('"switching"') > 1
        return False

    with caught(switched, process, LOOK_EVERY_S):
        yield process


def test_each_workload_of_a_block_runs_slices_under_its_settings(
    place: ClusterPlace,
) -> None:
    """By this process's own look at the kernel.

    One set asks for what a pod has of its own, one for a property of its process.
    """
    found, value, queue = (
        swappiness(),
        another_swappiness(),
        int(Path("/proc/sys/net/core/somaxconn").read_text()) + 1,
    )
    both = place.manifest("both", sysctl=f"{SOMAXCONN} = {queue}", process="Nice=5")
    process = turns(
        place, value, f"--tweaks={both},{place.folder / 'reclaim.yaml'}", "--blocks=3", "--steps=40"
    )
    looks = [(time.monotonic(), found, time.monotonic())]
    while process.poll() is None:
        looks.append((time.monotonic(), swappiness(), time.monotonic()))
        time.sleep(0.001)
    done = place.ended(process)
    assert done.code == 0, done.out
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    ours = saved["deeptweak"]
    assert [one["outcome"] for one in ours["cells"]] == ["measured"] * 12, done.out
    assert ours["machine_check"] == {"changed": {}, "restored": True}
    records = [one["extra_info"] for one in saved["benchmarks"]]
    assert len({record["place"]["pod_uid"] for record in records}) == len(records)
    order: dict[int, list[tuple[float, int, str]]] = {}
    for record in records:
        assert (record["place"]["apply"], record["place"]["host_network"], record["node"]) == (
            "agent",
            True,
            place.node,
        )
        assert [(one["round"], one["steps"]) for one in record["turns"]] == [
            (number, 4) for number in range(1, 11)
        ]
        assert all(one["others_cpu_s"] >= 0 for one in record["turns"][:-1]), (
            "in the last one it ends"
        )
        assert "sampler" not in record["telemetry"]["missing"]
        assert record["telemetry"]["summary"]["process_rss_bytes_mean"] > 0
        steps = record["steps"]
        seen = set()
        for one in record["turns"]:
            first, last = one["first"], one["first"] + one["steps"] - 1
            begin_s, end_s = (
                steps["start_monotonic_s"][first],
                steps["start_monotonic_s"][last] + steps["wall_s"][last],
            )
            seen |= {
                swappy
                for before_s, swappy, after_s in looks
                if begin_s < before_s and after_s < end_s
            }
            order.setdefault(record["block"], []).append(
                (begin_s, one["round"], record["tweakset"])
            )
        assert seen == {value if record["tweakset"] == "reclaim" else found}
    for slices in order.values():
        assert all(one[1] <= other[1] for one, other in pairwise(sorted(slices))), "round by round"
    assert len({tuple(name for _, _, name in sorted(slices)) for slices in order.values()}) > 1, (
        "in random order"
    )
    for record in records:
        expected = {
            "reclaim": {"vm.swappiness": str(value)},
            "both": {SOMAXCONN: str(queue), "Nice": "5"},
        }
        assert record["tweak"]["observed"] == expected.get(record["tweakset"], {})
    assert {one.tweakset for one in compare(load(place.files()[-1]))} >= {"reclaim", "both"}


@pytest.mark.parametrize("agent_too", [False, True], ids=["", "and its agent"])
def test_restore_finishes_a_session_killed_in_a_slice(
    place: ClusterPlace, *, agent_too: bool
) -> None:
    """A lone agent puts the node back and ends the workloads; without an agent, `restore` does."""
    found = swappiness()
    with in_a_slice(place, "--blocks=1") as process:
        assert len(place.workloads()) == 3
        if agent_too:
            kill_agent(place)
        process.kill()
    place.ended(process)
    if not agent_too:
        comes(lambda: swappiness_is(found) and not place.workloads(), "the node puts itself back")
    done = place.restore()
    assert (done.code, swappiness(), place.workloads()) == (0, found, []), done.out


def pod_of(place: ClusterPlace, name: str) -> Any:
    (pod,) = [
        one
        for one in place.workloads()
        if one.metadata.annotations["deeptweak/cell"].endswith(f"/idle-{name}-b1")
    ]
    return pod


def delete_pod(place: ClusterPlace, name: str) -> None:
    clients.of(place.api).delete_namespaced_pod(pod_of(place, name).metadata.name, place.namespace)


def kill_workload(place: ClusterPlace, name: str) -> None:
    uid = pod_of(place, name).metadata.uid
    (pid,) = [pid for pid, its in pods.workloads(Path("/")).items() if its == uid]
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("trouble", "name"),
    [(delete_pod, "stock-again"), (kill_workload, "reclaim")],
    ids=["one that waits", "whose turn it is"],
)
def test_a_pod_that_dies_during_its_block_fails_only_its_cell(
    place: ClusterPlace, trouble: Callable[[ClusterPlace, str], None], name: str
) -> None:
    with in_a_slice(place, "--blocks=1") as process:
        trouble(place, name)
    done = place.ended(process)
    outcomes = {cell["tweakset"]: cell["outcome"] for cell in cells(place)}
    assert outcomes == {"stock": "measured", "stock-again": "measured", "reclaim": "measured"} | {
        name: "failed"
    }, done.out
    assert done.code == (2 if name == "reclaim" else 1)
    assert all(len(one["extra_info"]["turns"]) == 400 for one in place.saved()["benchmarks"])
