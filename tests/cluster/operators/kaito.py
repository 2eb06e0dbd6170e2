"""Stand-in for KAITO's workspace controller (provisioner `byo`), modelled on recordings.

`inference.template` becomes a StatefulSet, `tuning` a Job; their pods really run, with a busybox
script in the trainer's place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import queue
import time
from dataclasses import dataclass, field
from typing import Any

from . import training
from .api import NODES, Api, ApiFailed, Gone
from .marks import labels_of, matches, name_of, notes_of
from .view import now

Object = dict[str, Any]
WORKSPACES = "/apis/kaito.sh/v1beta1"
FINALIZER = "workspace.finalizer.kaito.sh"
HASH, REVISION = "workspace.kaito.io/hash", "workspace.kaito.io/revision"
# Waits of the real controller, in seconds, divided by `speed`.
TAKEN_UP_S = {"inference": 1.0, "tuning": 0.35}
NOTICED_S = 0.35  # readiness of the StatefulSet
POLL_S = 1.0
BETWEEN_S = 0.012  # how long `Pending` shows between two states of a tuning; not shortened
BAD_SKU = "invalid value: Unsupported SKU '' for cloud provider: sku"


@dataclass
class Operator:
    """The stand-in: `run` never returns."""

    api: Api
    image: str
    fault: str | None = None
    speed: float = 1.0
    events: queue.Queue[str] = field(default_factory=queue.Queue)
    # uid + what → the moment it was first seen.
    since: dict[str, float] = field(default_factory=dict)

    def run(self) -> None:
        for path in (
            f"{WORKSPACES}/workspaces",
            "/apis/apps/v1/statefulsets",
            "/apis/batch/v1/jobs",
            NODES,
        ):
            self.api.follow(path, lambda type_, _: self.events.put(type_))
        while True:
            with contextlib.suppress(queue.Empty):
                self.events.get(timeout=POLL_S / self.speed / 4)
            while not self.events.empty():
                self.events.get()
            for workspace in self.api.list(f"{WORKSPACES}/workspaces"):
                try:
                    Turn(self, workspace).take()
                except Gone:
                    continue
                except ApiFailed as failed:
                    print(f"stand-in: {failed}", flush=True)

    def passed(self, what: str, seconds: float) -> bool:
        return (
            time.monotonic() - self.since.setdefault(what, time.monotonic()) >= seconds / self.speed
        )


class Turn:
    def __init__(self, operator: Operator, workspace: Object) -> None:
        self.op, self.api, self.it = operator, operator.api, workspace
        meta = workspace["metadata"]
        self.name, self.namespace, self.uid = meta["name"], meta["namespace"], meta["uid"]
        self.path = f"{WORKSPACES}/namespaces/{self.namespace}/workspaces/{self.name}"

    @property
    def status(self) -> Object:
        return self.it.get("status") or {}

    def meta(self, body: Object) -> None:
        self.it = self.api.patch(self.path, body)

    def owner(self) -> list[Object]:
        about = {
            "apiVersion": "kaito.sh/v1beta1",
            "kind": "Workspace",
            "name": self.name,
            "uid": self.uid,
        }
        return [{**about, "controller": True, "blockOwnerDeletion": True}]

    def take(self) -> None:
        finalizers = self.it["metadata"].get("finalizers") or []
        if "deletionTimestamp" in self.it["metadata"]:
            self.say_farewell()
            self.meta(
                {"metadata": {"finalizers": [f for f in finalizers if f != FINALIZER] or None}}
            )
            return
        if FINALIZER not in finalizers:
            self.meta({"metadata": {"finalizers": [*finalizers, FINALIZER]}})
        self.revise()
        if "targetNodeCount" not in self.status:
            self.api.patch(f"{self.path}/status", {"status": {"targetNodeCount": 1}})
        nodes = self.nodes()
        if not nodes:
            self.say(
                [], "Pending", *(self.waiting() if self.it.get("inference") else self.not_started())
            )
        elif self.it.get("tuning"):
            if self.op.passed(self.uid, TAKEN_UP_S["tuning"]):
                self.tune(nodes)
        elif self.op.passed(self.uid, TAKEN_UP_S["inference"]):
            self.serve(nodes)

    def say_farewell(self) -> None:
        """Write one more condition on a Workspace whose last reconcile failed, before it goes."""
        conditions = self.status.get("conditions") or []
        if not any(BAD_SKU in c["message"] for c in conditions):
            return
        said = {
            "type": "WorkspaceDeleting",
            "status": "True",
            "reason": "workspaceDeleted",
            "message": f"workspace is being deleted (last reconcile error: {BAD_SKU})",
            "observedGeneration": self.it["metadata"]["generation"],
            "lastTransitionTime": now(),
        }
        self.api.patch(f"{self.path}/status", {"status": {"conditions": [*conditions, said]}})

    def revise(self) -> None:
        """The revision annotation.

        The real controller's write also fills in empty fields, which raises the generation; so does
        ours.
        """
        asked = {part: self.it.get(part) for part in ("resource", "inference", "tuning")}
        asked["resource"] = {
            k: v for k, v in (self.it.get("resource") or {}).items() if k != "preferredNodes"
        }
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        if notes_of(self.it).get(HASH) == digest:
            return
        revision = int(notes_of(self.it).get(REVISION, "0")) + 1
        if revision > 1 and self.status.get("conditions"):
            self.observe()
        filled: Object = {"preferredNodes": [] if revision % 2 else None}
        if (self.it.get("resource") or {}).get("preferredNodes"):
            filled = {}
        self.meta(
            {
                "metadata": {"annotations": {HASH: digest, REVISION: str(revision)}},
                "resource": filled,
            }
        )

    def observe(self) -> None:
        """A new generation, in every condition; nothing else is done about a changed template."""
        generation = self.it["metadata"]["generation"]
        seen = [{**c, "observedGeneration": generation} for c in self.status["conditions"]]
        self.it = self.api.patch(f"{self.path}/status", {"status": {"conditions": seen}})

    def nodes(self) -> list[Object]:
        selector = (self.it.get("resource") or {}).get("labelSelector") or {}

        def ready(node: Object) -> bool:
            return any(
                c["type"] == "Ready" and c["status"] == "True"
                for c in node["status"].get("conditions") or []
            )

        return [n for n in self.api.list(NODES) if matches(selector, labels_of(n)) and ready(n)]

    def say(self, nodes: list[Object], state: str, *about: Object, error: str = "") -> None:
        """Write the state with all four conditions, where anything differs."""
        there = bool(nodes)
        both = [
            {
                "type": "NodesReady",
                "status": str(there),
                "reason": "NodesReady" if there else "NodeNotReady",
                "message": "Enough Nodes are ready" if there else "Not enough Nodes are ready",
            },
            {
                "type": "ResourceReady",
                "status": str(there),
                "reason": "workspaceResourceStatusSuccess"
                if there
                else "workspaceResourceStatusNotReady",
                "message": "workspace resource is ready"
                if there
                else "node status condition not ready",
            },
        ]
        old = {c["type"]: c for c in self.status.get("conditions") or []}
        conditions = []
        for condition in (*both, *about):
            said = {**condition, "observedGeneration": self.it["metadata"]["generation"]}
            if error:
                said["message"] += f" (last reconcile error: {error})"
            was = old.get(said["type"], {})
            turned = was.get("status") != said["status"]
            conditions.append(
                {**said, "lastTransitionTime": now() if turned else was["lastTransitionTime"]}
            )
        wanted: Object = {"state": state, "conditions": conditions}
        if nodes:
            wanted["workerNodes"] = sorted(map(name_of, nodes))
        if any(self.status.get(key) != value for key, value in wanted.items()):
            self.it = self.api.patch(f"{self.path}/status", {"status": wanted})

    @staticmethod
    def two(
        kind: str, status: tuple[bool, bool], reasons: tuple[str, str], messages: tuple[str, str]
    ) -> tuple[Object, Object]:
        """The condition of the work (`kind`) and WorkspaceSucceeded."""
        kinds = (kind, "WorkspaceSucceeded")
        one, other = (
            {"type": k, "status": str(s), "reason": r, "message": m}
            for k, s, r, m in zip(kinds, status, reasons, messages, strict=True)
        )
        return one, other

    def waiting(self) -> tuple[Object, Object]:
        """Inference that does not serve."""
        return self.two(
            "InferenceReady",
            (False, False),
            ("WorkspaceInferenceStatusPending", "workspacePending"),
            (
                "Inference workload is not ready",
                "workspace is waiting for inference workload readiness",
            ),
        )

    def not_started(self) -> tuple[Object, Object]:
        """A tuning before its Job; also shown for a moment between Running and the end."""
        return self.two(
            "JobStarted",
            (False, False),
            ("WorkspaceTuningJobStatusPending", "workspacePending"),
            ("Tuning job has not started", "workspace is initializing, tuning job has not started"),
        )

    def serve(self, nodes: list[Object]) -> None:
        """The template as a StatefulSet; made once, a later change of the template is ignored."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets"
        made = self.api.get(f"{path}/{self.name}")
        if made is None:
            self.api.create(path, training.stateful_set(self.it, self.owner()))
            self.say(nodes, "Pending", *self.waiting())
            return
        ready = int((made.get("status") or {}).get("readyReplicas") or 0) >= 1
        was = self.status.get("state")
        if ready == (was == "Ready"):
            self.op.since.pop(f"{self.uid} turns", None)
            if (
                was == "Ready"
                and self.status["conditions"][0]["observedGeneration"]
                != self.it["metadata"]["generation"]
            ):
                self.observe()
            return
        if not self.op.passed(f"{self.uid} turns", NOTICED_S):
            return
        self.op.since.pop(f"{self.uid} turns", None)
        if not ready:
            self.say(
                nodes, "NotReady" if was in {"Ready", "NotReady"} else "Pending", *self.waiting()
            )
            return
        reasons = ("WorkspaceInferenceStatusSuccess", "workspaceSucceeded")
        messages = ("Inference has been deployed successfully", "workspace succeeds")
        self.say(nodes, "Ready", *self.two("InferenceReady", (True, True), reasons, messages))

    def tune(self, nodes: list[Object]) -> None:
        """Run the preset as a Job; without an instance type, write only a condition's message."""
        if not (self.it.get("resource") or {}).get("instanceType"):
            self.say(nodes, "Pending", *self.not_started(), error=BAD_SKU)
            return
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        job = self.api.get(f"{path}/{self.name}")
        if job is None:
            gpus = any(
                int(n["status"].get("capacity", {}).get("nvidia.com/gpu", "0")) for n in nodes
            )
            self.api.create(
                path,
                training.job(self.it, self.owner(), self.op.image, gpus=gpus, fault=self.op.fault),
            )
            self.say(nodes, "Pending", *self.not_started())
            return
        status, state = job.get("status") or {}, self.status.get("state")
        complete = any(
            c["type"] == "Complete" and c["status"] == "True"
            for c in status.get("conditions") or []
        )
        if state in ("Failed", "Succeeded"):
            return  # for good: a Job that succeeds in its second pod changes nothing
        if status.get("failed"):
            self.between(nodes)
            reasons, text = (
                ("WorkspaceTuningJobStatusFailed", "workspaceFailed"),
                "tuning job failed",
            )
            self.say(
                nodes, "Failed", *self.two("JobStarted", (False, False), reasons, (text, text))
            )
        elif complete:
            self.between(nodes)
            reasons, texts = (
                ("WorkspaceTuningJobStatusStarted", "workspaceSucceeded"),
                ("Tuning job has started", "workspace succeeds"),
            )
            self.say(nodes, "Succeeded", *self.two("JobStarted", (True, True), reasons, texts))
        elif status.get("active"):
            reasons = ("WorkspaceTuningJobStatusStarted", "workspacePending")
            texts = (
                "Tuning job has started",
                "workspace has not completed yet, tuning job is running",
            )
            self.say(nodes, "Running", *self.two("JobStarted", (True, False), reasons, texts))

    def between(self, nodes: list[Object]) -> None:
        """Pending for 10 ms: so it was recorded before every end."""
        self.say(nodes, "Pending", *self.not_started())
        time.sleep(BETWEEN_S)
