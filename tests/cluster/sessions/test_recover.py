"""`restore` after a dead run: some things it finishes, others it leaves alone.

It leaves another worker's and other people's objects, and all that it cannot understand. Nodes and
their machines (`simulated_agents`) are simulated; the API server and everything written there are
real.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.kernel import lock
from fixtures.kernel.machine import Restored
from fixtures.kubernetes import api, lease, manifests, names, recovery, settings
from fixtures.kubernetes import skyhook as operator
from fixtures.kubernetes.client import Cluster, Where
from fixtures.kubernetes.journal import NodeJournal
from fixtures.kubernetes.node import HeldNode, facts
from fixtures.kubernetes.settings import TargetConfig
from fixtures.kubernetes.target import Kubernetes
from fixtures.terms import MachineHeld, Refused, TweakRefused
from fixtures.tweaks import resolve
from tests.cluster.simulated_agents import Machine, cell_of, machines_of, of_node, said
from tests.fake_root import writes
from tests.sessions import Place

pytestmark = pytest.mark.needs("reference")

Json = dict[str, Any]
RUN, OTHER = "0123456789ab", "ba9876543210"
SWAPPINESS = "/proc/sys/vm/swappiness"  # 60 on a fake root
PATIENCE_S = 180.0
AGENT = {"image": "registry.invalid/deeptweak:1"}
CHOSEN = TargetConfig(Where(), nodes="", image=AGENT["image"], patience_s=PATIENCE_S)


@pytest.fixture
def machines(
    kwok_nodes: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Machine]:
    return machines_of(tmp_path / "machines", kwok_nodes(2, log=said(5)), monkeypatch)


@pytest.fixture
def skyhook(cluster: Cluster, crds: list[str]) -> Iterator[Callable[..., str]]:
    """`skyhook(node, n)`: a run's resource for a node and the operator's marks, no operator."""
    assert "skyhooks.skyhook.nvidia.com" in crds
    made: list[str] = []

    def make(node: str, n: int = 1, run_id: str = RUN, *, marks: bool = True) -> str:
        name = names.tweak_of(run_id, node, n)
        labels = names.labels(run_id, "tweak", node)
        package = {
            "version": "1.1.4",
            "image": "registry.invalid/tuning",
            "configMap": {"sysctl.conf": "vm.swappiness = 10\n"},
        }
        spec = {"nodeSelectors": {"matchLabels": {"no": "such"}}, "packages": {"tuning": package}}
        api.create(
            cluster, api.SKYHOOKS, {"metadata": {"name": name, "labels": labels}, "spec": spec}
        )
        if marks:
            api.patch(
                cluster,
                api.NODES,
                node,
                {"metadata": {"annotations": {f"skyhook.nvidia.com/status_{name}": "in_progress"}}},
            )
        made.append(name)
        return name

    yield make
    for name in made:
        api.delete(cluster, api.SKYHOOKS, name)


def cell(resources: list[str] | None = None, **more: object) -> Json:
    return {"label": "left", "resources": resources or [], "boot": None, **more}


def restored(cluster: Cluster) -> dict[str, Restored | Refused]:
    return dict(recovery.finish_all(cluster, uuid.uuid4().hex[:12], CHOSEN, print))


def well(result: Restored | Refused) -> Restored:
    assert isinstance(result, Restored), result
    return result


def resources(cluster: Cluster) -> list[str]:
    return sorted(
        one["metadata"]["name"]
        for one in api.list_(cluster, api.SKYHOOKS, labels=names.selector("tweak"))[0]
    )


def is_empty(cluster: Cluster) -> bool:
    ours = "app.kubernetes.io/name=deeptweak"
    return not any(
        api.list_(cluster, kind, labels=ours)[0] for kind in (api.CONFIGMAPS, api.LEASES, api.PODS)
    )


# -- on the node


def test_the_node_journal_finishes_a_run_killed_between_the_two(
    cluster: Cluster, machines: list[Machine]
) -> None:
    """The cluster's journal says that nothing is in force; the node's own must still be finished.

    Else a later run would revert the next change.
    """
    node, fake = machines[0]
    NodeJournal(cluster, RUN, node).open(AGENT)
    fake.machine().watch("left", [])
    fake.put(SWAPPINESS, "10")
    result = well(restored(cluster)[node])
    assert (result.label, result.back) == ("left", {SWAPPINESS: ("10", "60")})
    assert (fake.journal.exists(), fake.get(SWAPPINESS)) == (False, "60")
    assert is_empty(cluster)


def test_recovery_leaves_the_resources_of_sibling_workers(
    cluster: Cluster, machines: list[Machine], skyhook: Callable[..., str]
) -> None:
    """The same run on another node, whose worker lives."""
    (dead, fake), (living, _) = machines
    mine, theirs = skyhook(dead), skyhook(living)
    fake.machine().watch("left")
    NodeJournal(cluster, RUN, dead).open(AGENT).begin(cell([mine]))
    NodeJournal(cluster, RUN, living).open(AGENT).begin(cell([theirs]))
    with lease.NodeLease(cluster, RUN, living), lease.NodeLease(cluster, OTHER, dead) as ours:
        recovery.finish_node(cluster, ours, CHOSEN)
    assert resources(cluster) == [theirs]
    assert operator.marked_by_us(of_node(cluster, dead)) == set()
    assert operator.marked_by_us(of_node(cluster, living)) == {theirs}


def test_a_node_with_a_lost_journal_is_reported_and_excluded(
    cluster: Cluster, machines: list[Machine]
) -> None:
    """Nobody knows what to put back there; the cluster's journal, which stays, holds no values."""
    node, _ = machines[0]
    NodeJournal(cluster, RUN, node).open(AGENT).begin(cell(journal="lost"))
    result = well(restored(cluster)[node])
    assert "is gone unfinished" in result.stuck["/var/lib/deeptweak"]
    assert "is gone unfinished" in str(drifted(cluster, node))
    assert [one.node for one in NodeJournal.unfinished(cluster)] == [node]


def test_a_node_that_was_restored_on_itself_is_done(
    cluster: Cluster, machines: list[Machine]
) -> None:
    """`restore` on the node also removes a killed cluster run's mark that kept later runs away."""
    node, fake = machines[0]
    kernel = fake.machine()
    kernel.journal.remember_finished()  # as an agent does
    identity = kernel.begin("left", writes([(SWAPPINESS, "10")]))["id"]
    kernel.carry_out()
    NodeJournal(cluster, RUN, node).open(AGENT).begin(cell(journal=identity))
    api.patch(
        cluster, api.NODES, node, {"metadata": {"annotations": {names.DRIFTED: "nobody knows"}}}
    )
    assert fake.machine().restore().back == {SWAPPINESS: ("10", "60")}
    assert well(restored(cluster)[node]).stuck == {}
    assert drifted(cluster, node) is None
    assert is_empty(cluster)


# -- what a ConfigMap may say


def test_foreign_names_in_a_journal_are_left_alone_and_reported(
    cluster: Cluster, machines: list[Machine], skyhook: Callable[..., str]
) -> None:
    node, fake = machines[0]
    somebodys = skyhook(node, run_id=OTHER, marks=False)
    NodeJournal(cluster, OTHER, machines[1].node)  # that run lives elsewhere
    fake.machine().begin("left", writes([(SWAPPINESS, "10")]))
    before = NodeJournal(cluster, RUN, node).open(AGENT)
    before.begin(cell([somebodys, "anything-else"]))
    with lease.NodeLease(cluster, OTHER, node) as held:
        result = recovery.finish_node(cluster, held, CHOSEN)
    assert resources(cluster) == [somebodys]
    assert any(f"anything-else, {somebodys}: not touched" in note for note in result.notes), (
        result.notes
    )


def test_the_agent_of_a_restore_is_of_its_own_options_alone(
    cluster: Cluster, machines: list[Machine]
) -> None:
    """Whatever is written into the ConfigMap: an image, an overlay, a whole pod."""
    node, _ = machines[0]
    journal = NodeJournal(cluster, RUN, node).open({"image": "registry.invalid/anybody-s:1"})
    forged = {
        "image": "registry.invalid/anybody-s:1",
        "overlay": {"container": {"command": ["sh"]}},
        "spec": {"nodeName": "another"},
    }
    api.patch(cluster, api.CONFIGMAPS, journal.name, {"data": {"agent.json": json.dumps(forged)}})
    [journal] = NodeJournal.unfinished(cluster)
    with lease.NodeLease(cluster, OTHER, node) as held:
        resumed = HeldNode.resume(cluster, journal, facts(of_node(cluster, node)), held, CHOSEN)
        with contextlib.closing(resumed):
            resumed.start_agent()
            ((pod),) = api.list_(cluster, api.PODS, labels=names.selector("agent", RUN))[0]
    wanted = manifests.agent_pod(
        manifests.Spot(RUN, node, "", cluster.namespace, None), AGENT["image"], settings.Overlay()
    )
    container, asked = pod["spec"]["containers"][0], wanted["spec"]["containers"][0]
    assert pod["metadata"]["name"] == wanted["metadata"]["name"] + "-restore"
    assert (pod["spec"]["nodeName"], container["image"], container["command"]) == (
        node,
        asked["image"],
        asked["command"],
    )
    journal.close()


def test_an_image_that_was_not_named_is_told_and_not_started(
    cluster: Cluster, machines: list[Machine]
) -> None:
    """The journal's word for it is not taken; who knows it pastes it.

    Nothing was begun until then.
    """
    node, fake = machines[0]
    NodeJournal(cluster, RUN, node).open(
        {"image": "registry.invalid/x:1", "pod-overlay": "pods.yaml"}
    )
    fake.machine().begin("left", writes([(SWAPPINESS, "10")]))
    ((_, refused),) = recovery.finish_all(cluster, uuid.uuid4().hex[:12], CHOSEN, print, named=())
    assert isinstance(refused, Refused)
    assert str(refused).endswith(
        "repeat this with --image=registry.invalid/x:1 --pod-overlay=pods.yaml"
    )
    assert (len(NodeJournal.unfinished(cluster)), fake.journal.exists()) == (1, True)
    assert well(restored(cluster)[node]).label == "left"
    assert is_empty(cluster)


def test_an_unreadable_journal_is_named_and_other_nodes_recover(
    cluster: Cluster, machines: list[Machine]
) -> None:
    """It stays; a run that gets another node does not mind it."""
    (bad, _), (good, fake) = machines
    journal = NodeJournal(cluster, RUN, bad).open(AGENT)
    api.patch(cluster, api.CONFIGMAPS, journal.name, {"data": {"cell.json": "{"}})
    NodeJournal(cluster, OTHER, good).open(AGENT)
    fake.machine().begin("left", writes([(SWAPPINESS, "10")]))
    found = restored(cluster)
    assert well(found[good]).label == "left"
    assert isinstance(found[bad], Refused)
    assert f"the journal in ConfigMap {cluster.namespace}/{journal.name} cannot be used: " in str(
        found[bad]
    )
    assert f"`kubectl delete configmap -n {cluster.namespace} {journal.name}`" in str(found[bad])
    assert [one.name for one in NodeJournal.unfinished(cluster)] == [journal.name]
    chosen = TargetConfig(Where(None, None, None), nodes=f"kubernetes.io/hostname={good}")
    held, _ = HeldNode.open(cluster, chosen, uuid.uuid4().hex[:12], recovery.finish_node)
    held.close()


# -- what no journal names


def dead_lease(cluster: Cluster, node: str) -> None:
    """Of a holder that has given it back, yet not deleted it."""
    body = lease.manifest(RUN, node, cluster.namespace)
    body["spec"]["holderIdentity"] = ""
    api.create(cluster, api.LEASES, body)


def test_of_a_dead_lease_without_a_journal_nothing_is_claimed(
    cluster: Cluster, machines: list[Machine]
) -> None:
    node, _ = machines[0]
    dead_lease(cluster, node)
    result = well(restored(cluster)[node])
    assert (result.label, len(result.notes)) == ("unknown", 1)
    assert "its journal was deleted" in result.notes[0]
    assert is_empty(cluster)


def test_of_a_node_that_is_gone_the_resources_go_too(
    cluster: Cluster, skyhook: Callable[..., str]
) -> None:
    node = f"gone-{uuid.uuid4().hex[:8]}"
    mine = skyhook(node, marks=False)
    NodeJournal(cluster, RUN, node).open(AGENT).begin(cell([mine]))
    (note,) = well(restored(cluster)[node]).notes
    assert "no longer part of the cluster" in note
    assert resources(cluster) == []
    assert is_empty(cluster)


# -- what a run itself must not do, and must


@pytest.fixture
def target(cluster: Cluster, kubeconfig: Path, machines: list[Machine]) -> Iterator[Kubernetes]:
    where = Where(kubeconfig=str(kubeconfig), namespace=cluster.namespace)
    made = Kubernetes(
        TargetConfig(
            where,
            nodes=f"kubernetes.io/hostname={machines[0].node}",
            apply="agent",
            patience_s=PATIENCE_S,
        )
    )
    made.open(RUN, [], {})
    yield made
    made.close()


def test_after_its_lease_was_lost_a_run_starts_no_agent(
    target: Kubernetes, cluster: Cluster
) -> None:
    """The node is another run's by then."""
    target.held.lease.lost_reason = (
        f"node {target.node}: the lease is lost: it is now held by run {OTHER}"
    )
    target.held.lease.lost.set()
    target.held.drop_agent()
    with pytest.raises(
        Refused, match=rf"it is now held by run {OTHER}: this run must not touch it any more"
    ):
        target.held.start_agent()
    assert api.list_(cluster, api.PODS)[0] == []
    target._changed = True  # as within a cell
    with pytest.raises(Refused, match="this run must not touch it any more"):
        target.restore()


def test_an_unwritable_journal_fails_the_cell_without_changes(
    target: Kubernetes, cluster: Cluster, machines: list[Machine], tmp_path: Path
) -> None:
    """The API server may refuse (rights, admission): nothing was changed, and the run goes on."""
    fake = machines[0].fake
    (tweakset,) = resolve(Place(tmp_path).manifest("typed", sysctl="vm.swappiness = 10"))
    typed = cell_of(tweakset)
    api.patch(cluster, api.CONFIGMAPS, target.held.journal.name, {"immutable": True})
    with pytest.raises(TweakRefused, match="immutable"):
        target.apply(typed, tweakset, target.plan(tweakset))
    assert (fake.journal.exists(), fake.get(SWAPPINESS)) == (False, "60")
    assert target.restore() == Restored()
    assert target.environment()


def drifted(cluster: Cluster, node: str) -> str | None:
    found: str | None = (of_node(cluster, node)["metadata"].get("annotations") or {}).get(
        names.DRIFTED
    )
    return found


def test_a_node_that_stays_changed_bars_later_runs_until_restore(
    target: Kubernetes, cluster: Cluster, machines: list[Machine]
) -> None:
    """By the run itself.

    A second journal that is clean does not take that off while the first is stuck.
    """
    node, fake = machines[0]
    fake.machine().begin("left", writes([(SWAPPINESS, "10")]))
    fake.machine().journal.add({"record": "wrote", "path": SWAPPINESS, "observed": "10"})
    target.held.journal.begin(cell())
    fake.put(SWAPPINESS, None)
    fake.real(SWAPPINESS).mkdir()
    target._changed = True
    assert target.restore().stuck
    assert SWAPPINESS in str(drifted(cluster, node))
    target.close()
    NodeJournal(cluster, OTHER, node).open(AGENT)
    assert well(restored(cluster)[node]).stuck
    assert SWAPPINESS in str(drifted(cluster, node))
    fake.real(SWAPPINESS).rmdir()
    fake.put(SWAPPINESS, "60")
    assert not well(restored(cluster)[node]).stuck
    assert drifted(cluster, node) is None
    assert is_empty(cluster)


def test_a_node_with_a_held_machine_is_reported_with_its_holder(
    cluster: Cluster, machines: list[Machine]
) -> None:
    """A local run there, or one of another namespace: no lease of this namespace knows of it.

    The journal stays.
    """
    node, fake = machines[0]
    NodeJournal(cluster, RUN, node).open(AGENT)
    dead_lease(cluster, node)
    with lock.held(fake.state):
        found = restored(cluster)[node]
    assert isinstance(found, MachineHeld), found
    assert "that run puts the node back itself" not in str(found)
    assert str(os.getpid()) in str(found)
    assert len(NodeJournal.unfinished(cluster)) == 1
