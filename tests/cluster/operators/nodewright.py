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
from .marks import NAMESPACE, compact, labels_of, matches, name_of, notes_of, safe_name
from .packages import Look, config_map_name, owner, pod

Object = dict[str, Any]
LEGACY, GROUP = "skyhook.nvidia.com", "nodewright.nvidia.com"
SKYHOOKS, NODEWRIGHTS = f"/apis/{LEGACY}/v1alpha1/skyhooks", f"/apis/{GROUP}/v1alpha1/nodewrights"
JOBS, PODS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", f"{CORE}/namespaces/{NAMESPACE}/pods"
FINALIZER = f"{GROUP}/nodewright"
VERSION, POLL_S = "stand-in", 0.5
STAGES = ("apply", "config")
TTL_S = {"Complete": 3600, "Failed": 86400}
RETRIES = 3


@dataclass
class Operator:
    """The stand-in: `run` never returns."""

    api: Api
    look: Look
    machines: Machines = field(default_factory=lambda: Machines(None))
    events: queue.Queue[None] = field(default_factory=queue.Queue)

    def run(self) -> None:
        self.api.create(f"{CORE}/namespaces", {"metadata": {"name": NAMESPACE}})
        for path, query in (
            (SKYHOOKS, {}),
            (NODEWRIGHTS, {}),
            (JOBS, {"labelSelector": f"{GROUP}/name"}),
            (NODES, {}),
        ):
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
        for hook in sorted(
            self.api.list(NODEWRIGHTS), key=lambda h: (h["spec"].get("priority", 200), name_of(h))
        ):
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
            notes = {
                f"{GROUP}/mirrored-from": name,
                f"{GROUP}/mirrored-generation": str(legacy["metadata"]["generation"]),
            }
            metadata = {"name": name, "labels": labels_of(legacy), "annotations": notes}
            made = {
                "apiVersion": f"{GROUP}/v1alpha1",
                "kind": "NodeWright",
                "metadata": metadata,
                "spec": legacy["spec"],
            }
            self.api.create(NODEWRIGHTS, made)

    def let_go(self, hook: Object) -> None:
        """Off with the finalizer, its Jobs and pods follow.

        Of its marks the state stays, since nothing was uninstalled.
        """
        name = name_of(hook)
        for node in self.api.list(NODES):
            if f"{GROUP}/status_{name}" in notes_of(node):
                gone = {f"{GROUP}/status_{name}": None}
                self.api.patch(
                    f"{NODES}/{name_of(node)}", {"metadata": {"annotations": gone, "labels": gone}}
                )
                types = [
                    {"type": f"{GROUP}/{name}/{what}", "$patch": "delete"}
                    for what in ("NotReady", "Erroring")
                ]
                self.api.patch(
                    f"{NODES}/{name_of(node)}/status",
                    {"status": {"conditions": types}},
                    content=STRATEGIC,
                )
        self.api.patch(f"{NODEWRIGHTS}/{name}", {"metadata": {"finalizers": None}})

    def advance(self, hook: Object) -> None:
        name = name_of(hook)
        if FINALIZER not in (hook["metadata"].get("finalizers") or []):
            hook = self.api.patch(
                f"{NODEWRIGHTS}/{name}", {"metadata": {"finalizers": [FINALIZER]}}
            )
        selector = hook["spec"].get("nodeSelectors") or {}
        nodes = [node for node in self.api.list(NODES) if matches(selector, labels_of(node))]
        jobs = {
            name_of(job): job for job in self.api.list(JOBS, labelSelector=f"{GROUP}/name={name}")
        }
        for node in nodes:
            self.on_node(hook, node, jobs)
        self.report(hook, nodes)

    def on_node(self, hook: Object, node: Object, jobs: dict[str, Object]) -> None:
        for label, package in (hook["spec"].get("packages") or {}).items():
            self.on_package(hook, node, {**package, "name": label}, jobs)

    def on_package(
        self, hook: Object, node: Object, package: Object, jobs: dict[str, Object]
    ) -> None:
        """Create the Job of the stage that is due, or note the state of the existing Job."""
        name, key = name_of(hook), f"{package['name']}|{package['version']}"
        state = self.state(name, node)
        entry = state.get(key, {})
        ended = entry.get("state") == "complete"
        if ended and entry["stage"] == STAGES[-1]:
            return
        stage = STAGES[STAGES.index(entry["stage"]) + ended] if entry else STAGES[0]
        job = jobs.get(safe_name(name, package["name"], package["version"], stage, name_of(node)))
        if job is None:
            if package.get("configMap"):
                self.api.create(
                    f"{CORE}/namespaces/{NAMESPACE}/configmaps",
                    {
                        "metadata": {
                            "name": config_map_name(name, package),
                            "ownerReferences": owner(hook),
                        },
                        "data": package["configMap"],
                    },
                )
            self.api.create(JOBS, self.job(hook, package, stage, name_of(node)))
            self.machines.carry_out(name_of(node), package, stage)
            self.note(
                name, node, {**state, key: _entry(package, stage, "in_progress")}, "in_progress"
            )
            return
        conditions = {
            c["type"] for c in job["status"].get("conditions") or [] if c["status"] == "True"
        }
        if over := conditions & {"Complete", "Failed"}:
            (how,) = over
            word = "complete" if how == "Complete" else "erroring"
            self.note(
                name,
                node,
                {**state, key: _entry(package, stage, word)},
                "in_progress" if how == "Complete" else "erroring",
            )
            if f"{GROUP}/state-recorded" not in notes_of(job):
                marker = {
                    "metadata": {"annotations": {f"{GROUP}/state-recorded": "true"}},
                    "spec": {"ttlSecondsAfterFinished": TTL_S[how]},
                }
                self.api.patch(f"{JOBS}/{name_of(job)}", marker)
        elif job["status"].get("failed") and entry.get("state") != "erroring":
            self.note(
                name,
                node,
                {**state, key: _entry(package, stage, "erroring")},
                "erroring",  # at once, as up to v0.19
            )

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
        spec = {**made["spec"], "restartPolicy": "Never", "containers": [done]}
        return {
            "metadata": {**made["metadata"], "labels": labels},
            "spec": {
                "backoffLimit": RETRIES,
                "podReplacementPolicy": "Failed",
                "template": {
                    "metadata": {"labels": labels, "annotations": made["metadata"]["annotations"]},
                    "spec": spec,
                },
            },
        }

    def state(self, name: str, node: Object) -> Object:
        return dict(json.loads(notes_of(node).get(f"{GROUP}/nodeState_{name}") or "{}"))

    def note(self, name: str, node: Object, state: Object, status: str) -> None:
        """Write state and status on the node, where they differ."""
        notes = {
            f"{GROUP}/nodeState_{name}": compact(state),
            f"{GROUP}/status_{name}": status,
            f"{GROUP}/version_{name}": VERSION,
        }
        if notes.items() <= notes_of(node).items():
            return
        metadata = {"annotations": notes, "labels": {f"{GROUP}/status_{name}": status}}
        renewed = self.api.patch(f"{NODES}/{name_of(node)}", {"metadata": metadata})
        node.clear()
        node.update(renewed)

    def report(self, hook: Object, nodes: list[Object]) -> None:
        """Write the resource's changed status: `complete` once all packages are on all nodes."""
        name, wanted = name_of(hook), len(hook["spec"].get("packages") or {})
        statuses, states = {}, {}
        for node in nodes:
            state = self.state(name, node)
            done = [
                e for e in state.values() if e["state"] == "complete" and e["stage"] == STAGES[-1]
            ]
            if len(done) == wanted:
                self.note(name, node, state, "complete")
            statuses[name_of(node)], states[name_of(node)] = (
                notes_of(node).get(f"{GROUP}/status_{name}", "waiting"),
                state,
            )
        complete = sum(status == "complete" for status in statuses.values())
        word = next(
            (s for s in ("erroring", "in_progress", "waiting") if s in statuses.values()),
            "complete",
        )
        now = {
            "status": word,
            "completeNodes": f"{complete}/{len(nodes)}",
            "nodeStatus": statuses,
            "nodeState": states,
        }
        now |= {"observedGeneration": hook["metadata"]["generation"]} if word == "complete" else {}
        before = hook.get("status") or {}
        if any(before.get(key) != value for key, value in now.items()):
            self.api.patch(f"{NODEWRIGHTS}/{name}/status", {"status": now})


def _entry(package: Object, stage: str, state: str) -> Object:
    return {
        "name": package["name"],
        "version": package["version"],
        "image": package["image"],
        "stage": stage,
        "state": state,
    }
