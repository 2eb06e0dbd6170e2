"""Stand-in for KAITO's workspace controller (provisioner `byo`), modelled on recordings.

`inference.template` becomes a StatefulSet, `tuning` a Job; their pods really run, with a busybox
script in the trainer's place.
"""

from __future__ import annotations

import contextlib
import queue
import time
from dataclasses import dataclass, field
from typing import Any

from .api import NODES, Api, ApiFailed, Gone
from .marks import labels_of, matches, name_of, now

Object = dict[str, Any]
WORKSPACES = "/apis/kaito.sh/v1beta1"
FINALIZER = "workspace.finalizer.kaito.sh"
POLL_S = 1.0  # divided by `speed`
BETWEEN_S = 0.012  # how long `Pending` shows between two states of a tuning; not shortened
LABEL = "kaito.sh/workspace"
TOLERATIONS = [
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
]
MARKERS = "/var/lib/kaito-stand-in"  # on the node: which Job's first pod has failed already
# Lines as Hugging Face's Trainer and KAITO's fine_tuning.py print them; the numbers are made up and
# the same in every run.
TRAINER = r"""
if [ "$FIRST_FAILS" ] && [ ! -e "/markers/$FIRST_FAILS" ]; then
    touch "/markers/$FIRST_FAILS"
    echo "RuntimeError: the first pod fails, as it was told to" >&2; exit 1
fi
[ -z "$FIRST_FAILS" ] || rm -f "/markers/$FIRST_FAILS"
for step in 1 2 3 4 5; do
    sleep 0.5
    echo "{'loss': 2.$((50 - step)), 'learning_rate': 5e-05, 'epoch': 0.$((step * 2))}"
done
echo "{'train_runtime': 5.0, 'train_samples_per_second': 4.0,"\
" 'train_steps_per_second': 1.0, 'train_loss': 2.45, 'epoch': 1.0}"
echo "INFO:root:Training completed"
"""


@dataclass
class Operator:
    """The stand-in: `run` never returns."""

    api: Api
    image: str
    fault: str | None = None
    speed: float = 1.0
    events: queue.Queue[str] = field(default_factory=queue.Queue)

    def run(self) -> None:
        for path in (
            f"{WORKSPACES}/workspaces",
            "/apis/apps/v1/statefulsets",
            "/apis/batch/v1/jobs",
        ):
            self.api.follow(path, lambda type_, _: self.events.put(type_))
        while True:
            with contextlib.suppress(queue.Empty):
                self.events.get(timeout=POLL_S / self.speed)
            while not self.events.empty():
                self.events.get()
            for workspace in self.api.list(f"{WORKSPACES}/workspaces"):
                try:
                    Turn(self, workspace).take()
                except Gone:
                    continue
                except ApiFailed as failed:
                    print(f"stand-in: {failed}", flush=True)


class Turn:
    def __init__(self, operator: Operator, workspace: Object) -> None:
        self.op, self.api, self.it = operator, operator.api, workspace
        self.name, self.namespace = name_of(workspace), workspace["metadata"]["namespace"]
        self.path = f"{WORKSPACES}/namespaces/{self.namespace}/workspaces/{self.name}"

    def take(self) -> None:
        finalizers = self.it["metadata"].get("finalizers") or []
        if "deletionTimestamp" in self.it["metadata"]:
            self.api.patch(self.path, {"metadata": {"finalizers": None}})
            return
        if FINALIZER not in finalizers:
            self.it = self.api.patch(self.path, {"metadata": {"finalizers": [FINALIZER]}})
        selector = (self.it.get("resource") or {}).get("labelSelector") or {}
        nodes = [n for n in self.api.list(NODES) if matches(selector, labels_of(n))]
        if self.it.get("tuning"):
            self.tune(nodes)
        else:
            self.serve(nodes)

    def say(self, nodes: list[Object], state: str, **conditions: bool) -> None:
        """Write the state with its conditions, where anything differs."""
        wanted = {"NodesReady": bool(nodes), "ResourceReady": bool(nodes), **conditions}
        old = {c["type"]: c for c in (self.it.get("status") or {}).get("conditions") or []}
        made = [
            {
                "type": name,
                "status": str(true),
                "reason": "standIn",
                "message": "the stand-in says so",
                "observedGeneration": self.it["metadata"]["generation"],
                "lastTransitionTime": now()
                if old.get(name, {}).get("status") != str(true)
                else old[name]["lastTransitionTime"],
            }
            for name, true in wanted.items()
        ]
        status = {"state": state, "conditions": made, "workerNodes": sorted(map(name_of, nodes))}
        if any((self.it.get("status") or {}).get(key) != value for key, value in status.items()):
            self.it = self.api.patch(f"{self.path}/status", {"status": status})

    def serve(self, nodes: list[Object]) -> None:
        """The template as a StatefulSet of one replica; no GPU is asked for."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets"
        made = self.api.get(f"{path}/{self.name}")
        if made is None and nodes:
            template = self.it["inference"].get("template") or {}
            body = {
                "metadata": self.metadata(),
                "spec": {
                    "replicas": 1,
                    "serviceName": "",
                    "selector": {"matchLabels": {LABEL: self.name}},
                    "template": self.template(
                        template.get("spec") or {}, template.get("metadata") or {}
                    ),
                },
            }
            self.api.create(path, body)
        ready = bool(((made or {}).get("status") or {}).get("readyReplicas"))
        was = (self.it.get("status") or {}).get("state")
        state = "Ready" if ready else "NotReady" if was in {"Ready", "NotReady"} else "Pending"
        self.say(nodes, state, InferenceReady=ready, WorkspaceSucceeded=ready)

    def tune(self, nodes: list[Object]) -> None:
        """Run the preset as a Job. `Failed` and `Succeeded` are for good."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        job = self.api.get(f"{path}/{self.name}")
        state = (self.it.get("status") or {}).get("state")
        if state in ("Failed", "Succeeded"):
            return
        if job is None:
            self.api.create(path, self.job())
            self.say(nodes, "Pending", JobStarted=False, WorkspaceSucceeded=False)
            return
        status = job.get("status") or {}
        complete = any(
            c["type"] == "Complete" and c["status"] == "True"
            for c in status.get("conditions") or []
        )
        if status.get("failed") or complete:
            # Pending for 10 ms: so it was recorded before every end.
            self.say(nodes, "Pending", JobStarted=False, WorkspaceSucceeded=False)
            time.sleep(BETWEEN_S)
            done = not status.get("failed")
            end = "Succeeded" if done else "Failed"
            self.say(nodes, end, JobStarted=done, WorkspaceSucceeded=done)
        elif status.get("active"):
            self.say(nodes, "Running", JobStarted=True, WorkspaceSucceeded=False)

    def job(self) -> Object:
        first = self.it["metadata"]["uid"] if self.op.fault == "first-pod-fails" else ""
        container = {
            "name": self.name,
            "image": self.op.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", TRAINER],
            "env": [{"name": "FIRST_FAILS", "value": first}],
            "volumeMounts": [{"name": "markers", "mountPath": "/markers"}],
        }
        markers = {
            "name": "markers",
            "hostPath": {"path": MARKERS, "type": "DirectoryOrCreate"},
        }
        spec = {
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [markers if first else {"name": "markers", "emptyDir": {}}],
        }
        return {
            "metadata": self.metadata(),
            "spec": {"backoffLimit": 6, "template": self.template(spec, {})},
        }

    def metadata(self) -> Object:
        about = {
            "apiVersion": "kaito.sh/v1beta1",
            "kind": "Workspace",
            "name": self.name,
            "uid": self.it["metadata"]["uid"],
        }
        owner = {**about, "controller": True, "blockOwnerDeletion": True}
        return {"name": self.name, "labels": {LABEL: self.name}, "ownerReferences": [owner]}

    def template(self, spec: Object, meta: Object) -> Object:
        selector = (self.it.get("resource") or {}).get("labelSelector") or {}
        return {
            "metadata": {
                "labels": {**(meta.get("labels") or {}), LABEL: self.name},
                "annotations": meta.get("annotations") or {},
            },
            "spec": {
                **spec,
                "nodeSelector": selector.get("matchLabels") or {},
                "tolerations": [*TOLERATIONS, *(spec.get("tolerations") or [])],
            },
        }
