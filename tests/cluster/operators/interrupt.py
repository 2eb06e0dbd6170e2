"""Interrupt: cordon, wait for protected pods, evict others, run, uncordon; simulate reboots."""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from . import packages, seen
from .api import CORE, NODES, STRATEGIC
from .marks import compact, labels_of, matches, name_of, notes_of
from .view import View, now

if TYPE_CHECKING:
    from .skyhook import Operator

Object = dict[str, Any]
SIMULATED = "kwok.x-k8s.io/node"
CORDON_TAINT = "node.kubernetes.io/unschedulable"
DOWN_S = 4.0  # how long a played reboot keeps a node away, divided by `speed`


def _interrupts(view: View) -> bool:
    return any(view.last_stage(p) == "post-interrupt" for p in view.packages.values())


def gate(operator: Operator, view: View) -> bool:
    """Tell whether packages may run: always without an interrupt, else once nodes are drained.

    Until then the status stays `waiting`, without any reason, as the real one's does.
    """
    if not _interrupts(view):
        return True
    free = True
    for node in view.nodes:
        if view.node_done(node) or view.state(node):
            continue  # it was drained before its first stage
        if view.marks.cordon not in notes_of(node):
            view.mark(node, annotations={view.marks.cordon: "true"}, spec={"unschedulable": True})
            view.churn()
        free &= _drained(operator, view, node)
    if not free:
        operator.wake(0.2)
    return free


def _drained(operator: Operator, view: View, node: Object) -> bool:
    pods = operator.api.list(f"{CORE}/pods", fieldSelector=f"spec.nodeName={name_of(node)}")
    going = [p for p in pods if p["status"].get("phase") in ("Pending", "Running")]
    guarded = view.hook["spec"].get("podNonInterruptLabels") or {}
    if guarded and any(matches(guarded, labels_of(p)) for p in going):
        return False
    others = [p for p in going if not _stays(p) and "deletionTimestamp" not in p["metadata"]]
    evicted = [operator.api.evict(p["metadata"]["namespace"], name_of(p)) for p in others]
    return all(evicted)


def _stays(pod: Object) -> bool:
    """The system's pods, those that tolerate a cordon, and the operator's own."""
    if pod["metadata"]["namespace"] == "kube-system" or seen.about(pod):
        return True
    tolerated = pod["spec"].get("tolerations") or []
    return any(
        t.get("key", CORDON_TAINT) == CORDON_TAINT and t.get("effect", "NoSchedule") == "NoSchedule"
        for t in tolerated
    )


def uncordon(view: View, node: Object) -> Object:
    if view.marks.cordon not in notes_of(node):
        return {}
    return {"annotations": {view.marks.cordon: None}, "spec": {"unschedulable": None}}


def began(operator: Operator, view: View, node: Object, package: Object) -> None:
    """The interrupt pod is there: on a simulated node play the reboot.

    On a real node the pod itself refuses.
    """
    name = name_of(node)
    if package["interrupt"]["type"] == "reboot" and SIMULATED in notes_of(node):
        operator.rebooting.add(packages.pod_name(view.name, package, "interrupt", name))
        threading.Thread(target=_reboot, args=(operator, view, name, package), daemon=True).start()


def _reboot(operator: Operator, view: View, node: str, package: Object) -> None:
    """NotReady, a new boot id, Ready; the interrupt counts as done when the node is back.

    Meanwhile nobody plays its kubelet: KWOK would have it Ready again at once.
    """
    path = f"{NODES}/{node}/status"
    simulated_by = notes_of(operator.api.get(f"{NODES}/{node}") or {"metadata": {}}).get(SIMULATED)
    operator.api.patch(f"{NODES}/{node}", {"metadata": {"annotations": {SIMULATED: None}}})

    def ready(*, is_ready: bool) -> Object:
        reason = "KubeletReady" if is_ready else "KubeletNotReady"
        return {
            "type": "Ready",
            "status": str(is_ready),
            "reason": reason,
            "message": "a reboot that the stand-in plays",
            "lastTransitionTime": now(),
        }

    operator.api.patch(path, {"status": {"conditions": [ready(is_ready=False)]}}, content=STRATEGIC)
    time.sleep(DOWN_S / operator.speed)
    boot_id = str(uuid.uuid4())
    operator.machines.reboot(node, boot_id)
    back = {"status": {"conditions": [ready(is_ready=True)], "nodeInfo": {"bootID": boot_id}}}
    operator.api.patch(path, back, content=STRATEGIC)
    operator.api.patch(f"{NODES}/{node}", {"metadata": {"annotations": {SIMULATED: simulated_by}}})
    found = operator.api.get(f"{NODES}/{node}")
    if found is not None:
        state = view.state(found)
        done = {**state, seen.key(package): seen.entry(package, "interrupt", "complete")}
        operator.api.patch(
            f"{NODES}/{node}",
            {"metadata": {"annotations": {view.marks.state: compact(dict(sorted(done.items())))}}},
        )
    operator.api.delete(
        f"{operator.pods_path}/{packages.pod_name(view.name, package, 'interrupt', node)}",
        grace_s=0,
    )
