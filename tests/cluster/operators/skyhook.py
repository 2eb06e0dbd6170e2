"""Stand-in for NVIDIA Skyhook's operator, modelled on recordings, against a real API server.

One loop: what a watch says of a pod is noted on its node (`seen`), then every resource is brought
one step on (`Operator.reconcile`). All that it knows stands in the cluster, so it can be killed and
started at any moment, as the real one can.
"""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import interrupt, seen, stages
from .api import CORE, NODES, Api, ApiFailed, Gone
from .machines import Machines
from .marks import GROUP, NAMESPACE, PACKAGE_KEY, labels_of, matches, name_of, notes_of
from .packages import Look, config_map_name, owner
from .view import HOOKS, View

Object = dict[str, Any]
VERSION = "dev"
# Waits of the real operator, in seconds, divided by `speed`. What the kubelet takes cannot be
# shortened.
POLL_S = 2.0
AFTER_REMOVAL_S = (
    4.0  # a package was taken out or changed its version: so long the status stays `complete`
)
ERRORING_SEEN_S = 0.035  # how long `erroring` shows while an uninstall fails; not shortened either


@dataclass
class Operator:
    """The stand-in: `run` never returns."""

    api: Api
    look: Look
    speed: float = 1.0
    events: queue.Queue[tuple[str, str, Object]] = field(default_factory=queue.Queue)
    # (uid, generation) → not before this moment.
    held: dict[tuple[str, int], float] = field(default_factory=dict)
    churned: dict[str, float] = field(default_factory=dict)
    machines: Machines = field(default_factory=lambda: Machines(None))
    rebooting: set[str] = field(default_factory=set)  # interrupt pods of played reboots

    @property
    def fault(self) -> str | None:
        return self.look.fault

    def run(self) -> None:
        if self.fault == "absent":
            while True:
                time.sleep(3600)
        self.api.create(f"{CORE}/namespaces", {"metadata": {"name": NAMESPACE}})
        for kind, path, query in (
            ("Skyhook", HOOKS, {}),
            ("Pod", self.pods_path, {"labelSelector": f"{GROUP}/name"}),
            ("Node", NODES, {}),
        ):
            self.api.follow(path, self.hears(kind), **query)
        while True:
            try:
                self.turn()
            except Gone:
                continue  # it was deleted under our hands: look anew
            except ApiFailed as failed:
                print(f"stand-in: {failed}", flush=True)
                time.sleep(0.2)

    def hears(self, kind: str) -> Callable[[str, Object], None]:
        """What a watch of this kind does with an event: the loop takes it."""
        return lambda type_, thing: self.events.put((kind, type_, thing))

    @property
    def pods_path(self) -> str:
        return f"{CORE}/namespaces/{NAMESPACE}/pods"

    def turn(self) -> None:
        """Wait for an event (or the poll), take all events, reconcile once."""
        try:
            happened = [self.events.get(timeout=POLL_S / self.speed)]
        except queue.Empty:
            happened = []
        while not self.events.empty():
            happened.append(self.events.get())
        for kind, type_, thing in happened:
            if kind == "Pod" and type_ != "DELETED":
                self.pod_changed(thing)
        self.reconcile()

    def pod_changed(self, pod: Object) -> None:
        """Note on the node what the pod came to; a pod that has done its work is deleted."""
        if self.fault == "dies-midway" and seen.runs(pod):
            print("stand-in: dies, as it was told to", flush=True)
            os._exit(70)
        if name_of(pod) in self.rebooting:
            return  # KWOK ends every pod well; this one ends with its node's reboot
        what = seen.about(pod)
        flapping = self.fault == "erroring" or (what or {}).get("stage") == "uninstall"
        if seen.take(self.api, pod, flapping=flapping) == "complete":
            self.api.delete(
                f"{self.pods_path}/{name_of(pod)}", grace_s=0 if self.look.brief else None
            )

    def reconcile(self) -> None:
        """Advance each resource by one step, by priority, then name; later ones wait."""
        hooks = sorted(
            self.api.list(HOOKS), key=lambda h: (h["spec"].get("priority", 200), name_of(h))
        )
        nodes = self.api.list(NODES)
        pods = self.api.list(self.pods_path, labelSelector=f"{GROUP}/name")
        for hook in hooks:
            if "deletionTimestamp" in hook["metadata"]:
                self.let_go(hook)
        hooks = [h for h in hooks if "deletionTimestamp" not in h["metadata"]]
        valid = [h for h in hooks if all(map(PACKAGE_KEY.match, h["spec"].get("packages") or {}))]
        views = [View(self.api, h, [n for n in nodes if self.selected(h, n)]) for h in valid]
        for view in views:
            self.introduce(view)
        if len(valid) < len(hooks):
            return  # webhooks are off: one invalid resource stalls all of them, without a word
        for view in views:
            self.adopt(view)
        waits = False
        for view in views:
            mine = [p for p in pods if labels_of(p).get(f"{GROUP}/name") == view.name]
            self.advance(view, mine, waits=waits)
            waits = waits or not (view.complete() or view.wants("disable"))

    @staticmethod
    def selected(hook: Object, node: Object) -> bool:
        return matches(hook["spec"].get("nodeSelectors") or {}, labels_of(node))

    def let_go(self, hook: Object) -> None:
        """A deleted resource: off with the finalizer, then its config maps and its pods.

        What it left on nodes stays there.
        """
        left = [f for f in hook["metadata"].get("finalizers") or [] if f != f"{GROUP}/skyhook"]
        path = f"{HOOKS}/{name_of(hook)}"
        try:
            self.api.patch(path, {"metadata": {"finalizers": left or None}})
        except Gone:
            return
        maps = f"{CORE}/namespaces/{NAMESPACE}/configmaps"
        for thing in self.api.list(maps):
            if notes_of(thing).get(f"{GROUP}/name") == name_of(hook):
                self.api.delete(f"{maps}/{name_of(thing)}")
        for pod in self.api.list(self.pods_path, labelSelector=f"{GROUP}/name={name_of(hook)}"):
            if "deletionTimestamp" not in pod["metadata"]:
                self.api.delete(f"{self.pods_path}/{name_of(pod)}")

    def introduce(self, view: View) -> None:
        """The first words about a new resource, before its generation 2: completeNodes, version."""
        for node in view.nodes:
            if view.marks.version not in notes_of(node):
                view.mark(node, annotations={view.marks.version: VERSION})
        if "completeNodes" in view.status:
            return
        if self.fault == "left-over":
            for node in view.nodes:
                stages.as_if_done(view, node)
        done = sum(map(view.node_done, view.nodes))
        view.write(completeNodes=f"{done}/{len(view.nodes)}")
        view.meta({"metadata": {"annotations": {f"{GROUP}/version": VERSION}}})

    def adopt(self, view: View) -> None:
        """The finalizer and the packages' names, in one write: generation 2."""
        finalizer = f"{GROUP}/skyhook"
        have = view.hook["metadata"].get("finalizers") or []
        unnamed = {
            n: {"name": n}
            for n, p in (view.hook["spec"].get("packages") or {}).items()
            if p.get("name") != n
        }
        if finalizer not in have or unnamed:
            body: Object = {
                "metadata": {"finalizers": [*have, *([] if finalizer in have else [finalizer])]}
            }
            view.meta({**body, **({"spec": {"packages": unnamed}} if unnamed else {})})

    def hold(self, view: View, seconds: float) -> bool:
        """Whether this generation's change must still wait; the first question starts the time."""
        meta = view.hook["metadata"]
        until = self.held.setdefault((meta["uid"], meta["generation"]), time.monotonic() + seconds)
        if (left := until - time.monotonic()) <= 0:
            return False
        self.wake(left)
        return True

    def wake(self, after_s: float) -> None:
        """Look again after this time at the latest."""
        if after_s < POLL_S / self.speed:
            time.sleep(min(after_s, 0.05))
            self.events.put(("Wake", "", {}))

    def advance(self, view: View, pods: list[Object], *, waits: bool) -> None:
        if view.status.get("status") is None and (view.done() or not view.nodes):
            self.config_maps(view)
            view.write(
                nodeState=view.node_states(),
                nodeStatus=view.node_statuses(),
                observedGeneration=view.generation,
                status="complete",
            )
            return
        if view.complete() and not self.changed(view, pods):
            return
        if stages.halted(self, view):
            return
        self.config_maps(view)
        stages.begin(view)
        if waits:
            return
        if view.ignored():
            stages.block(view)
            return
        if interrupt.gate(self, view):
            stages.run(self, view, pods)
        self.conclude(view)

    def changed(self, view: View, pods: list[Object]) -> bool:
        """Whether a complete resource has new work: config maps at once, packages after seconds."""
        if not view.nodes:
            return False
        if view.wants("disable"):
            return False
        if view.wants("pause"):
            return True
        if view.done():
            return stages.config_changed(view)
        for node in view.nodes:
            if view.marks.status_of(node) is not None:
                view.condition(node, complete=False, erroring=False)
        fresh = any(view.marks.status_of(n) is None for n in view.nodes)
        return fresh or not (pods or self.hold(view, AFTER_REMOVAL_S / self.speed))

    def config_maps(self, view: View) -> None:
        """Create missing config maps, delete obsolete ones; only `config_changed` changes one."""
        path = f"{CORE}/namespaces/{NAMESPACE}/configmaps"
        have = {name_of(m) for m in self.api.list(path, labelSelector=f"{GROUP}/name={view.name}")}
        wanted = {
            config_map_name(view.name, p): p for p in view.packages.values() if p.get("configMap")
        }
        for name in sorted(have - wanted.keys()):
            self.api.delete(f"{path}/{name}")
        for name in sorted(wanted.keys() - have):
            package = wanted[name]
            notes = {
                "Package.Name": package["name"],
                "Package.Version": package["version"],
                "name": view.name,
            }
            meta = {
                "name": name,
                "labels": {f"{GROUP}/name": view.name},
                "annotations": {f"{GROUP}/{k}": v for k, v in notes.items()},
                "ownerReferences": owner(view.hook),
            }
            self.api.create(path, {"metadata": meta, "data": package["configMap"]})

    def conclude(self, view: View) -> None:
        for node in view.nodes:
            stages.node_settled(view, node)
        if all(view.marks.status_of(n) == "complete" for n in view.nodes):
            view.completed()
            return
        of = {view.marks.status_of(n) for n in view.nodes}
        status = next((s for s in ("erroring", "blocked", "in_progress") if s in of), "waiting")
        if status != view.status.get("status"):
            view.progress()
            view.count()
            view.write(status=status)
        view.progress()
        view.count()
        if status == "erroring" and (self.fault == "erroring" or stages.uninstalling(view)):
            time.sleep(ERRORING_SEEN_S)
            for node in view.nodes:
                if view.marks.status_of(node) == "erroring":
                    view.mark(node, status="in_progress")
            view.write(status="in_progress", nodeStatus=view.node_statuses())
        if time.monotonic() - self.churned.get(view.name, 0) > POLL_S / self.speed:
            self.churned[view.name] = time.monotonic()
            view.churn()
