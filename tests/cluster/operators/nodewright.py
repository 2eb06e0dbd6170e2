"""Stand-in for the operator v0.18 to v0.20, from its documents, types, webhook and job builder.

None of it was recorded. Both kinds are served. A Skyhook is copied once into a NodeWright of the
same name and gets no status; its deletion leaves the copy. Each stage of a NodeWright's package is
a Job, which stays with its pods when it has ended and tries again where an attempt failed.
"""

from __future__ import annotations

import contextlib
import json
import queue
import time
from dataclasses import dataclass, field
from typing import Any

from .api import CORE, NODES, STRATEGIC, Api, ApiFailed, Gone
from .machines import Machines
from .marks import (
    NAMESPACE,
    Marks,
    compact,
    entry,
    labels_of,
    matches,
    name_of,
    notes_of,
    safe_name,
)
from .packages import Look, config_map_name, owner, pod

Object = dict[str, Any]
LEGACY, GROUP = "skyhook.nvidia.com", "nodewright.nvidia.com"
SKYHOOKS, NODEWRIGHTS = f"/apis/{LEGACY}/v1alpha1/skyhooks", f"/apis/{GROUP}/v1alpha1/nodewrights"
JOBS, MAPS = (
    f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
    f"{CORE}/namespaces/{NAMESPACE}/configmaps",
)
FINALIZER = f"{GROUP}/nodewright"
VERSION, POLL_S = "stand-in", 0.5
STAGES = ("apply", "config")


@dataclass
class Operator:
    """The stand-in: `run` never returns."""

    api: Api
    look: Look
    machines: Machines = field(default_factory=lambda: Machines(None))
    events: queue.Queue[None] = field(default_factory=queue.Queue)

    def run(self) -> None:
        self.api.create(f"{CORE}/namespaces", {"metadata": {"name": NAMESPACE}})
        jobs = {"labelSelector": f"{GROUP}/name"}
        for path, query in ((SKYHOOKS, {}), (NODEWRIGHTS, {}), (JOBS, jobs), (NODES, {})):
            self.api.follow(path, lambda *_: self.events.put(None), **query)
        while True:
            try:
                self.turn()
            except Gone:
                continue
            except ApiFailed as failed:
                print(f"stand-in: {failed}", flush=True)
                time.sleep(0.2)

    def turn(self) -> None:
        with contextlib.suppress(queue.Empty):
            self.events.get(timeout=POLL_S)
        while not self.events.empty():
            self.events.get()
        for legacy in self.api.list(SKYHOOKS):
            self.mirror(legacy)
        for hook in self.api.list(NODEWRIGHTS):
            if "deletionTimestamp" in hook["metadata"]:
                self.let_go(hook)
            else:
                self.advance(hook)

    def mirror(self, legacy: Object) -> None:
        """Copy a Skyhook once; of one that is deleted only its finalizer is taken off."""
        name = name_of(legacy)
        if "deletionTimestamp" in legacy["metadata"]:
            self.api.patch(f"{SKYHOOKS}/{name}", {"metadata": {"finalizers": None}})
        elif self.api.get(f"{NODEWRIGHTS}/{name}") is None:
            notes = {f"{GROUP}/mirrored-from": name}
            metadata = {"name": name, "labels": labels_of(legacy), "annotations": notes}
            made = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "NodeWright", "metadata": metadata}
            self.api.create(NODEWRIGHTS, {**made, "spec": legacy["spec"]})

    def let_go(self, hook: Object) -> None:
        """Off with the finalizer, its Jobs and pods follow.

        Of its marks the state stays, since nothing was uninstalled.
        """
        marks = Marks(name_of(hook), GROUP)
        for node in self.api.list(NODES):
            if marks.status in notes_of(node):
                gone, path = {marks.status: None}, f"{NODES}/{name_of(node)}"
                self.api.patch(path, {"metadata": {"annotations": gone, "labels": gone}})
                types = [
                    {"type": one["type"], "$patch": "delete"}
                    for one in marks.conditions(complete=True, erroring=False)
                ]
                body = {"status": {"conditions": types}}
                self.api.patch(f"{path}/status", body, content=STRATEGIC)
        self.api.patch(f"{NODEWRIGHTS}/{name_of(hook)}", {"metadata": {"finalizers": None}})

    def advance(self, hook: Object) -> None:
        name = name_of(hook)
        if FINALIZER not in (hook["metadata"].get("finalizers") or []):
            body = {"metadata": {"finalizers": [FINALIZER]}}
            hook = self.api.patch(f"{NODEWRIGHTS}/{name}", body)
        selector = hook["spec"].get("nodeSelectors") or {}
        nodes = [node for node in self.api.list(NODES) if matches(selector, labels_of(node))]
        jobs = {
            name_of(job): job for job in self.api.list(JOBS, labelSelector=f"{GROUP}/name={name}")
        }
        for node in nodes:
            for label, package in (hook["spec"].get("packages") or {}).items():
                self.on_package(hook, node, {**package, "name": label}, jobs)
        self.report(hook, nodes)

    def on_package(
        self, hook: Object, node: Object, package: Object, jobs: dict[str, Object]
    ) -> None:
        """Create the Job of the stage that is due, or note the state of the existing Job."""
        name, key = name_of(hook), f"{package['name']}|{package['version']}"
        marks = Marks(name, GROUP)
        state = marks.state_of(node)
        known = state.get(key, {})
        ended = known.get("state") == "complete"
        if ended and known["stage"] == STAGES[-1]:
            return
        stage = STAGES[STAGES.index(known["stage"]) + ended] if known else STAGES[0]
        job = jobs.get(safe_name(name, package["name"], package["version"], stage, name_of(node)))

        def note(word: str, status: str) -> None:
            self.note(marks, node, {**state, key: entry(package, stage, word)}, status)

        if job is None:
            if package.get("configMap"):
                meta = {"name": config_map_name(name, package), "ownerReferences": owner(hook)}
                self.api.create(MAPS, {"metadata": meta, "data": package["configMap"]})
            self.api.create(JOBS, self.job(hook, package, stage, name_of(node)))
            self.machines.carry_out(name_of(node), package, stage)
            note("in_progress", "in_progress")
            return
        over = {c["type"] for c in job["status"].get("conditions") or [] if c["status"] == "True"}
        if over & {"Complete", "Failed"}:
            well = "Complete" in over
            note("complete" if well else "erroring", "in_progress" if well else "erroring")
            if f"{GROUP}/state-recorded" not in notes_of(job):
                marker = {"metadata": {"annotations": {f"{GROUP}/state-recorded": "true"}}}
                self.api.patch(f"{JOBS}/{name_of(job)}", marker)
        elif job["status"].get("failed") and known.get("state") != "erroring":
            note("erroring", "erroring")  # at once, as up to v0.19

    def job(self, hook: Object, package: Object, stage: str, node: str) -> Object:
        made = json.loads(
            json.dumps(pod(hook, package, stage, node, self.look)).replace(LEGACY, GROUP)
        )
        labels = {**made["metadata"]["labels"], f"{GROUP}/stage": stage, f"{GROUP}/node": node}
        done = {
            "name": "done",
            "image": self.look.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", "exit 0"],
        }
        notes = {"labels": labels, "annotations": made["metadata"]["annotations"]}
        spec = {**made["spec"], "restartPolicy": "Never", "containers": [done]}
        return {
            "metadata": {**made["metadata"], "labels": labels},
            "spec": {
                "backoffLimit": 3,
                "podReplacementPolicy": "Failed",
                "template": {"metadata": notes, "spec": spec},
            },
        }

    def note(self, marks: Marks, node: Object, state: Object, status: str) -> None:
        """Write state and status on the node, where they differ."""
        notes = {marks.state: compact(state), marks.status: status, marks.version: VERSION}
        if notes.items() <= notes_of(node).items():
            return
        metadata = {"annotations": notes, "labels": {marks.status: status}}
        renewed = self.api.patch(f"{NODES}/{name_of(node)}", {"metadata": metadata})
        node.clear()
        node.update(renewed)

    def report(self, hook: Object, nodes: list[Object]) -> None:
        """Write the resource's changed status: `complete` once all packages are on all nodes."""
        name, wanted = name_of(hook), len(hook["spec"].get("packages") or {})
        marks = Marks(name, GROUP)
        statuses, states = {}, {}
        for node in nodes:
            state = marks.state_of(node)
            done = [
                e for e in state.values() if e["state"] == "complete" and e["stage"] == STAGES[-1]
            ]
            if len(done) == wanted:
                self.note(marks, node, state, "complete")
            states[name_of(node)] = state
            statuses[name_of(node)] = marks.status_of(node) or "waiting"
        words = ("erroring", "in_progress", "waiting")
        word = next((s for s in words if s in statuses.values()), "complete")
        now = {
            "status": word,
            "completeNodes": f"{list(statuses.values()).count('complete')}/{len(nodes)}",
            "nodeStatus": statuses,
            "nodeState": states,
        }
        now |= {"observedGeneration": hook["metadata"]["generation"]} if word == "complete" else {}
        before = hook.get("status") or {}
        if any(before.get(key) != value for key, value in now.items()):
            self.api.patch(f"{NODEWRIGHTS}/{name}/status", {"status": now})
