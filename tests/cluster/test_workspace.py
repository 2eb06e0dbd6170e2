"""Workspaces as manifests: a workload in a template, and a user's file for the leased node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.kubernetes import kaito, manifests, settings, workload
from fixtures.kubernetes import pods as pod
from fixtures.kubernetes.client import Where
from fixtures.kubernetes.settings import Shared
from fixtures.terms import BadInput, Order
from fixtures.workloads import load

JOURNAL: dict[str, Any] = {"metadata": {"name": "journal", "uid": "1"}}
SPOT = manifests.Spot("0123456789ab", "node-1", "host-1", "bench", JOURNAL)
SERVES = """\
apiVersion: kaito.sh/v1beta1
kind: Workspace
metadata:
  name: mine
  namespace: elsewhere
  labels: {team: kernel}
resource:
  instanceType: Standard_NC24ads_A100_v4
  labelSelector:
    matchLabels: {apps: phi-4}
inference:
  preset: {name: phi-4-mini-instruct}
"""
TUNES = SERVES.replace("inference:", "tuning:").replace("}\n", "}\n", 1) + "  method: qlora\n"


def a_job() -> dict[str, Any]:
    chosen = settings.TargetConfig(Where(), "", image="bench:1", gpus=1)
    return manifests.workload_job(
        chosen,
        SPOT,
        Order(load("cnn_train"), 20, 2, 7),
        3,
        "study/cell",
        Shared(network=True, ipc=False),
    )


def test_a_workload_of_ours_is_the_job_s_pod_in_a_template() -> None:
    """The same container but for --linger; KAITO places and starts it."""
    job = a_job()
    made = kaito.workspace_of_job(job, SPOT)
    ours = job["spec"]["template"]["spec"]
    spec = made["inference"]["template"]["spec"]
    assert (made["apiVersion"], made["kind"]) == ("kaito.sh/v1beta1", "Workspace")
    assert made["metadata"] == job["metadata"]
    assert made["resource"] == {
        "labelSelector": {"matchLabels": {"kubernetes.io/hostname": "host-1"}},
        "preferredNodes": ["node-1"],
    }
    assert spec["containers"][0]["args"] == [*ours["containers"][0]["args"], "--linger"]
    assert spec.keys() == ours.keys() - {"restartPolicy", "affinity"}
    assert all(spec[name] == ours[name] for name in spec.keys() - {"containers"})
    assert job == a_job()


def write(folder: Path, text: str) -> Path:
    path = folder / "workspace.yaml"
    path.write_text(text)
    return path


def test_a_users_file_keeps_its_fields_and_gets_the_leased_node(tmp_path: Path) -> None:
    body = kaito.workspace_of_file(write(tmp_path, SERVES))
    made = kaito.workspace_placed(body, SPOT, 3, "study/cell")
    assert made["metadata"]["name"].startswith("deeptweak-0123456789ab-")
    assert made["metadata"]["name"].endswith("-3")
    assert made["metadata"]["namespace"] == "bench"
    assert (
        made["metadata"]["labels"] | {"team": "kernel", "deeptweak/run": "0123456789ab"}
        == made["metadata"]["labels"]
    )
    assert made["metadata"]["ownerReferences"][0]["uid"] == "1"
    assert made["resource"] == {
        "instanceType": "Standard_NC24ads_A100_v4",
        "labelSelector": {"matchLabels": {"kubernetes.io/hostname": "host-1"}},
        "preferredNodes": ["node-1"],
    }
    assert made["inference"] == {"preset": {"name": "phi-4-mini-instruct"}}
    assert (kaito.is_tuning(made), kaito.preset_of(made)) == (False, "phi-4-mini-instruct")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "must contain one YAML mapping; use the YAML file of one KAITO Workspace"),
        (
            SERVES.replace("v1beta1", "v1alpha1"),
            "is kaito.sh/v1alpha1 Workspace, not kaito.sh/v1beta1 Workspace",
        ),
        (SERVES.replace("Workspace", "Pod"), "is kaito.sh/v1beta1 Pod"),
        (SERVES + "status: {}\n", "unknown field status"),
        (SERVES.replace("instanceType", "instancetype"), "unknown field resource.instancetype"),
        (
            SERVES.replace("resource:\n", "resource:\n  count: 2\n"),
            "resource.count is 2; it must be 1",
        ),
        (SERVES.replace("inference:", "tuning: {}\ninference:"), "needs either `inference`"),
        (SERVES[: SERVES.index("inference:")], "needs either `inference`"),
        (
            SERVES.replace("preset: {name: phi-4-mini-instruct}", "template: {spec: {}}"),
            "KAITO measures presets only",
        ),
        (
            SERVES.replace("{name: phi-4-mini-instruct}", "{}"),
            "preset.name, the model, is missing",
        ),
        (SERVES.replace("labels: {team: kernel}", "labels: [team]"), "labels must be a mapping"),
        (
            SERVES.replace(
                "labels:", 'annotations: {kaito.sh/disable-benchmark: "true"}\n  labels:'
            ),
            "KAITO would measure nothing",
        ),
        (
            SERVES.replace(
                "metadata:\n  name: mine\n  namespace: elsewhere\n  labels: {team: kernel}",
                "metadata: mine",
            ),
            "metadata must be",
        ),
    ],
)
def test_a_workspace_that_cannot_be_measured_is_refused(
    tmp_path: Path, text: str, says: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(BadInput) as refused:
        kaito.workspace_of_file(path)
    assert says in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"event": "exit", "code": 0}', 0),
        (b'{"event": "exit", "code": 1}', 1),
        (b'{"event": "end"}', None),
        (b'{"event": "exit"}', None),
        (b'{"event": "exit", "code": ', None),
        (b"exit 1", None),
    ],
)
def test_the_last_word_of_a_lingering_workload(line: bytes, code: int | None) -> None:
    assert workload.exit_of(line) == code


def test_a_restarted_container_is_reported_by_its_previous_state() -> None:
    """Seen late: it runs again, its log is a new one, and only its last state knows."""
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    status = {"name": "workload", "restartCount": 1, "state": {"running": {}}, "lastState": last}
    again = pod.before_restart(
        {"metadata": {"name": "w-0"}, "status": {"containerStatuses": [status]}}
    )
    assert again is not None
    assert again["status"]["containerStatuses"][0]["state"] == last
    assert (
        pod.before_restart({"status": {"containerStatuses": [{**status, "restartCount": 0}]}})
        is None
    )
    assert pod.before_restart({}) is None
