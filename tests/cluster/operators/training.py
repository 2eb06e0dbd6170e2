"""KAITO's objects for a Workspace: a template's StatefulSet, or a Job with a busybox trainer."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
WORKSPACE = "kaito.sh/workspace"
TOLERATIONS = [
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    {
        "key": "kubernetes.azure.com/scalesetpriority",
        "operator": "Equal",
        "value": "spot",
        "effect": "NoSchedule",
    },
]
MARKERS = "/var/lib/kaito-stand-in"  # on the node: which Job's first pod has failed already
# Lines as Hugging Face's Trainer and KAITO's fine_tuning.py print them; the numbers are made up and
# the same in every run.
TRAINER = r"""
echo "stand-in for accelerate launch --num_processes=1 /workspace/tfs/fine_tuning.py"
if [ "$FIRST_FAILS" ] && [ ! -e "/markers/$FIRST_FAILS" ]; then
    touch "/markers/$FIRST_FAILS"
    echo "RuntimeError: the first pod fails, as it was told to" >&2; exit 1
fi
[ -z "$FIRST_FAILS" ] || rm -f "/markers/$FIRST_FAILS"
echo "INFO:root:Model loaded, starting training"
step=0
while [ $step -lt $STEPS ]; do
    step=$((step + 1)); sleep $STEP_S
    echo "{'loss': 2.$((50 - step)), 'grad_norm': 0.$((40 + step)), 'learning_rate': 5e-05,"\
" 'epoch': 0.$((step * 10 / STEPS))}"
done
echo "{'train_runtime': $((STEPS * 1)).0, 'train_samples_per_second': 4.0,"\
" 'train_steps_per_second': 1.0, 'train_loss': 2.45, 'epoch': 1.0}"
echo "INFO:root:Training completed"
"""


def _placed(workspace: Object, spec: Object) -> Object:
    selector = (workspace.get("resource") or {}).get("labelSelector") or {}
    wanted = [
        {"key": k, "operator": "In", "values": [v]}
        for k, v in sorted((selector.get("matchLabels") or {}).items())
    ]
    wanted += list(selector.get("matchExpressions") or [])
    terms = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    affinity = (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
        if wanted
        else {}
    )
    return {**spec, **affinity, "tolerations": [*TOLERATIONS, *(spec.get("tolerations") or [])]}


def stateful_set(workspace: Object, owner: list[Object]) -> Object:
    """One replica of the template; no GPU is asked for."""
    name = workspace["metadata"]["name"]
    template = workspace["inference"].get("template") or {}
    meta = template.get("metadata") or {}
    mine = {WORKSPACE: name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": mine, "ownerReferences": owner},
        "spec": {
            "replicas": 1,
            "serviceName": "",
            "selector": {"matchLabels": mine},
            "template": {
                "metadata": {
                    "labels": {**(meta.get("labels") or {}), **mine},
                    "annotations": meta.get("annotations") or {},
                },
                "spec": _placed(workspace, template.get("spec") or {}),
            },
        },
    }


def job(
    workspace: Object, owner: list[Object], image: str, *, gpus: bool, fault: str | None
) -> Object:
    """The tuning Job: backoffLimit 6, two downloaders, a trainer; a GPU if the nodes have any."""
    meta = workspace["metadata"]
    name, mine = meta["name"], {WORKSPACE: meta["name"]}
    first = meta["uid"] if fault == "first-pod-fails" else ""
    env = [
        {"name": "STEPS", "value": "5"},
        {"name": "STEP_S", "value": "0.5"},
        {"name": "FIRST_FAILS", "value": first},
    ]
    pulled = {"imagePullPolicy": "IfNotPresent"}
    quick = [
        {
            "name": n,
            "image": image,
            "command": ["/bin/sh", "-c", "echo stand-in for a download"],
            **pulled,
        }
        for n in DOWNLOADERS
    ]
    container = {
        "name": name,
        "image": image,
        **pulled,
        "command": ["/bin/sh", "-c", TRAINER],
        "env": env,
        "resources": {part: {"nvidia.com/gpu": "1"} for part in ("limits", "requests")}
        if gpus
        else {},
        "volumeMounts": [{"name": "markers", "mountPath": "/markers"}] if first else [],
    }
    markers = (
        [{"name": "markers", "hostPath": {"path": MARKERS, "type": "DirectoryOrCreate"}}]
        if first
        else []
    )
    spec = {
        "restartPolicy": "Never",
        "initContainers": quick,
        "containers": [container],
        "volumes": markers,
    }
    revision = {
        "workspace.kaito.io/revision": (meta.get("annotations") or {}).get(
            "workspace.kaito.io/revision", "1"
        )
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": mine,
            "annotations": revision,
            "ownerReferences": owner,
        },
        "spec": {
            "backoffLimit": 6,
            "template": {"metadata": {"labels": mine}, "spec": _placed(workspace, spec)},
        },
    }


DOWNLOADERS = ("model-weights-downloader", "data-downloader")
