"""Stand-in for NVIDIA Skyhook's operator, modelled on recordings, against a real API server.

A pod's events are noted on its node, then every resource is brought one step on. All that it knows
stands in the cluster, so it can be killed and started at any moment, as the real one can.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from .api import CORE, NODES, STRATEGIC, Api, ApiFailed, Gone
from .machines import Machines
from .marks import (
    GROUP,
    NAMESPACE,
    Marks,
    compact,
    entry,
    labels_of,
    matches,
    name_of,
    notes_of,
    now,
)
from .packages import Look, config_map_name, owner, pod, pod_name

Object = dict[str, Any]
HOOKS = f"/apis/{GROUP}/v1alpha1/skyhooks"
PODS = f"{CORE}/namespaces/{NAMESPACE}/pods"
FINALIZER = f"{GROUP}/skyhook"
VERSION = "dev"
POLL_S = 2.0  # divided by `speed`
ERRORING_SEEN_S = 0.035
STAGES = ("apply", "config", "interrupt", "post-interrupt")
SIMULATED = "kwok.x-k8s.io/node"
CORDON_TAINT = "node.kubernetes.io/unschedulable"
DOWN_S = 4.0  # how long a played reboot keeps a node away, divided by `speed`


@dataclass
class Operator:
    """The stand-in: `run` never returns."""

    api: Api
    look: Look
    speed: float = 1.0
    machines: Machines = field(default_factory=lambda: Machines(None))
    events: queue.Queue[Object] = field(default_factory=queue.Queue)
    rebooting: set[str] = field(default_factory=set)  # interrupt pods of played reboots

    def run(self) -> None:
        if self.look.fault == "absent":
            while True:
                time.sleep(3600)
        self.api.create(f"{CORE}/namespaces", {"metadata": {"name": NAMESPACE}})
        for path, query in ((HOOKS, {}), (PODS, {"labelSelector": f"{GROUP}/name"}), (NODES, {})):
            self.api.follow(path, self.hear, **query)
        while True:
            try:
                self.turn()
            except Gone:
                continue  # it was deleted under our hands: look anew
            except ApiFailed as failed:
                print(f"stand-in: {failed}", flush=True)
                time.sleep(0.2)

    def hear(self, type_: str, thing: Object) -> None:
        package = f"{GROUP}/package" in notes_of(thing) and type_ != "DELETED"
        self.events.put(thing if package else {})

    def turn(self) -> None:
        """Wait for an event (or the poll), take all events, reconcile once."""
        try:
            happened = [self.events.get(timeout=POLL_S / self.speed)]
        except queue.Empty:
            happened = []
        while not self.events.empty():
            happened.append(self.events.get())
        for thing in filter(None, happened):
            self.pod_changed(thing)
        nodes = self.api.list(NODES)
        for hook in self.api.list(HOOKS):
            if "deletionTimestamp" in hook["metadata"]:
                self.let_go(hook)
            else:
                selector = hook["spec"].get("nodeSelectors") or {}
                self.advance(
                    View(self.api, hook, [n for n in nodes if matches(selector, labels_of(n))])
                )

    def pod_changed(self, changed: Object) -> None:
        """Note on the node what the pod came to; a pod that has done its work is deleted.

        It writes also when the resource is gone: a pod killed with it is noted as `erroring`.
        """
        statuses = changed.get("status", {}).get("initContainerStatuses") or []
        if self.look.fault == "dies-midway" and statuses:
            print("stand-in: dies, as it was told to", flush=True)
            os._exit(70)
        name, deleted = name_of(changed), "deletionTimestamp" in changed["metadata"]
        if name in self.rebooting:
            return  # KWOK ends every pod well; this one ends with its node's reboot
        package = json.loads(notes_of(changed)[f"{GROUP}/package"])
        ends = [c.get("state", {}).get("terminated") for c in statuses]
        if any(end and end["exitCode"] for end in ends):
            state = "erroring"
        elif statuses and all(ends) and len(ends) == len(changed["spec"]["initContainers"]):
            state = "complete"
        else:
            return
        if state == "complete" and deleted:
            return
        node = self.api.get(f"{NODES}/{changed['spec']['nodeName']}")
        if node is not None:
            note_end(self.api, node, package, state)
        if state == "complete":
            self.api.delete(f"{PODS}/{name}", grace_s=0)

    def let_go(self, hook: Object) -> None:
        """A deleted resource: off with the finalizer, then its config maps and its pods.

        What it left on nodes stays there.
        """
        name = name_of(hook)
        try:
            self.api.patch(f"{HOOKS}/{name}", {"metadata": {"finalizers": None}})
        except Gone:
            return
        for kind in ("configmaps", "pods"):
            path = f"{CORE}/namespaces/{NAMESPACE}/{kind}"
            for thing in self.api.list(path, labelSelector=f"{GROUP}/name={name}"):
                if "deletionTimestamp" not in thing["metadata"]:
                    self.api.delete(f"{path}/{name_of(thing)}")

    def advance(self, view: View) -> None:
        self.introduce(view)
        status = view.status.get("status")
        if status == "complete":
            return
        if status is None and view.done():  # no node, or the marks of an earlier resource
            view.completed()
            return
        self.config_maps(view)
        if status is None:
            for node in view.nodes:
                view.mark(node, status="waiting")
            view.write(status="unknown", nodeStatus=view.node_statuses())
            view.write(status="waiting")
        if self.drained(view):
            for node in view.nodes:
                self.run_on(view, node)
        self.conclude(view)

    def introduce(self, view: View) -> None:
        """The first words about a new resource, then finalizer and names in generation 2."""
        if "completeNodes" not in view.status:
            for node in view.nodes:
                view.mark(node, annotations={view.marks.version: VERSION})
                if self.look.fault == "left-over":
                    done = {
                        key(p): entry(p, view.stages(p)[-1], "complete")
                        for p in view.packages.values()
                    }
                    view.mark(node, status="complete", state=done)
            view.write(completeNodes=view.counted())
            view.meta({"metadata": {"annotations": {f"{GROUP}/version": VERSION}}})
        if FINALIZER not in (view.hook["metadata"].get("finalizers") or []):
            names = {name: {"name": name} for name in view.packages}
            view.meta({"metadata": {"finalizers": [FINALIZER]}, "spec": {"packages": names}})

    def config_maps(self, view: View) -> None:
        path = f"{CORE}/namespaces/{NAMESPACE}/configmaps"
        there = {name_of(m) for m in self.api.list(path, labelSelector=f"{GROUP}/name={view.name}")}
        for package in view.packages.values():
            name = config_map_name(view.name, package)
            if package.get("configMap") and name not in there:
                meta = {
                    "name": name,
                    "labels": {f"{GROUP}/name": view.name},
                    "ownerReferences": owner(view.hook),
                }
                self.api.create(path, {"metadata": meta, "data": package["configMap"]})

    def run_on(self, view: View, node: Object) -> None:
        """Create each package's next pod on this node, unless one of it is still there."""
        for package in view.packages.values():
            stage, state = view.next_stage(node, package), view.marks.state_of(node)
            if stage is None:
                continue
            if self.look.fault != "stuck":
                body = pod(view.hook, package, stage, name_of(node), self.look)
                if self.api.create(PODS, body) is None:
                    continue  # one of this name is still there
                self.machines.carry_out(name_of(node), package, stage)
                if stage == "interrupt":
                    self.reboot(view, name_of(node), package)
            elif key(package) in state:
                continue
            state[key(package)] = entry(package, stage, "in_progress")
            view.mark(node, status="in_progress", state=state)
            view.condition(node, complete=False, erroring=False)
            view.write(nodeState=view.node_states(), nodeStatus=view.node_statuses())

    def conclude(self, view: View) -> None:
        for node in view.nodes:
            status = view.marks.status_of(node)
            if view.node_done(node) and status != "complete":
                view.condition(node, complete=True, erroring=False)
                cordoned = view.marks.cordon in notes_of(node)
                more: Object = {"annotations": {view.marks.cordon: None}} if cordoned else {}
                more |= {"spec": {"unschedulable": None}} if cordoned else {}
                view.mark(node, status="complete", **more)
            elif status == "erroring":
                view.condition(node, complete=False, erroring=True)
        of = {view.marks.status_of(node) for node in view.nodes}
        if of == {"complete"}:
            view.completed()
            return
        status = next((s for s in ("erroring", "in_progress") if s in of), "waiting")
        view.write(status=status, nodeState=view.node_states(), nodeStatus=view.node_statuses())
        if status == "erroring" and self.look.fault == "erroring":
            time.sleep(ERRORING_SEEN_S)
            for node in view.nodes:
                view.mark(node, status="in_progress")
            view.write(status="in_progress", nodeStatus=view.node_statuses())

    # -- interrupts

    def drained(self, view: View) -> bool:
        """Tell whether packages may run: always without an interrupt, else once nodes are drained.

        Until then the status stays `waiting`, without any reason, as the real one's does.
        """
        if not any(package.get("interrupt") for package in view.packages.values()):
            return True
        free = True
        for node in view.nodes:
            if view.marks.state_of(node):
                continue  # it was drained before its first stage
            if view.marks.cordon not in notes_of(node):
                spec = {"unschedulable": True}
                view.mark(node, annotations={view.marks.cordon: "true"}, spec=spec)
            of_node = self.api.list(f"{CORE}/pods", fieldSelector=f"spec.nodeName={name_of(node)}")
            for one in of_node:
                going = one["status"].get("phase") in ("Pending", "Running")
                if going and not stays(one) and "deletionTimestamp" not in one["metadata"]:
                    free &= self.api.evict(one["metadata"]["namespace"], name_of(one))
        return free

    def reboot(self, view: View, node: str, package: Object) -> None:
        """Play the reboot of a simulated node; on a real node the pod itself refuses."""
        if SIMULATED in notes_of(self.api.get(f"{NODES}/{node}") or {"metadata": {}}):
            self.rebooting.add(pod_name(view.name, package, "interrupt", node))
            threading.Thread(target=self._reboot, args=(view, node, package), daemon=True).start()

    def _reboot(self, view: View, node: str, package: Object) -> None:
        """NotReady, a new boot id, Ready; the interrupt counts as done when the node is back.

        Meanwhile nobody plays its kubelet: KWOK would have it Ready again at once.
        """
        path = f"{NODES}/{node}"
        simulated_by = notes_of(self.api.get(path) or {"metadata": {}}).get(SIMULATED)
        self.api.patch(path, {"metadata": {"annotations": {SIMULATED: None}}})

        def say(*, ready: bool, **more: Object) -> None:
            condition = {
                "type": "Ready",
                "status": str(ready),
                "reason": "KubeletReady" if ready else "KubeletNotReady",
                "message": "a reboot that the stand-in plays",
                "lastTransitionTime": now(),
            }
            body = {"status": {"conditions": [condition], **more}}
            self.api.patch(f"{path}/status", body, content=STRATEGIC)

        say(ready=False)
        time.sleep(DOWN_S / self.speed)
        boot_id = str(uuid.uuid4())
        self.machines.reboot(node, boot_id)
        say(ready=True, nodeInfo={"bootID": boot_id})
        self.api.patch(path, {"metadata": {"annotations": {SIMULATED: simulated_by}}})
        found = self.api.get(path)
        if found is not None:
            state = view.marks.state_of(found)
            state[key(package)] = entry(package, "interrupt", "complete")
            notes = {view.marks.state: compact(dict(sorted(state.items())))}
            self.api.patch(path, {"metadata": {"annotations": notes}})
        name = pod_name(view.name, package, "interrupt", node)
        self.api.delete(f"{PODS}/{name}", grace_s=0)


def stays(running: Object) -> bool:
    """The system's pods, those that tolerate a cordon, and the operator's own."""
    if running["metadata"]["namespace"] in {"kube-system", NAMESPACE}:
        return True
    return any(
        t.get("key", CORDON_TAINT) == CORDON_TAINT and t.get("effect", "NoSchedule") == "NoSchedule"
        for t in running["spec"].get("tolerations") or []
    )


def key(package: Object) -> str:
    return f"{package['name']}|{package['version']}"


def note_end(api: Api, node: Object, package: Object, ended: str) -> None:
    marks = Marks(package["skyhook"])
    state = marks.state_of(node)
    old = state.get(key(package))
    if old is None or old["stage"] != package["stage"] or old["state"] == "complete":
        return
    if old["state"] == ended == marks.status_of(node):
        return
    state[key(package)] = entry(package, package["stage"], ended)
    notes = {marks.state: compact(dict(sorted(state.items())))}
    meta: Object = {"annotations": notes}
    if ended == "erroring":
        notes[marks.status] = ended
        meta["labels"] = {marks.status: ended}
    api.patch(f"{NODES}/{name_of(node)}", {"metadata": meta})


class View:
    """A Skyhook and its matching nodes, kept up to date by its own writes."""

    def __init__(self, api: Api, hook: Object, nodes: list[Object]) -> None:
        self.api, self.hook, self.nodes = api, hook, nodes
        self.name = name_of(hook)
        self.marks = Marks(self.name)
        self.packages: dict[str, Object] = {
            name: {**package, "name": name}
            for name, package in (hook["spec"].get("packages") or {}).items()
        }

    @property
    def status(self) -> Object:
        return self.hook.get("status") or {}

    @staticmethod
    def stages(package: Object) -> tuple[str, ...]:
        return STAGES if package.get("interrupt") else STAGES[:2]

    def next_stage(self, node: Object, package: Object) -> str | None:
        """The stage that this package has to run (again) on this node; None when it is done."""
        stages, now_in = self.stages(package), self.marks.state_of(node).get(key(package))
        if now_in is None:
            return stages[0]
        ended = now_in["state"] == "complete"
        return next(iter(stages[stages.index(now_in["stage"]) + ended :]), None)

    def node_done(self, node: Object) -> bool:
        return not any(self.next_stage(node, package) for package in self.packages.values())

    def done(self) -> bool:
        """Whether every node is done: true also where there is no node at all."""
        return all(map(self.node_done, self.nodes))

    def counted(self) -> str:
        return f"{sum(map(self.node_done, self.nodes))}/{len(self.nodes)}"

    def write(self, **fields: object) -> None:
        if any(self.status.get(name) != value for name, value in fields.items()):
            self.hook = self.api.patch(f"{HOOKS}/{self.name}/status", {"status": fields})

    def meta(self, body: Object) -> None:
        self.hook = self.api.patch(f"{HOOKS}/{self.name}", body)

    def mark(
        self,
        node: Object,
        *,
        status: str | None = None,
        state: Object | None = None,
        annotations: Object | None = None,
        **more: Object,
    ) -> None:
        """Write the operator's node annotations and label at once (and `spec`, for a cordon)."""
        notes: Object = {**(annotations or {})}
        meta: Object = {"annotations": notes}
        if state is not None:
            notes[self.marks.state] = compact(dict(sorted(state.items())))
        if status is not None:
            notes[self.marks.status] = status
            meta["labels"] = {self.marks.status: status}
        _renew(node, self.api.patch(f"{NODES}/{name_of(node)}", {"metadata": meta, **more}))

    def condition(self, node: Object, *, complete: bool, erroring: bool) -> None:
        """The two node conditions, written where they differ."""
        wanted = self.marks.conditions(complete=complete, erroring=erroring)
        have = {c["type"]: c["status"] for c in node["status"].get("conditions") or []}
        changed = [
            {**c, "lastTransitionTime": now(), "lastHeartbeatTime": now()}
            for c in wanted
            if have.get(c["type"]) != c["status"]
        ]
        if changed:
            path = f"{NODES}/{name_of(node)}/status"
            body = {"status": {"conditions": changed}}
            _renew(node, self.api.patch(path, body, content=STRATEGIC))

    def node_statuses(self) -> dict[str, str]:
        return {name_of(n): self.marks.status_of(n) or "waiting" for n in self.nodes}

    def node_states(self) -> Object:
        return {name_of(node): self.marks.state_of(node) for node in self.nodes}

    def completed(self) -> None:
        """Complete, then counted, as recorded; the only write of observedGeneration."""
        self.write(
            status="complete",
            observedGeneration=self.hook["metadata"]["generation"],
            nodeState=self.node_states(),
            nodeStatus=self.node_statuses(),
        )
        time.sleep(0.015)
        self.write(completeNodes=self.counted())


def _renew(node: Object, now_is: Object) -> None:
    node.clear()
    node.update(now_is)
