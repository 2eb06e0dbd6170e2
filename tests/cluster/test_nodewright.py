"""The operator v0.18 to v0.20: serves two kinds, works on NodeWrights, copies Skyhooks.

Nodes are simulated, and so are their machines: what a package's stage does to a machine is done to
a folder (`operators/machines.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fixtures.kernel.machine import Restored
from fixtures.kubernetes import api, names, recovery, skyhook
from fixtures.kubernetes.client import Cluster, Where
from fixtures.kubernetes.journal import NodeJournal
from fixtures.kubernetes.node import candidates
from fixtures.kubernetes.settings import TargetConfig
from fixtures.kubernetes.target import Kubernetes
from fixtures.terms import TweakRefused, TweakSet
from fixtures.tweaks.manifest import parse
from tests.cluster.operators import machines
from tests.cluster.simulated_agents import (
    Machine,
    apply,
    cell_of,
    files,
    machines_of,
    of_node,
    said,
)
from tests.waiting import until

if TYPE_CHECKING:
    from tests.cluster.operators.fixtures import StandIn

pytestmark = pytest.mark.needs("reference")

Json = dict[str, Any]
RUN = "0123456789ab"
SWAPPINESS, KEXEC = "/proc/sys/vm/swappiness", "/proc/sys/kernel/kexec_load_disabled"
TOKENS = "/etc/default/grub.d/90-tool.cfg"
PATIENCE_S = 120.0


def tweakset(image: str = "r/tuning", **given: str) -> TweakSet:
    package = {
        "version": "1.1.4",
        "image": image,
        "configMap": given or {"sysctl.conf": "vm.swappiness = 10\n"},
    }
    manifest = {
        "apiVersion": "skyhook.nvidia.com/v1alpha1",
        "kind": "Skyhook",
        "metadata": {"name": "x"},
    }
    return parse(yaml.safe_dump({**manifest, "spec": {"packages": {"one": package}}}), "mine")


@pytest.fixture
def machine(
    cluster: Cluster,
    kwok_nodes: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Machine:
    ((node, fake),) = machines_of(tmp_path / "machines", kwok_nodes(1, log=said(5)), monkeypatch)
    machines.booted(fake, of_node(cluster, node)["status"]["nodeInfo"]["bootID"])
    fake.put(KEXEC, "0")
    return Machine(node, fake)


@pytest.fixture
def operator(nodewright_operator: StandIn, nodewrights: list[str], machine: Machine) -> StandIn:
    assert {"skyhooks.skyhook.nvidia.com", "nodewrights.nodewright.nvidia.com"} <= set(nodewrights)
    nodewright_operator.start(machines=machine.fake.path.parent)
    return nodewright_operator


@pytest.fixture
def target(
    cluster: Cluster, kubeconfig: Path, machine: Machine, operator: StandIn
) -> Iterator[Kubernetes]:
    assert operator.running
    where = Where(kubeconfig=str(kubeconfig), namespace=cluster.namespace)
    made = Kubernetes(
        TargetConfig(where, nodes=f"kubernetes.io/hostname={machine.node}", patience_s=PATIENCE_S)
    )
    asked = tweakset()
    made.open(uuid.uuid4().hex[:12], [cell_of(asked)], {asked.name: asked})
    yield made
    made.close()


def named(cluster: Cluster, kind: api.Kind) -> list[str]:
    return sorted(one["metadata"]["name"] for one in api.list_(cluster, kind)[0])


def assert_untouched(cluster: Cluster, machine: Machine, before: dict[str, str | None]) -> None:
    assert files(machine.fake) == before
    assert (named(cluster, api.SKYHOOKS), named(cluster, api.NODEWRIGHTS)) == ([], [])
    assert skyhook.marked_by(of_node(cluster, machine.node)) == set()


# -- two kinds


def test_a_nodewright_is_made_and_nothing_of_it_is_left(
    target: Kubernetes, machine: Machine, cluster: Cluster
) -> None:
    """Its stages' pods stay when they have ended; the run follows their Jobs and deletes them."""
    before = files(machine.fake)
    for _ in range(2):
        effects = apply(target, tweakset())
        assert effects.changed[SWAPPINESS] == ("60", "10")
        (name,) = named(cluster, api.NODEWRIGHTS)
        assert named(cluster, api.SKYHOOKS) == []
        kept = api.list_(
            cluster, api.PODS, labels=f"nodewright.nvidia.com/name={name}", namespace=""
        )[0]
        assert sorted(pod["metadata"]["labels"]["nodewright.nvidia.com/stage"] for pod in kept) == [
            "apply",
            "config",
        ]
        assert target.restore().stuck == {}
        assert_untouched(cluster, machine, before)
        assert (
            api.list_(cluster, api.PODS, labels=f"nodewright.nvidia.com/name={name}", namespace="")[
                0
            ]
            == []
        )
    assert target.compare()[1] == {}


def test_restore_takes_away_a_skyhook_and_its_copy(
    machine: Machine, operator: StandIn, cluster: Cluster
) -> None:
    """From an older version's run: the Skyhook has no status; its copy has changed the node."""
    assert operator.running
    before = files(machine.fake)
    name = names.tweak_of(RUN, machine.node, 1)
    machine.fake.machine().watch("left", [])
    NodeJournal(cluster, RUN, machine.node).open().begin(
        {"label": "left", "resources": [name], "boot": None}
    )
    (asked,) = yaml.safe_load_all(tweakset().text)
    spec = {**asked["spec"], "nodeSelectors": {"matchLabels": {names.HOSTNAME: machine.node}}}
    api.create(
        cluster,
        api.SKYHOOKS,
        {
            "metadata": {"name": name, "labels": names.labels(RUN, "tweak", machine.node)},
            "spec": spec,
        },
    )
    until(
        lambda: (
            (api.get(cluster, api.NODEWRIGHTS, name) or {}).get("status", {}).get("status")
            == "complete"
        )
    )
    assert "status" not in (api.get(cluster, api.SKYHOOKS, name) or {})
    assert machine.fake.get(SWAPPINESS) == "10"
    legacy = {f"skyhook.nvidia.com/status_{name}": "complete"}  # as copied from there, and kept
    api.patch(cluster, api.NODES, machine.node, {"metadata": {"annotations": legacy}})
    chosen = TargetConfig(Where(), nodes="", patience_s=PATIENCE_S)
    ((node, result),) = recovery.finish_all(cluster, uuid.uuid4().hex[:12], chosen, print)
    assert node == machine.node
    assert isinstance(result, Restored), result
    assert result.back[SWAPPINESS] == ("10", "60")
    assert_untouched(cluster, machine, before)
    assert NodeJournal.unfinished(cluster) == []


def test_a_node_with_marks_of_a_renamed_skyhook_is_available(
    machine: Machine, operator: StandIn, cluster: Cluster
) -> None:
    """Its NodeWright goes on; as the guide says, the Skyhook goes, and its marks stay for a day."""
    assert operator.running
    spec = {"nodeSelectors": {"matchLabels": {names.HOSTNAME: machine.node}}, "packages": {}}
    api.create(cluster, api.NODEWRIGHTS, {"metadata": {"name": "theirs"}, "spec": spec})
    until(
        lambda: (
            (api.get(cluster, api.NODEWRIGHTS, "theirs") or {}).get("status", {}).get("status")
            == "complete"
        )
    )
    legacy = {
        "skyhook.nvidia.com/status_theirs": "complete",
        "skyhook.nvidia.com/nodeState_theirs": "{}",
    }
    api.patch(cluster, api.NODES, machine.node, {"metadata": {"annotations": legacy}})
    free, left_out = candidates(cluster, f"kubernetes.io/hostname={machine.node}")
    assert ([one.name for one in free], left_out) == ([machine.node], {})


# -- packages of any kind


def test_a_change_that_cannot_be_put_back_is_refused(
    target: Kubernetes, machine: Machine, cluster: Cluster
) -> None:
    """The fake kernel takes it back, so the node can be measured again."""
    before = files(machine.fake)
    with pytest.raises(
        TweakRefused, match=rf"of 'mine': {KEXEC} is '1' now: once 1, it stays 1 until a reboot"
    ):
        apply(target, tweakset("r/hardening", writes=f"{KEXEC} 1\n"))
    assert_untouched(cluster, machine, before)


def test_boot_tokens_without_a_reboot_are_refused_and_forgotten(
    target: Kubernetes, machine: Machine, cluster: Cluster
) -> None:
    """The package has told the boot loader already: it is told again when the files are back."""
    before = files(machine.fake)
    line = 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=256M"'
    with pytest.raises(
        TweakRefused, match=r"it changed /etc/default/grub.d: boot tokens take effect with a reboot"
    ):
        apply(target, tweakset("r/kdump", writes=f"{TOKENS} {line}\n"))
    assert_untouched(cluster, machine, before)
