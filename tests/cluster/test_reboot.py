"""Boot tokens through the operator's reboot, verified by boot id and /proc/cmdline.

The node is simulated, so is its machine (`operators/machines.py`): package pods and reboots change
a folder, as they would the machine.
"""

from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fixtures.cells import STOCK
from fixtures.kernel.machine import Restored
from fixtures.kubernetes import api, recovery, skyhook
from fixtures.kubernetes.client import Cluster, Where
from fixtures.kubernetes.journal import NodeJournal
from fixtures.kubernetes.settings import TargetConfig
from fixtures.kubernetes.target import Kubernetes
from fixtures.terms import Refused, TweakRefused, TweakSet
from fixtures.tweaks import resolve
from tests.cluster.operators import machines
from tests.cluster.operators.machines import BOOT_ID, CMDLINE
from tests.cluster.runs import LOOK_EVERY_S
from tests.cluster.simulated_agents import (
    MACHINES,
    apply,
    cell_of,
    files,
    machines_of,
    of_node,
    said,
)
from tests.sessions import HOUSE, Place, until

if TYPE_CHECKING:
    from tests.cluster.operators.fixtures import StandIn
    from tests.fake_root import FakeRoot

pytestmark = pytest.mark.needs("reference")

Json = dict[str, Any]
SWAPPINESS = "/proc/sys/vm/swappiness"
OURS = "/etc/default/grub.d/999-boot-tuning.cfg"
STEPS = 5
PATIENCE_S = 120.0


@pytest.fixture
def tweakset(tmp_path: Path) -> TweakSet:
    """A setting of the kernel, and two boot tokens."""
    path = tmp_path / "isolated.yaml"
    package = {
        "version": "1.1.4",
        "image": "ghcr.io/nvidia/skyhook-packages/tuning",
        "interrupt": {"type": "reboot"},
        "configMap": {"sysctl.conf": "vm.swappiness = 10\n", "grub.conf": "isolcpus=1\nnosmt\n"},
    }
    skyhook = {
        "apiVersion": "skyhook.nvidia.com/v1alpha1",
        "kind": "Skyhook",
        "metadata": {"name": "isolated"},
        "spec": {"packages": {"boot": package}},
    }
    path.write_text(yaml.safe_dump(skyhook))
    (found,) = resolve(str(path))
    return found


@pytest.fixture
def machine(
    cluster: Cluster,
    kwok_nodes: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[str, FakeRoot]:
    ((node, fake),) = machines_of(
        tmp_path / "machines", kwok_nodes(1, log=said(STEPS)), monkeypatch
    )
    machines.booted(fake, of_node(cluster, node)["status"]["nodeInfo"]["bootID"])
    return node, fake


@pytest.fixture
def operator(skyhook_operator: StandIn, crds: list[str], machine: tuple[str, FakeRoot]) -> StandIn:
    """Skyhook's, whose pods and reboots change that machine."""
    assert "skyhooks.skyhook.nvidia.com" in crds
    skyhook_operator.start(machines=machine[1].path.parent)
    return skyhook_operator


@pytest.fixture
def target(
    cluster: Cluster,
    kubeconfig: Path,
    machine: tuple[str, FakeRoot],
    operator: StandIn,
    tweakset: TweakSet,
) -> Iterator[Kubernetes]:
    assert operator.running
    where = Where(kubeconfig=str(kubeconfig), namespace=cluster.namespace)
    made = Kubernetes(
        TargetConfig(where, nodes=f"kubernetes.io/hostname={machine[0]}", patience_s=PATIENCE_S)
    )
    made.open(uuid.uuid4().hex[:12], [cell_of(tweakset)], {tweakset.name: tweakset})
    yield made
    made.close()


@pytest.fixture
def journals(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> list[Json]:
    """The cluster journal's content just before each operator resource is created."""
    found: list[Json] = []
    create = api.create

    def look_first(at: Cluster, kind: api.Kind, body: Json) -> Json:
        if kind is api.SKYHOOKS:
            (journal,) = NodeJournal.unfinished(cluster)
            found.append({"makes": body["metadata"]["name"], **(journal.cell or {})})
        return create(at, kind, body)

    monkeypatch.setattr(api, "create", look_first)
    return found


def assert_untouched(cluster: Cluster, node: str) -> None:
    found = of_node(cluster, node)
    assert skyhook.marked_by(found) == set()
    assert not found["spec"].get("unschedulable")
    assert [
        one["metadata"]["name"]
        for one in api.list_(cluster, api.SKYHOOKS, labels="app.kubernetes.io/name=deeptweak")[0]
    ] == []


# -- there and back


def test_one_reboot_applies_the_tokens_and_another_removes_them(
    target: Kubernetes,
    tweakset: TweakSet,
    machine: tuple[str, FakeRoot],
    cluster: Cluster,
    journals: list[Json],
) -> None:
    """And all else of the machine is as it was, to the byte; on the node nothing is left.

    Before each resource is made, also the one that brings the tokens out again, the cluster's
    journal knows it and the way back.
    """
    node, fake = machine
    before, boots, cmdline = files(fake), [fake.get(BOOT_ID)], fake.get(CMDLINE)
    effects = apply(target, tweakset)
    boots.append(fake.get(BOOT_ID))
    assert (fake.get(CMDLINE) or "").endswith(" quiet splash isolcpus=1 nosmt")
    assert effects.changed[SWAPPINESS] == ("60", "10")
    assert OURS in effects.changed
    result = target.restore()
    boots.append(fake.get(BOOT_ID))
    assert result.stuck == {}
    assert {OURS, "/etc/sysctl.d/999-boot-tuning.conf"} <= result.back.keys()
    assert f"node {node} was rebooted and runs without the boot tokens again" in result.notes
    assert files(fake) == before
    assert len(set(boots)) == 3
    assert boots[-1] == of_node(cluster, node)["status"]["nodeInfo"]["bootID"]
    assert_untouched(cluster, node)
    (journal,) = NodeJournal.unfinished(cluster)
    assert journal.cell is None
    assert target.compare()[1] == {}
    there, back = journals
    assert (there["resources"], back["resources"]) == (
        [there["makes"]],
        [there["makes"], back["makes"]],
    )
    for one in journals:
        assert one["label"] == "isolated"
        assert (one["boot"]["cmdline"], one["boot"]["boot_id"]) == (cmdline, boots[0])
        assert one["journal"]


# -- when it does not work


def test_a_reboot_without_the_tokens_is_refused_and_undone(
    target: Kubernetes, tweakset: TweakSet, machine: tuple[str, FakeRoot], cluster: Cluster
) -> None:
    """A file of the machine's owner has the last word there.

    A second reboot takes out what the first has read from /etc/sysctl.d.
    """
    node, fake = machine
    fake.put("/etc/default/grub.d/zz-owner.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet splash"\n')
    before = files(fake)
    with pytest.raises(
        TweakRefused,
        match=r"boot token isolcpus=1 is not in /proc/cmdline of node .* after its reboot",
    ):
        apply(target, tweakset)
    assert files(fake) == before
    assert_untouched(cluster, node)
    apply_stock(target)


def apply_stock(target: Kubernetes) -> None:
    """The node can be measured again."""
    target.apply(cell_of(STOCK), STOCK, target.plan(STOCK))
    assert target.restore().stuck == {}


def test_a_changed_command_line_stops_the_run_until_a_restore(
    target: Kubernetes, tweakset: TweakSet, machine: tuple[str, FakeRoot], cluster: Cluster
) -> None:
    """Somebody has changed the boot loader's settings meanwhile.

    Nothing more is measured; when that is right again, `restore` ends it.
    """
    node, fake = machine
    before = files(fake)
    apply(target, tweakset)
    fake.put(
        "/etc/default/grub.d/50-somebody.cfg",
        'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT debug"\n',
    )
    with pytest.raises(
        Refused, match=r"rebooted, but /proc/cmdline is .* debug', not .* as before"
    ):
        target.restore()
    with pytest.raises(Refused, match=r"could not be put back: .* but /proc/cmdline is"):
        target.environment()  # with which the next cell would begin
    with pytest.raises(Refused, match=r"could not be put back: .* but /proc/cmdline is"):
        apply_stock(target)
    target.close()
    (journal,) = NodeJournal.unfinished(cluster)
    assert journal.cell is not None
    fake.put("/etc/default/grub.d/50-somebody.cfg", None)
    ((name, result),) = recovery.finish_all(
        cluster,
        uuid.uuid4().hex[:12],
        TargetConfig(Where(), nodes="", patience_s=PATIENCE_S),
        print,
    )
    assert name == node
    assert isinstance(result, Restored), result
    assert files(fake) == before
    assert NodeJournal.unfinished(cluster) == []
    assert_untouched(cluster, node)


# -- a run that is killed


def tokens_in_force(fake: FakeRoot, cluster: Cluster, node: str) -> bool:
    return "isolcpus=1" in (fake.get(CMDLINE) or "") and ready(cluster, node)


def ready(cluster: Cluster, node: str) -> bool:
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in of_node(cluster, node)["status"]["conditions"]
    )


def resources(cluster: Cluster) -> list[str]:
    return [
        name
        for journal in NodeJournal.unfinished(cluster)
        for name in (journal.cell or {}).get("resources", ())
    ]


MOMENTS: dict[str, Callable[[FakeRoot, Cluster, str], bool]] = {
    "before-the-reboot": lambda fake, cluster, _: (
        bool(resources(cluster)) and fake.get(OURS) is not None
    ),
    "in-the-first-reboot": lambda _, cluster, node: not ready(cluster, node),
    "between-the-reboots": tokens_in_force,
    "before-the-second-reboot": lambda _, cluster, __: len(resources(cluster)) == 2,
    "in-the-second-reboot": lambda _, cluster, node: (
        len(resources(cluster)) == 2 and not ready(cluster, node)
    ),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_restore_finishes_what_a_killed_run_began(
    moment: str,
    machine: tuple[str, FakeRoot],
    operator: StandIn,
    tweakset: TweakSet,
    cluster: Cluster,
    kubeconfig: Path,
    tmp_path: Path,
) -> None:
    """Wherever it was killed: files, command line, node and namespace are as before."""
    node, fake = machine
    assert operator.running
    before = files(fake)
    place = Place(tmp_path, environment={MACHINES: os.environ[MACHINES], "PYTHONPATH": str(HOUSE)})
    where = [
        "--target=kubernetes",
        f"--kubeconfig={kubeconfig}",
        f"--namespace={cluster.namespace}",
        f"--patience={PATIENCE_S:g}",
    ]
    plan = [
        f"--tweaks={tweakset.path}",
        "--blocks=1",
        f"--steps={STEPS}",
        f"--nodes=kubernetes.io/hostname={node}",
    ]
    process = place.start("-p", "tests.cluster.simulated_agents", *where, *plan)
    until(lambda: MOMENTS[moment](fake, cluster, node), process, LOOK_EVERY_S)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = place.call(sys.executable, "-m", "tests.cluster.simulated_agents", "restore", *where)
    assert done.code == 0, done.out
    assert files(fake) == before
    assert NodeJournal.unfinished(cluster) == []
    assert api.list_(cluster, api.LEASES)[0] == []
    assert api.list_(cluster, api.PODS)[0] == []
    assert_untouched(cluster, node)
    assert ready(cluster, node)
