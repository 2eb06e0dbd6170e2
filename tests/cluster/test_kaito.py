"""A workload as a KAITO Workspace on a real kubelet: our container, or a self-measuring preset.

The controller is the stand-in of `operators/kaito.py`, which follows recordings of the real one;
its tuning image is a shell script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.kubernetes import api as apis
from fixtures.kubernetes import kaito, manifests, names, recovery, settings, workload
from fixtures.kubernetes.client import Where, connect
from fixtures.kubernetes.journal import NodeJournal
from fixtures.kubernetes.settings import Shared
from fixtures.kubernetes.watch import watch
from fixtures.targets import _process
from fixtures.terms import Order, Refused, WorkloadRun
from fixtures.workloads import load
from tests.cluster import test_job
from tests.cluster.operators.fixtures import StandIn, kaito_operator
from tests.cluster.test_job import PATIENCE_S, RUN_ID, error_of
from tests.said import SPEAK
from tests.waiting import until

__all__ = ["kaito_operator"]  # a fixture
pytestmark = pytest.mark.needs("reference")

Json = dict[str, Any]
TUNES: Json = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "Workspace",
    "metadata": {},
    "resource": {"instanceType": "Standard_NC24ads_A100_v4", "labelSelector": {}},
    "tuning": {
        "preset": {"name": "phi-3-mini-128k-instruct"},
        "method": "qlora",
        "input": {"urls": ["http://x/y"]},
        "output": {"volumeSource": {"emptyDir": {}}},
    },
}
# What benchmark_entrypoint.py writes to its server's stdout, a failed attempt first.
MEASURES = """
import signal, time
print("INFO vLLM is up", flush=True)
print('KAITO_BENCHMARK_RESULT 2026-01-01T00:00:00Z {"vllm_total_tpm":-1.0,\
"ttft_avg_ms":-1.0,"tpot_avg_ms":-1.0}', flush=True)
print('KAITO_BENCHMARK_RESULT 2026-01-01T00:01:02Z {"vllm_total_tpm":644436.67,\
"ttft_avg_ms":8703.45,"tpot_avg_ms":218.51}', flush=True)
signal.signal(signal.SIGTERM, lambda *_: exit())
time.sleep(3600)
"""


class Cells(test_job.Cells):
    hostname = ""

    def workspace(self, order: Order) -> Json:
        self.n += 1
        chosen = settings.TargetConfig(
            Where(), "", via="kaito", image=self.image, overlay=self.overlay
        )
        return manifests.of_cell(
            chosen, self._spot(), order, self.n, "study/cell", Shared(network=False, ipc=False)
        )

    def _spot(self) -> manifests.Spot:
        return manifests.Spot(RUN_ID, self.node, self.hostname, self.cluster.namespace, None)

    def lingers(
        self,
        script: str,
        on_start: Callable[[Json], None] | None = None,
        *,
        patience_s: float = PATIENCE_S,
    ) -> WorkloadRun:
        order = Order(load("idle"), 2, 1, 7, start_timeout_s=30, step_timeout_s=30)
        body = self.workspace(order)
        body["inference"]["template"]["spec"]["containers"][0].update(
            command=["python", "-S", "-c", SPEAK + LINGER + script], args=[]
        )
        return self.run(body, order, on_start, patience_s)

    def measure(
        self,
        body: Json,
        on_start: Callable[[Json], None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> WorkloadRun:
        self.n += 1
        placed = kaito.workspace_placed(body, self._spot(), self.n, "study/cell")
        order = Order(load("idle"), 1, 0, 7, start_timeout_s=10, step_timeout_s=10)
        return self.run(placed, order, on_start, patience_s)


# As `fixtures/workloads/_protocol.py` does it.
LINGER = """
def linger(code):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(code))
    say(event="exit", code=code)
    while True: time.sleep(0.1)
"""


def cells_in(
    namespace: str, kubeconfig: Path, node_name: str, image: str, overlay_file: Path
) -> Cells:
    cluster = connect(Where(str(kubeconfig), None, namespace))
    node = apis.get(cluster, apis.NODES, node_name)
    assert node is not None
    made = Cells(cluster, node_name, image, settings.read_overlay(overlay_file))
    made.hostname = node["metadata"]["labels"][names.HOSTNAME]
    return made


@pytest.fixture(scope="module")
def collector(
    kubeconfig: Path, node_name: str, image: str, overlay_file: Path, crds: list[str]
) -> None:
    """Wait for the garbage collector to learn the new kind; till then it leaves owned objects."""
    assert "workspaces.kaito.sh" in crds
    cells = cells_in("default", kubeconfig, node_name, image, overlay_file)
    owner = apis.create(
        cells.cluster, apis.WORKSPACES, cells.workspace(Order(load("idle"), 1, 0, 7))
    )
    reference = {
        "apiVersion": kaito.API_VERSION,
        "kind": "Workspace",
        **{key: owner["metadata"][key] for key in ("name", "uid")},
    }
    apis.create(
        cells.cluster,
        apis.CONFIGMAPS,
        {"metadata": {"name": "owned", "ownerReferences": [reference]}},
    )
    apis.delete(cells.cluster, apis.WORKSPACES, owner["metadata"]["name"])
    until(
        lambda: apis.get(cells.cluster, apis.CONFIGMAPS, "owned") is None,
        "what a Workspace owned was not taken away",
        every_s=0.5,
    )


@pytest.fixture
def cells(
    kubeconfig: Path,
    namespace: str,
    node_name: str,
    image: str,
    overlay_file: Path,
    collector: None,
) -> Iterator[Cells]:
    """A test's cells; afterwards nothing made by KAITO or the run may exist."""
    del collector
    made = cells_in(namespace, kubeconfig, node_name, image, overlay_file)
    yield made
    for kind in (
        apis.WORKSPACES,
        apis.PODS,
        apis.Kind("apps/v1", "statefulsets", "StatefulSet"),
        apis.JOBS,
    ):
        left, _ = apis.list_(made.cluster, kind)
        assert [
            one["metadata"]["name"] for one in left if "deletionTimestamp" not in one["metadata"]
        ] == []


@pytest.fixture
def controller(cells: Cells, kaito_operator: StandIn) -> StandIn:
    del cells
    kaito_operator.start()
    return kaito_operator


@pytest.mark.needs("torch")
def test_a_real_training_workload_gives_what_it_gives_at_home(
    cells: Cells, controller: StandIn, tmp_path: Path
) -> None:
    """Steps, samples and losses; only times differ.

    The container lingers, so KAITO starts nothing anew and the log is complete.
    """
    order = Order(load("cnn_train"), steps=3, warmup_steps=1, seed=7, scratch=tmp_path)
    started: list[Json] = []
    there, here = cells.run(cells.workspace(order), order, started.append), _process.run(order)
    assert (there.error, here.error) == (None, None), controller.log
    assert there.facts["data_crc32"] == here.facts["data_crc32"]
    assert [(s.index, s.warmup, s.samples) for s in there.steps] == [
        (s.index, s.warmup, s.samples) for s in here.steps
    ]
    assert [s.loss for s in there.steps] == pytest.approx([s.loss for s in here.steps], rel=1e-4)
    [pod] = started
    assert pod["metadata"]["name"] == f"{cells.place['workspace']}-0" == cells.place["pod"]
    assert cells.place["node"] == cells.node
    assert "sha256:" in cells.place["image_id"]


def test_a_failing_workload_reports_its_exit_code_and_last_lines(
    cells: Cells, controller: StandIn
) -> None:
    """Its container goes on, or the traceback would be gone with it."""
    said = error_of(
        cells.lingers(
            "ready(); step(0); print('no such thing', file=sys.stderr, flush=True); linger(1)"
        )
    )
    assert said.startswith("Died with exit code 1: 1 of 3 steps were done.")
    assert said.endswith("Its last lines: no such thing")
    assert controller.running


def test_a_controller_that_died_keeps_nothing_behind(cells: Cells, controller: StandIn) -> None:
    """Its finalizer would hold Workspace and pod for ever: it is removed after 5 s and reported."""
    result = cells.lingers("ready(); all_steps(); linger(0)", lambda _: controller.kill())
    assert len(result.steps) == 3
    assert "its controller does not remove" in error_of(result)
    assert "workspace.finalizer.kaito.sh" in error_of(result)
    assert "its finalizer was removed" in error_of(result)


def test_restore_removes_what_a_killed_run_left_without_kaito(
    cells: Cells, controller: StandIn
) -> None:
    """The run that would have deleted the Workspace is dead, and so is its finalizer's owner."""
    journal = NodeJournal(cells.cluster, RUN_ID, cells.node)
    journal.open()
    body = cells.workspace(Order(load("idle"), 1, 0, 7))
    name = body["metadata"]["name"]
    workload.create(cells.cluster, apis.WORKSPACES, body)
    with watch(
        cells.cluster, apis.PODS, labels=f"kaito.sh/workspace={name}", deadline_s=PATIENCE_S
    ) as events:
        next(pod for _, pod in events if pod["spec"].get("nodeName"))
    controller.kill()
    recovery.clear(cells.cluster, journal)
    journal.close()
    assert apis.get(cells.cluster, apis.WORKSPACES, name) is None
    assert apis.list_(cells.cluster, apis.PODS)[0] == []


def test_a_cluster_without_kaito_says_how_to_do_without(
    kubeconfig: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster may have it, so ask for a missing group: the API server's answer is the same."""
    monkeypatch.setattr(
        apis, "WORKSPACES", replace(apis.WORKSPACES, api_version="kaito.invalid/v1beta1")
    )
    with pytest.raises(Refused, match="install KAITO"):
        workload.create(
            connect(Where(str(kubeconfig), None, namespace)),
            apis.WORKSPACES,
            {"metadata": {"name": "w"}},
        )


def test_a_tuning_preset_is_measured_by_its_own_trainer(cells: Cells, controller: StandIn) -> None:
    """Five steps of 1 s and 4 samples, as the stand-in's trainer says."""
    started: list[Json] = []
    result = cells.measure(TUNES, started.append)
    assert result.error is None, controller.log
    assert result.facts["kaito"] == {
        "preset": "phi-3-mini-128k-instruct",
        "metrics": {
            "train_runtime_s": 5.0,
            "throughput_samples_per_s": 4.0,
            "throughput_steps_per_s": 1.0,
            "train_loss": 2.45,
            "epochs": 1.0,
        },
        "window_s": 5.0,
    }
    assert result.steps == ()
    assert len(started) == 1
    assert cells.place["node"] == cells.node


def test_a_tuning_whose_first_pod_fails_is_judged_by_its_job(
    cells: Cells, kaito_operator: StandIn
) -> None:
    """KAITO calls the Workspace Failed for good; its Job tries again and completes."""
    kaito_operator.start(fault="first-pod-fails")
    result = cells.measure(TUNES)
    assert result.error is None, kaito_operator.log
    assert "throughput_samples_per_s" in result.facts["kaito"]["metrics"]  # type: ignore[index]


def test_a_serving_preset_is_measured_by_the_line_it_prints(
    cells: Cells, controller: StandIn
) -> None:
    """The stand-in has no model server: a script in a template prints what one prints.

    644436.67 tokens a minute are 10740.6 a second.
    """
    body: Json = {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {},
        "inference": {
            "preset": {"name": "phi-4"},
            "template": cells.workspace(Order(load("idle"), 1, 0, 7))["inference"]["template"],
        },
    }
    body["inference"]["template"]["spec"]["containers"][0].update(
        command=["python", "-S", "-c", MEASURES], args=[]
    )
    result = cells.measure(body)
    assert result.error is None, controller.log
    found = result.facts["kaito"]
    assert found["metrics"] == {  # type: ignore[index]
        "throughput_tokens_per_s": pytest.approx(10740.611, abs=0.001),
        "ttft_mean_s": pytest.approx(8.70345),
        "tpot_mean_s": pytest.approx(0.21851),
    }
