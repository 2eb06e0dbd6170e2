"""Node placement on fifty simulated nodes: one run per node, a reason for each node left out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fixtures.kubernetes import lease, names
from fixtures.kubernetes.api import NODES, SKYHOOKS, create, delete, get, patch
from fixtures.kubernetes.client import Cluster, Where, connect
from fixtures.kubernetes.lease import NodeLease
from fixtures.kubernetes.node import NodeFacts, candidates, hold_one
from fixtures.terms import BadInput, Refused
from tests.cluster.test_lease import of_another_machine, stamp

Object = dict[str, Any]
OURS, THEIRS = "0123456789ab", "ba9876543210"
SKYHOOK = "skyhook.nvidia.com"


@pytest.fixture
def simulated(kwok_nodes: Callable[..., list[str]]) -> Callable[..., tuple[list[str], str]]:
    """`simulated(3)`: three nodes, and the selector for them."""

    def some(count: int, **options: int) -> tuple[list[str], str]:
        nodes = kwok_nodes(count, **options)
        return nodes, f"simulated={nodes[0].split('-')[1]}"

    return some


@pytest.fixture
def bare(cluster: Cluster) -> Iterator[Callable[..., str]]:
    """Nodes without any machine, that nobody but the test changes, with the selector of others."""
    made: list[str] = []

    def one(name: str, selector: str, **status: str) -> str:
        key, _, value = selector.partition("=")
        name = f"{name}-{value}"
        create(cluster, NODES, {"metadata": {"name": name, "labels": {key: value}}})
        made.append(name)
        if status:
            patch(
                cluster,
                NODES,
                name,
                {"status": {"conditions": [{"type": "Ready", **status}]}},
                subresource="status",
                strategic=True,
            )
        return name

    yield one
    for name in made:
        patch(cluster, NODES, name, {"metadata": {"finalizers": None}})
        delete(cluster, NODES, name)


@pytest.fixture
def skyhook(
    cluster: Cluster, crds: list[str], namespace: str
) -> Iterator[Callable[[str, Object], str]]:
    assert "skyhooks.skyhook.nvidia.com" in crds
    made: list[str] = []

    def one(name: str, status: Object) -> str:
        name = f"{name}-{namespace[-8:]}"
        body = {
            "metadata": {"name": name},
            "spec": {"nodeSelectors": {"matchLabels": {"no": "node"}}, "packages": {}},
        }
        created = create(cluster, SKYHOOKS, body)
        made.append(name)
        generation = created["metadata"]["generation"]
        patch(
            cluster,
            SKYHOOKS,
            name,
            {"status": {"observedGeneration": generation, **status}},
            subresource="status",
        )
        return name

    yield one
    for name in made:
        patch(cluster, SKYHOOKS, name, {"metadata": {"finalizers": None}})
        delete(cluster, SKYHOOKS, name)


def annotate(cluster: Cluster, node: str, **annotations: str) -> None:
    patch(cluster, NODES, node, {"metadata": {"annotations": annotations}})


def mark(cluster: Cluster, node: str, name: str, state: str = "complete") -> None:
    patch(
        cluster,
        NODES,
        node,
        {
            "metadata": {
                "annotations": {
                    f"{SKYHOOK}/nodeState_{name}": "{}",
                    f"{SKYHOOK}/status_{name}": state,
                }
            }
        },
    )


def test_eight_concurrent_workers_lease_eight_different_nodes(
    cluster: Cluster, simulated: Callable[..., tuple[list[str], str]], kubeconfig: Path
) -> None:
    """All fifty are candidates; the second to claim a node takes the next; all end up free."""
    nodes, selector = simulated(50, gpus=1)
    free, left_out = candidates(cluster, selector)
    assert ([one.name for one in free], left_out) == (sorted(nodes), {})
    known = get(cluster, NODES, nodes[0])
    assert known is not None
    [first] = [one for one in free if one.name == nodes[0]]
    assert (first.boot_id, first.gpus, first.hostname_label) == (
        known["status"]["nodeInfo"]["bootID"],
        1,
        nodes[0],
    )
    together = threading.Barrier(8)

    def work(number: int) -> tuple[NodeFacts, NodeLease]:
        mine = connect(Where(kubeconfig=str(kubeconfig), namespace=cluster.namespace))
        together.wait()
        return hold_one(mine, selector, f"{number:012x}")

    with ThreadPoolExecutor(8) as pool, ExitStack() as stack:
        got = list(pool.map(work, range(8)))
        for _, held in got:
            stack.push(held)
        assert len({place.name for place, _ in got}) == 8
        free, left_out = candidates(cluster, selector)
        assert set(left_out) == {place.name for place, _ in got}
        assert len(free) == 42
        for number, (place, _) in enumerate(got):
            assert f"held by run {number:012x} (process " in left_out[place.name]
        assert not any(held.lost.is_set() for _, held in got)
    assert len(candidates(cluster, selector)[0]) == 50


def test_each_node_left_out_has_its_reason(
    cluster: Cluster,
    simulated: Callable[..., tuple[list[str], str]],
    bare: Callable[..., str],
    skyhook: Callable[[str, Object], str],
) -> None:
    """A node that another Skyhook resource has finished with is as its owner wants: a candidate."""
    (
        (
            cordoned,
            by_operator,
            drifted,
            held,
            leftover,
            of_ours,
            unfinished,
            changing,
            finished,
            tainted,
        ),
        selector,
    ) = simulated(10)
    never = bare("never-ready", selector)
    broken = bare(
        "not-ready",
        selector,
        status="False",
        reason="KubeletNotReady",
        message="PLEG is not healthy",
    )
    patch(cluster, NODES, cordoned, {"spec": {"unschedulable": True}})
    annotate(cluster, by_operator, **{f"{SKYHOOK}/cordon_site": "true"})
    patch(cluster, NODES, by_operator, {"spec": {"unschedulable": True}})
    annotate(cluster, drifted, **{names.DRIFTED: "vm.dirty_ratio was 20, is 33"})
    annotate(cluster, leftover, **{"nodewright.nvidia.com/nodeState_gone-long-ago": "{}"})
    leaving = bare("leaving", selector, status="True")
    patch(cluster, NODES, leaving, {"metadata": {"finalizers": ["test.example/not-yet"]}})
    delete(cluster, NODES, leaving)
    patch(cluster, NODES, tainted, {"metadata": {"labels": {f"{SKYHOOK}/ignore": "true"}}})
    mark(cluster, of_ours, "dt-ba9876543210-1")
    busy = skyhook("busy", {"status": "in_progress", "nodeStatus": {unfinished: "in_progress"}})
    stale = skyhook(
        "stale",
        {"status": "complete", "nodeStatus": {changing: "complete"}, "observedGeneration": 0},
    )
    done = skyhook(
        "done",
        {"status": "in_progress", "nodeStatus": {finished: "complete", unfinished: "in_progress"}},
    )
    mark(cluster, unfinished, busy, "in_progress")
    mark(cluster, changing, stale)
    mark(cluster, finished, done)
    patch(
        cluster,
        NODES,
        tainted,
        {
            "spec": {
                "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
            }
        },
    )
    with NodeLease(cluster, THEIRS, held):
        free, left_out = candidates(cluster, selector)
    assert [one.name for one in free] == sorted([finished, tainted])
    expected = {
        cordoned: f"cordoned; `kubectl uncordon {cordoned}` makes",
        by_operator: (
            f"`kubectl uncordon {by_operator} && kubectl annotate node {by_operator} "
            f"{SKYHOOK}/cordon_site-`"
        ),
        drifted: "a run could not put it back (vm.dirty_ratio was 20, is 33)",
        held: f"held by run {THEIRS} (process ",
        leftover: (
            f"run `kubectl annotate node {leftover} nodewright.nvidia.com/nodeState_gone-long-ago-`"
        ),
        leaving: "it is being removed from the cluster",
        of_ours: "which no longer exists; to finish it, run `python -m fixtures restore",
        unfinished: f"the Skyhook {busy} is in_progress there",
        changing: f"the Skyhook {stale} is about to change there",
        never: "not ready (no condition Ready: its kubelet has not reported)",
        broken: "not ready (KubeletNotReady: PLEG is not healthy)",
    }
    assert left_out.keys() == expected.keys()
    for node, reason in expected.items():
        assert reason in left_out[node]


def test_a_dead_runs_node_is_had_once_all_others_are_taken(
    cluster: Cluster,
    simulated: Callable[..., tuple[list[str], str]],
    quick: None,  # noqa: ARG001
) -> None:
    """Free nodes come first, then the silent one, watched once; a drifted one is left out."""
    (one, dead, dead_and_drifted, alive), selector = simulated(4)
    for node in (dead, dead_and_drifted):
        of_another_machine(cluster, renewed=stamp(), duration_s=2, node=node)
    annotate(cluster, dead_and_drifted, **{names.DRIFTED: "something"})
    with NodeLease(cluster, THEIRS, alive), ExitStack() as stack:
        place, held = hold_one(cluster, selector, OURS)
        stack.push(held)
        assert (place.name, held.took_over) == (one, None)
        place, held = hold_one(cluster, selector, OURS)
        stack.push(held)
        assert (place.name, held.took_over) == (dead, THEIRS)
        with pytest.raises(
            Refused, match=rf"{dead_and_drifted}: a run could not put it back \(something\)"
        ):
            hold_one(cluster, selector, OURS)
    assert lease.held_leases(cluster) == {}


def test_a_selector_without_a_match_names_the_existing_nodes(
    cluster: Cluster, node_name: str
) -> None:
    with pytest.raises(
        BadInput, match=rf"--nodes='no=such' matches no node\. Existing nodes: .*{node_name}"
    ):
        candidates(cluster, "no=such")
    with pytest.raises(
        BadInput, match=r"--nodes='a===b' is not a valid label selector: .* `kubectl get nodes -l`"
    ):
        candidates(cluster, "a===b")
