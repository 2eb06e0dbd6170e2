"""Whole cluster runs, each session a process, and their traces in cluster, node and kernel."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fixtures.kernel import lock, pods
from fixtures.kernel.state_dirs import ROOT_STATE_DIR
from fixtures.kernel.tunables import Tunables, diff
from tests.cluster.rig import clients
from tests.kernel_lock import kernel_held
from tests.sessions import Done, Place, caught

if TYPE_CHECKING:
    import subprocess

    from tests.cluster.rig.clients import Client

Json = dict[str, Any]
PATIENCE_S = 300.0
LOOK_EVERY_S = 0.03  # at what takes requests, or a walk through /proc
HELD_S = 900.0  # other tests may have this machine's kernel for so long
GROUPS = ("skyhook.nvidia.com", "nodewright.nvidia.com", "deeptweak")
OPERATOR_NAMESPACE = "skyhook"
SWAPPINESS = Path("/proc/sys/vm/swappiness")


@dataclass(kw_only=True)
class ClusterPlace(Place):
    """A place whose sessions run on a cluster, in one namespace.

    They inherit nothing that says which cluster: only options do.
    """

    api: Client
    node: str
    kubeconfig: Path
    namespace: str
    image: str
    overlay: Path
    patience_s: float = PATIENCE_S

    def command(self, *options: str, workload: str = "idle") -> list[str]:
        """The main job on the cluster, by the node agent unless an option says otherwise."""
        apply = (
            () if any(option.startswith("--apply=") for option in options) else ("--apply=agent",)
        )
        ours = [
            option
            for option in (*apply, *self.pod_options)
            if not any(o.startswith(option.partition("=")[0] + "=") for o in options)
        ]
        return super().command(
            "--target=kubernetes", *self.where, *ours, *options, workload=workload
        )

    @property
    def where(self) -> list[str]:
        return [f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}"]

    @property
    def pod_options(self) -> list[str]:
        return [f"--image={self.image}", f"--pod-overlay={self.overlay}"]

    @property
    def restore_command(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "fixtures",
            "restore",
            "--target=kubernetes",
            *self.where,
            *self.pod_options,
        ]

    def restore(self, *options: str) -> Done:
        """Finish what killed runs have left in the namespace."""
        return self.call(*self.restore_command, *options)

    def env(self) -> dict[str, str]:
        """No way to the cluster but the one that is given."""
        return {
            name: value
            for name, value in super().env().items()
            if not name.startswith(("KUBE", "DEEPTWEAK_RIG"))
        }

    @property
    def journal(self) -> Path:
        """The node's own journal: it is this machine's."""
        return ROOT_STATE_DIR / self.namespace / "journal.jsonl"

    # -- what is there now

    def agent_runs(self) -> bool:
        found = (
            clients.of(self.api)
            .list_namespaced_pod(self.namespace, label_selector="app.kubernetes.io/component=agent")
            .items
        )
        return any(p.status.phase == "Running" and not p.metadata.deletion_timestamp for p in found)

    def workloads(self) -> list[Any]:  # see tests/cluster/rig/clients.py
        """Our pods in which a workload lives.

        By its process: the kubelet tells of pods a second late, and never of one that was short.
        """
        alive = set(pods.workloads(Path("/")).values())
        found = clients.of(self.api).list_namespaced_pod(self.namespace).items if alive else []
        return [p for p in found if p.metadata.uid in alive]

    def pod(self, component: str) -> Any:
        (found,) = (
            clients.of(self.api)
            .list_namespaced_pod(
                self.namespace, label_selector=f"app.kubernetes.io/component={component}"
            )
            .items
        )
        return found

    def traces(self) -> Json:
        """All that a run writes in the cluster, as it is now.

        Equal before and after: it left nothing.
        """
        core = clients.of(self.api)
        lists = {
            "pods": core.list_namespaced_pod,
            "configmaps": core.list_namespaced_config_map,
            "jobs": clients.of(self.api, "BatchV1Api").list_namespaced_job,
            "leases": clients.of(self.api, "CoordinationV1Api").list_namespaced_lease,
        }
        found: Json = {
            what: [one.metadata.name for one in ask(self.namespace).items]
            for what, ask in lists.items()
        }
        found["configmaps"] = [name for name in found["configmaps"] if name != "kube-root-ca.crt"]
        found["resources"] = [
            one["metadata"]["name"]
            for group in ("skyhook", "nodewright")
            for one in self.resources(group)
        ]
        found["operator"] = [
            one.metadata.name
            for ask in (core.list_namespaced_pod, core.list_namespaced_config_map)
            for one in ask(OPERATOR_NAMESPACE).items
            if one.metadata.name.startswith("dt-")
        ]
        node = core.read_node(self.node)
        marks = [
            *(node.metadata.annotations or {}),
            *node.metadata.labels,
            *(c.type for c in node.status.conditions),
        ]
        found["node"] = sorted(mark for mark in marks if mark.startswith(GROUPS))
        found["cordoned"] = bool(node.spec.unschedulable)
        found["journal"] = self.journal.exists()
        return found

    def resources(self, group: str = "skyhook") -> list[Json]:
        """Those of an operator, of whomever."""
        with clients.if_there():
            custom = clients.of(self.api, "CustomObjectsApi")
            found: list[Json] = custom.list_cluster_custom_object(
                f"{group}.nvidia.com", "v1alpha1", f"{group}s"
            )["items"]
            return found
        return []  # no such definition


@contextlib.contextmanager
def in_force(
    place: ClusterPlace, process: subprocess.Popen[str], value: int, *, doomed: bool = False
) -> Iterator[None]:
    """Freeze a session and its workload in a cell with this swappiness, throughout the block.

    `doomed`: the workload is not let go afterwards. What the block did will kill it, sooner or
        later; it must not come to its end before.
    """
    held: set[int] = set()

    def holds() -> bool:
        """Keep frozen workloads frozen, so that none ends before the session is frozen, too."""
        if swappiness_is(value) and place.workloads():
            alive = pods.workloads(Path("/"))
            for pid in alive.keys() - held:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    held.add(pid)
            return bool(held & alive.keys())
        return False

    try:
        with caught(holds, process, LOOK_EVERY_S):
            yield
    finally:
        for pid in () if doomed else held:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def swappiness_is(value: int) -> bool:
    return int(SWAPPINESS.read_text()) == value


@contextlib.contextmanager
def kernel_as_found() -> Iterator[None]:
    """The kernel of this machine for the test alone, and as it was afterwards."""
    with kernel_held(HELD_S):
        before = Tunables().snapshot()
        yield
        changed = diff(before, Tunables().snapshot())
        assert changed == {}, changed


@contextlib.contextmanager
def place_for(here: Here, folder: Path, namespace: str) -> Iterator[ClusterPlace]:
    """A place in a namespace.

    The kernel is held by this process and lent to the agent, whose journal gets a folder of its
    own.
    """
    state = ROOT_STATE_DIR / namespace
    laid = yaml.safe_load(here.overlay.read_text()) or {}
    container = laid.setdefault("container", {})
    lent = {lock.LENT: str(os.getpid()), "DEEPTWEAK_STATE_DIR": str(state)}
    container["env"] = [
        *container.get("env", ()),
        *({"name": name, "value": value} for name, value in lent.items()),
    ]
    overlay = folder / "overlay.yaml"
    overlay.write_text(yaml.safe_dump(laid))
    place = ClusterPlace(
        folder,
        api=here.api,
        node=here.node,
        kubeconfig=here.kubeconfig,
        namespace=namespace,
        image=here.image,
        overlay=overlay,
    )
    with kernel_as_found():
        before = place.traces()
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, state, ignore_errors=True)
            stack.callback(place.clear_up)
            yield place
            place.clear_up()
            after = place.traces()
            # One failure is enough: the next test is to find nothing of this one.
            if after != before:
                stack.callback(lambda: print(place.restore().out))
            assert after == before, {
                what: after[what] for what in after if after[what] != before[what]
            }


@dataclass(frozen=True)
class Here:
    """How to reach the cluster of the tests, whose node is this machine."""

    api: Client
    kubeconfig: Path
    node: str
    image: str
    overlay: Path


@pytest.fixture(scope="package")
def here(api: Client, kubeconfig: Path, node_name: str, image: str, overlay_file: Path) -> Here:
    """The cluster, if its node is this machine: tests read its kernel without the agent."""
    core = clients.of(api)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    if core.read_node(node_name).status.node_info.boot_id != boot_id:
        pytest.skip("the node is another machine: its kernel is out of reach from here")
    return Here(api, kubeconfig, node_name, image, overlay_file)


@pytest.fixture
def place(here: Here, namespace: str, tmp_path: Path) -> Iterator[ClusterPlace]:
    with place_for(here, tmp_path, namespace) as made:
        yield made
