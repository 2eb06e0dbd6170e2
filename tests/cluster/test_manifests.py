"""What a run creates is what the golden files show; a change of them is read by a person.

`DEEPTWEAK_GOLDEN=write` rewrites them.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fixtures import workloads
from fixtures.kubernetes import api as apis
from fixtures.kubernetes import manifests, names, settings
from fixtures.kubernetes.client import Where
from fixtures.kubernetes.settings import Overlay, Shared
from fixtures.terms import Order
from fixtures.workloads import load
from fixtures.workloads._protocol import read

Json = dict[str, Any]

GOLDEN = Path(__file__).parent / "golden"
RUN_ID, NODE, IMAGE, NAMESPACE = "0123456789ab", "node-1", "registry.example/deeptweak:1", "bench"
JOURNAL = {
    "metadata": {
        "name": names.journal_name(RUN_ID, NODE),
        "uid": "11111111-2222-3333-4444-555555555555",
    }
}
SPOT = manifests.Spot(RUN_ID, NODE, NODE, NAMESPACE, None)
ORDER = Order(load("cnn_train"), steps=40, warmup_steps=5, seed=1)
# The three things that clusters most often ask for, and a volume in the place of ours.
OVERLAY = Overlay(
    metadata={
        "labels": {"team": "kernel", names.RUN: "forged"},
        "annotations": {"example.com/why": "a benchmark"},
    },
    spec={
        "imagePullSecrets": [{"name": "registry"}],
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "volumes": [{"name": "scratch", "hostPath": {"path": "/mnt/nvme"}}],
    },
    container={
        "env": [{"name": "OMP_NUM_THREADS", "value": "8"}],
        "resources": {"requests": {"cpu": "8"}},
    },
)


def job(over: Overlay = Overlay(), order: Order = ORDER, **options: Any) -> Json:  # noqa: B008
    shared = Shared(network=options.pop("host_network", False), ipc=False)
    spot, arms = SPOT._replace(journal=options.pop("journal", JOURNAL)), options.pop("arms", 1)
    chosen = settings.TargetConfig(Where(), "", image=IMAGE, overlay=over, **options)
    return manifests.workload_job(chosen, spot, order, 1, "train/cnn_train-stock-b0", shared, arms)


def agent(over: Overlay = Overlay(), journal: Json | None = JOURNAL) -> Json:  # noqa: B008
    return manifests.agent_pod(SPOT._replace(journal=journal), IMAGE, over)


CASES: dict[str, Callable[[], Json]] = {
    "agent": agent,
    "agent-overlaid": lambda: agent(OVERLAY),
    "workload": job,
    "workload-gpu-host-network-overlaid": lambda: job(OVERLAY, gpus=2, host_network=True),
    "planned": lambda: job(journal=None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_manifest_is_the_golden_one(case: str) -> None:
    """Byte for byte, as `--plan` prints it."""
    path, text = GOLDEN / f"{case}.yaml", manifests.render([CASES[case]()])
    if os.environ.get("DEEPTWEAK_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_api_server_takes_every_golden_manifest(
    case: str, kubeconfig: Path, namespace: str
) -> None:
    """It validates each field, unknown ones too, without creating anything."""
    from fixtures.kubernetes.client import ApiRequest, connect, send

    [body] = yaml.safe_load_all((GOLDEN / f"{case}.yaml").read_text())
    body["metadata"]["namespace"] = namespace
    kind = {"Pod": apis.PODS, "Job": apis.JOBS}[body["kind"]]
    cluster = connect(Where(str(kubeconfig), None, namespace))
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    answer = send(
        cluster, ApiRequest("POST", kind.url(cluster), "create", kind.resource, query, body)
    )
    assert answer["metadata"]["name"] == body["metadata"]["name"]
    assert apis.get(cluster, kind, answer["metadata"]["name"]) is None


def test_a_job_ends_after_its_timeouts_and_is_never_retried() -> None:
    """600 s to be placed and pulled, 180 s to be ready, 3 steps of 60 s, 60 s to end: 1020 s."""
    spec = job(order=Order(load("idle"), steps=2, warmup_steps=1, seed=1))["spec"]
    assert spec["activeDeadlineSeconds"] == 600 + 180 + 4 * 60
    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (0, "Never")


def test_a_job_that_takes_turns_may_wait_for_all_others() -> None:
    """600 + 180 + 4 × 60 = 1020 s for each of three."""
    order = Order(load("idle"), steps=2, warmup_steps=1, seed=1, slice_steps=1)
    spec = job(order=order, arms=3)["spec"]
    [container] = spec["template"]["spec"]["containers"]
    assert spec["activeDeadlineSeconds"] == 3 * 1020
    assert (container["stdin"], container["args"][-1]) == (True, "--slices=1")


@pytest.mark.parametrize("workload", workloads.names())
def test_the_program_understands_what_it_is_told(
    workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workload's own parser reads the arguments; the command's module exists."""
    [container] = job(order=Order(load(workload), 40, 5, 7))["spec"]["template"]["spec"][
        "containers"
    ]
    monkeypatch.setattr("sys.argv", ["workload", *container["args"]])
    asked, params, linger = read(workloads.class_of(workload))
    assert not linger
    assert (asked.steps, asked.warmup, asked.seed) == (40, 5, 7)
    assert params == json.loads(json.dumps(load(workload).params))
    assert str(asked.scratch) in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert importlib.util.find_spec(container["command"][-1])


def test_a_variant_is_its_workload_with_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments and an annotation hold `:` and `=`, which a Kubernetes name cannot."""
    made = job(order=Order(load("idle:wait_s=0.005"), 40, 5, 7))
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert container["command"][-1] == "fixtures.workloads.idle"
    monkeypatch.setattr("sys.argv", ["workload", *container["args"]])
    _, params, _ = read(workloads.class_of("idle"))
    assert params["wait_s"] == 0.005
    assert ":" not in "".join([made["metadata"]["name"], *made["metadata"]["labels"].values()])


def test_jobs_of_one_run_have_unique_names_across_nodes() -> None:
    chosen, shared = settings.TargetConfig(Where(), ""), Shared(network=False, ipc=False)
    made = {
        manifests.workload_job(chosen, SPOT._replace(node=node), ORDER, n, "x", shared)["metadata"][
            "name"
        ]
        for node in ("a", "b", "x" * 200)
        for n in (1, 2, 10_000)
    }
    assert len(made) == 9
    # The Job's controller appends six characters, and a pod's name is its host name: 63 at most.
    assert max(map(len, made)) + 6 <= 63
