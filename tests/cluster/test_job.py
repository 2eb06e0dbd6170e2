"""A cell's workload as a Job on a real kubelet: local results, causes of faults, no leftovers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fixtures.kubernetes import api as apis
from fixtures.kubernetes import manifests, removal, settings, workload
from fixtures.kubernetes.client import Cluster, Where, connect
from fixtures.kubernetes.settings import Shared
from fixtures.kubernetes.watch import watch
from fixtures.targets import _process
from fixtures.terms import Order, WorkloadRun
from fixtures.workloads import load
from tests.cluster.line import to_cluster
from tests.said import SPEAK

Json = dict[str, Any]
RUN_ID = "0123456789ab"
PATIENCE_S = 180.0


class Cells:
    def __init__(
        self, cluster: Cluster, node: str, image: str, over: settings.Overlay, number: int = 0
    ) -> None:
        self.cluster, self.node, self.image, self.overlay = cluster, node, image, over
        self.n = number * 100
        self.place: Json = {}

    def job(self, order: Order, *, gpus: int = 0, image: str | None = None) -> Json:
        self.n += 1
        chosen = settings.TargetConfig(
            Where(), "", image=image or self.image, gpus=gpus, overlay=self.overlay
        )
        spot = manifests.Spot(RUN_ID, self.node, self.node, self.cluster.namespace, None)
        return manifests.workload_job(
            chosen, spot, order, self.n, "study/cell", Shared(network=False, ipc=False)
        )

    def run(
        self,
        job: Json,
        order: Order,
        on_start: Callable[[Json], None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> WorkloadRun:
        result, self.place = workload.ended(
            workload.running(self.cluster, job, order, on_start=on_start, patience_s=patience_s)
        )
        return result

    def play(
        self,
        script: str,
        on_start: Callable[[Json], None] | None = None,
        *,
        start_timeout_s: float = 30,
        step_timeout_s: float = 30,
        patience_s: float = PATIENCE_S,
        change: Callable[[Json], None] = lambda _: None,
    ) -> WorkloadRun:
        """Run a script that may use the words of `SPEAK`; `change` is given the Job first."""
        order = Order(
            load("idle"), 2, 1, 7, start_timeout_s=start_timeout_s, step_timeout_s=step_timeout_s
        )
        job = self.job(order)
        container_of(job).update(command=["python", "-S", "-c", SPEAK + script], args=[])
        change(job)
        return self.run(job, order, on_start, patience_s)


def container_of(job: Json) -> Json:
    containers: list[Json] = job["spec"]["template"]["spec"]["containers"]
    return containers[0]


@dataclass(frozen=True)
class Play:
    """A script that a test wants to see the end of."""

    script: str
    on_start: Callable[[Cluster, Json], object] | None = None
    options: dict[str, Any] = field(default_factory=dict)


def plays(
    script: str, on_start: Callable[[Cluster, Json], object] | None = None, **options: Any
) -> pytest.MarkDecorator:
    """Give a test the result of a script as `played`.

    All of this file run side by side: a kubelet's second is shared.
    """
    return pytest.mark.parametrize(
        "played", [Play(script, on_start, options)], indirect=True, ids=["pod"]
    )


@pytest.fixture(scope="module")
def crowd(
    request: pytest.FixtureRequest, kubeconfig: Path, node_name: str, image: str, overlay_file: Path
) -> Iterator[dict[int, Any]]:
    """Start every script of this file's chosen tests, in a namespace that must end up empty."""
    wanted = [
        item.callspec.params.get("played")
        for item in request.session.items
        if hasattr(item, "callspec")
    ]
    cluster = connect(Where(str(kubeconfig), None, f"deeptweak-crowd-{os.getpid()}"))
    apis.create(cluster, apis.NAMESPACES, {"metadata": {"name": cluster.namespace}})

    def run(number: int, play: Play) -> tuple[WorkloadRun, Json]:
        cells = Cells(cluster, node_name, image, settings.read_overlay(overlay_file), number)

        def on_start(pod: Json) -> None:
            if play.on_start is not None:
                play.on_start(cluster, pod)

        result = cells.play(play.script, on_start, **play.options)
        return result, cells.place

    with ThreadPoolExecutor(8) as pool:
        yield {
            id(play): pool.submit(run, number, play)
            for number, play in enumerate(wanted)
            if isinstance(play, Play)
        }
    nothing_left(cluster)
    apis.delete(cluster, apis.NAMESPACES, cluster.namespace)


@pytest.fixture
def played(request: pytest.FixtureRequest, crowd: dict[int, Any]) -> tuple[WorkloadRun, Json]:
    found: tuple[WorkloadRun, Json] = crowd[id(request.param)].result()
    return found


def nothing_left(cluster: Cluster) -> None:
    for kind in (apis.JOBS, apis.PODS):
        assert [one["metadata"]["name"] for one in apis.list_(cluster, kind)[0]] == []


@pytest.fixture
def cells(cluster: Cluster, node_name: str, image: str, overlay_file: Path) -> Iterator[Cells]:
    """A test's cells, one after another; afterwards neither Job nor pod may exist."""
    yield Cells(cluster, node_name, image, settings.read_overlay(overlay_file))
    nothing_left(cluster)


def error_of(result: WorkloadRun | tuple[WorkloadRun, Json]) -> str:
    result = result[0] if isinstance(result, tuple) else result
    assert result.error
    assert "\n" not in result.error
    return result.error


@pytest.mark.needs("torch")
def test_a_real_training_workload_gives_what_it_gives_at_home(cells: Cells, tmp_path: Path) -> None:
    """The same facts, samples and losses; only times differ.

    Loss: the same arithmetic on the same processor, within 1e-4.
    """
    order = Order(load("cnn_train"), steps=4, warmup_steps=1, seed=7, scratch=tmp_path)
    started: list[Json] = []
    there, here = cells.run(cells.job(order), order, started.append), _process.run(order)
    assert (there.error, here.error) == (None, None)
    assert there.facts.keys() == here.facts.keys()
    assert there.facts["data_crc32"] == here.facts["data_crc32"]
    assert [(s.index, s.warmup, s.samples, s.tokens) for s in there.steps] == [
        (s.index, s.warmup, s.samples, s.tokens) for s in here.steps
    ]
    assert [s.loss for s in there.steps] == pytest.approx([s.loss for s in here.steps], rel=1e-4)
    assert all(s.wall_s > 0 and s.cpu_s > 0 for s in there.steps)
    [pod] = started
    assert cells.place["pod"] == pod["metadata"]["name"]
    assert cells.place["pod_uid"] == pod["metadata"]["uid"]
    assert cells.place["node"] == cells.node
    assert cells.place["image"] == cells.image
    assert "sha256:" in cells.place["image_id"]


def test_a_cell_asks_the_api_server_for_next_to_nothing(cells: Cells) -> None:
    """Create, list, watch, log, delete: five requests, however long it lasts.

    5 a second would be allowed.
    """
    before = cells.cluster.requests
    result = cells.play("ready(); all_steps()")
    assert result.error is None
    assert [(s.index, s.warmup) for s in result.steps] == [(0, True), (1, False), (2, False)]
    # One more where the log ended before the pod was seen to, and was opened again.
    assert cells.cluster.requests - before <= 6


@plays(
    "print('hello'); ready(a=1); print('oops', file=sys.stderr, flush=True); all_steps(); "
    "print('bye')"
)
def test_whatever_else_is_printed_does_not_disturb_the_protocol(
    played: tuple[WorkloadRun, Json],
) -> None:
    """In a pod's log stdout and stderr are one."""
    result, _ = played
    assert result.error is None
    assert result.facts == {"a": 1}
    assert [(s.index, s.warmup) for s in result.steps] == [(0, True), (1, False), (2, False)]


@plays("ready(); all_steps(); time.sleep(1000)")
def test_who_lingers_after_the_last_word_is_told_to_end(played: tuple[WorkloadRun, Json]) -> None:
    """All that was asked for is there; nobody waits for what comes after."""
    assert played[0].error is None


@plays("ready(); step(0); print('one'); print('two', file=sys.stderr); sys.exit(3)")
def test_an_exit_code_is_told_with_the_last_lines(played: tuple[WorkloadRun, Json]) -> None:
    assert error_of(played).startswith("Died: 1 of 3 steps were done. Pod ")
    assert "ended with exit code 3" in error_of(played)
    assert set(played[0].last_lines) == {"one", "two"}
    assert {"one", "two"} <= set(error_of(played).split())
    assert len(played[0].steps) == 1


@plays(
    "print('begun', flush=True); ready(); time.sleep(1000)",
    change=lambda job: job["spec"].update(activeDeadlineSeconds=25),
)
def test_the_job_s_own_deadline_is_named(played: tuple[WorkloadRun, Json]) -> None:
    """Beyond the harness's own time-outs: pod and log are gone with it, streamed lines are kept.

    Ten seconds were too few on a busy machine: its pod had not printed anything. After 30 s of
    silence the harness gives up.
    """
    assert "(DeadlineExceeded)" in error_of(played)
    assert played[0].last_lines == ("begun",)


def no_such_secret(job: Json) -> None:
    job["spec"]["template"]["spec"]["volumes"].append(
        {"name": "nosuch", "secret": {"secretName": "nosuch"}}
    )
    container_of(job)["volumeMounts"].append({"name": "nosuch", "mountPath": "/nosuch"})


def changed(**fields: object) -> dict[str, Callable[[Json], None]]:
    """The container with other fields."""
    return {"change": lambda job: container_of(job).update(fields)}


def delete_pod(cluster: Cluster, pod: Json, grace_s: int | None = None) -> None:
    apis.delete(cluster, apis.PODS, pod["metadata"]["name"], grace_s=grace_s)


SLEEPS = "ready(); step(0); time.sleep(1000)"
# What is played, how its error begins, and what is in it.
TROUBLES: dict[str, tuple[Play, str, list[str]]] = {
    "fails after the last word": (Play("ready(); all_steps(); os._exit(3)"), "", ["exit code 3"]),
    "a missing module is the image's fault": (
        Play("import transformers"),
        "",
        ["No module named 'transformers'"],
    ),
    "too few steps": (Play("ready(); step(0)"), "Ended too early: 1 of 3 steps were done.", []),
    # Without waiting for the program, which would go on for long.
    "a broken protocol": (
        Play("ready(); step(5); time.sleep(1000)", None, {"step_timeout_s": 1000}),
        "Printed an invalid line of the protocol",
        [],
    ),
    "never ready": (
        Play("print('loading', flush=True); time.sleep(1000)", None, {"start_timeout_s": 5}),
        "Hung: not ready 5 s after its start. Pod ",
        ["loading"],
    ),
    "nothing more": (
        Play(SLEEPS, None, {"step_timeout_s": 3}),
        "Hung: 1 of 3 steps were done, then no output for 3 s.",
        [],
    ),
    "evicted": (
        Play(SLEEPS, lambda cluster, pod: apis.evict(cluster, pod["metadata"]["name"])),
        "",
        ["EvictionByEvictionAPI"],
    ),
    "its pod deleted": (
        Play(SLEEPS, delete_pod),
        "",
        ["The pod was deleted from outside this run"],
    ),
    "its Job deleted": (
        Play(
            SLEEPS,
            lambda cluster, pod: apis.delete(
                cluster, apis.JOBS, pod["metadata"]["labels"]["job-name"]
            ),
        ),
        "",
        [f"The Job deeptweak-{RUN_ID}"],
    ),
    "without enough memory": (
        Play(
            "ready(); step(0); x = bytearray(1 << 30)",
            None,
            changed(resources={"limits": {"memory": "64Mi"}}),
        ),
        "",
        ["OOMKilled"],
    ),
    # It stands in the pod's events alone.
    "no such secret": (
        Play("ready(); all_steps()", None, {"change": no_such_secret, "patience_s": 5}),
        "Did not start within 5 s of creating its Job. Pod ",
        ['secret "nosuch" not found'],
    ),
}


@pytest.mark.parametrize(
    ("played", "begins", "words"), TROUBLES.values(), indirect=["played"], ids=TROUBLES
)
def test_what_went_wrong_is_told(
    played: tuple[WorkloadRun, Json], begins: str, words: list[str]
) -> None:
    assert error_of(played).startswith(begins)
    assert all(word in error_of(played) for word in words), error_of(played)


def test_a_pod_that_the_namespace_refuses_is_told(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No pod comes: only the Job's events, read after a while without a pod, give the reason."""
    monkeypatch.setattr(workload, "_LOOK_S", 2.0)
    quotas = apis.Kind("v1", "resourcequotas", "ResourceQuota")
    apis.create(
        cells.cluster, quotas, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    )
    result = cells.play("ready(); all_steps()")
    assert "exceeded quota" in error_of(result)
    assert "no pod" in error_of(result)


@pytest.mark.parametrize("end", [SystemExit, ValueError])
def test_an_exception_at_startup_is_raised_after_the_job_is_gone(
    end: type[BaseException], cells: Cells
) -> None:
    def break_off(_: Json) -> None:
        raise end

    with pytest.raises(end):
        cells.play("ready(); time.sleep(1000)", break_off)


def test_ctrl_c_ends_the_wait_and_leaves_no_job(cells: Cells) -> None:
    """A real signal, in the middle of a wait for the next line."""

    def interrupt_soon(_: Json) -> None:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            cells.play("ready(); time.sleep(1000)", interrupt_soon)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_node_that_is_gone_keeps_nobody_waiting(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod "runs" on a node without a kubelet: no log, no end; it is removed by force."""
    monkeypatch.setattr(removal, "GOING_S", 3.0)
    cluster, name = cells.cluster, f"ghost-{os.getpid()}"
    apis.create(cluster, apis.NODES, {"metadata": {"name": name}})
    cluster.patience_s = 3.0
    running = {
        "name": manifests.WORKLOAD_CONTAINER,
        "image": "x",
        "imageID": "x",
        "ready": True,
        "restartCount": 0,
        "started": True,
    }
    state = {
        "phase": "Running",
        "containerStatuses": [
            {**running, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        ],
    }

    def onto_the_ghost(job: Json) -> None:
        spec = job["spec"]["template"]["spec"]
        spec["nodeName"] = name
        del spec["affinity"]

    def pretend() -> None:
        with watch(cluster, apis.PODS, deadline_s=PATIENCE_S) as events:
            _, pod = next(events)
        apis.patch(
            cluster, apis.PODS, pod["metadata"]["name"], {"status": state}, subresource="status"
        )

    pretending = threading.Thread(target=pretend)
    pretending.start()
    try:
        result = cells.play("", change=onto_the_ghost, start_timeout_s=1)
    finally:
        pretending.join()
        apis.delete(cluster, apis.NODES, name)
    assert error_of(result).startswith("Hung: not ready 1 s after its start.")
    assert f"Node {name} is not ready" in error_of(result)
    assert "was removed by force" in error_of(result)


def test_a_short_loss_of_the_network_costs_nothing(
    cells: Cells, kubeconfig: Path, tmp_path: Path
) -> None:
    """Watch and log are taken up again, the log from its start: each step is there once."""
    with to_cluster(kubeconfig, tmp_path) as (network, path):
        cells.cluster = connect(Where(str(path), None, cells.cluster.namespace))

        def cut_soon(_: Json) -> None:
            for after_s in (1.0, 2.0, 2.5):
                threading.Timer(after_s, network.cut).start()

        before = network.accepted
        result = cells.play(
            "print('one', flush=True); ready(); step(0); time.sleep(2); step(1); time.sleep(1.5); "
            "step(2); print('two'); end()",
            cut_soon,
        )
        assert network.accepted - before > 3
    assert result.error is None
    assert [s.index for s in result.steps] == [0, 1, 2]
    assert result.last_lines.count("one") == 1


def test_a_lost_api_server_is_waited_for_so_long_and_then_told(
    cells: Cells, kubeconfig: Path, tmp_path: Path
) -> None:
    """Nobody can say then whether the Job is gone: so it is said, and who removes it."""
    at_home = cells.cluster
    with to_cluster(kubeconfig, tmp_path) as (network, path):
        cells.cluster = connect(Where(str(path), None, at_home.namespace))
        cells.cluster.patience_s = 2.0

        result = cells.play(
            "ready(); time.sleep(1000)", lambda _: network.close(), start_timeout_s=1000
        )
    assert error_of(result).startswith("Lost contact: ")
    assert "remove it with `python -m fixtures restore --target=kubernetes`" in error_of(result)
    [job] = apis.list_(at_home, apis.JOBS)[0]
    apis.delete(at_home, apis.JOBS, job["metadata"]["name"])
    with watch(at_home, apis.PODS, deadline_s=PATIENCE_S) as events:
        assert any(type_ == "DELETED" for type_, _ in events)


def test_a_field_that_there_is_not_is_refused_at_once(cells: Cells) -> None:
    """A slip in --pod-overlay.

    The server answers 500 to it, which otherwise is worth another try, for a minute.
    """
    before = cells.cluster.requests
    with pytest.raises(apis.ApiError) as refused:
        cells.play("", change=lambda job: job["spec"]["template"]["spec"].update(tolerance=[]))
    assert ".spec.template.spec.tolerance: field not declared in schema" in str(refused.value)
    # Asked once, then deleted, and its pods looked for.
    assert cells.cluster.requests - before == 3
