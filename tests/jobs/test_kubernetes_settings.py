"""Where jobs run on a cluster: a strict file, its option, slots of nodes, and the Job made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from fixtures import studies
from fixtures.kubernetes import recovery
from fixtures.studies.jobs import engines, kinds
from fixtures.studies.jobs.engines import EngineRequest, cluster, kubernetes
from fixtures.studies.jobs.engines.cluster import EngineConfig
from fixtures.studies.jobs.terms import JobClass, Planned, Size
from fixtures.terms import BadInput, Metric, Refused, Study
from fixtures.workloads import load

if TYPE_CHECKING:
    from fixtures.kubernetes.client import Cluster

CLASS = JobClass(
    "small", "sleep", Size("constant", 1.0), cores=0.5, memory_mib=100.0, params={"serial": 0.5}
)
LEASE = {"metadata": {"name": "deeptweak-0123456789ab-jobs", "uid": "u"}}
JOB = Planned(7, CLASS, 0.0, 2.5, seed=11, replicas=2)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return path


def test_a_file_says_where_and_paths_in_it_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "overlay.yaml").write_text("spec: {priorityClassName: low}\n")
    text = (
        "kubeconfig: c.kubeconfig\nnamespace: team\noverlay: overlay.yaml\nvolume: claim\nstop: "
        "ssh {node} halt\nstart: wake {node}\n"
    )
    found = cluster.read(written(tmp_path, text))
    assert found.kubeconfig == str(tmp_path / "c.kubeconfig")
    assert (found.namespace, found.volume, found.context) == ("team", "claim", None)
    assert found.overlay.spec == {"priorityClassName": "low"}
    assert found.stop == ("ssh", "{node}", "halt")


def test_a_node_that_stays_away_keeps_the_lease_for_restore() -> None:
    """Without the lease there would be no trace that this stream took it."""
    asked: list[str] = []

    class Nodes:
        away = frozenset({"a", "b", "c"})

        def back(self, name: str) -> bool:
            asked.append(name)
            if name == "a":
                raise Refused("nobody answers there")
            return True

    engine, held = (
        object.__new__(kubernetes.KubernetesJobs),
        recovery.stream_lease(cast("Cluster", None), "0123456789ab"),
    )
    vars(engine).update(_nodes=Nodes(), _lease=held)
    with pytest.raises(Refused, match="node a: nobody answers there"):
        engine._return_nodes()
    assert asked == ["a", "b", "c"]
    assert held.stays
    held._thread.start()
    held.__exit__()  # has no cluster that it could ask


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("namespce: a\n", "unknown key 'namespce'. Did you mean 'namespace'"),
        ("stop: halt {node}\n", "`stop` and `start` must be given together"),
        ("stop: halt\nstart: wake {node}\n", "stop must contain the placeholder"),
        ('stop: "halt \'{node}"\nstart: wake {node}\n', "stop is not a valid command"),
        ("- a\n", "a YAML file"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInput) as error:
        cluster.read(written(tmp_path, text))
    assert words in str(error.value)
    assert "--job-cluster=" in str(error.value)


def test_checkpoints_need_a_place_that_outlives_a_pod(tmp_path: Path) -> None:
    path = written(tmp_path, "namespace: team\n")
    wanted = EngineRequest(1, 1, (CLASS,), tmp_path, 1.0, files={cluster.FILE: path})
    with pytest.raises(Refused, match="Set `volume`"):
        cluster.settings_of(wanted)
    assert cluster.settings_of(replace(wanted, checkpoint_s=0.0)).namespace == "team"


def test_an_engine_without_its_client_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert engines.unavailable_reason("jobs", ()) is None
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    assert "pip install kubernetes" in str(engines.unavailable_reason("jobs", ()))


def test_the_file_of_a_cluster_sends_the_jobs_there(tmp_path: Path) -> None:
    path = written(tmp_path, "namespace: team\n")
    study = Study(
        "cluster_queueing", "Why?", ("job_stream",), ("stock",), Metric("step_time_mean_s", "lower")
    )
    given: dict[str, object] = {"job_cluster": path}
    (stream,) = studies.apply(given, study, workloads=None).workloads
    assert load(stream).id == "job_stream:engine=jobs"
    assert studies.files(given, study.name) == {"job_cluster": path}
    path.write_text("nosuch: 1\n")
    with pytest.raises(BadInput, match="unknown key 'nosuch'"):
        studies.apply(given, study, workloads=None)


def stream(**settings: Any) -> cluster.StreamJobs:
    return cluster.StreamJobs("0123456789ab", EngineConfig(**settings), 0.5, LEASE)


def test_replicas_are_containers_whose_limits_are_their_requests() -> None:
    """The cluster's tests have the API server's view of it."""
    made = cluster.manifest(stream(), JOB, 3, 0.25, ("node-a",), suspend=False)
    assert made["metadata"]["name"] == "deeptweak-0123456789ab-7-3"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert (made["spec"]["suspend"], made["spec"]["backoffLimit"]) == (False, 0)
    spec = made["spec"]["template"]["spec"]
    assert [one["name"] for one in spec["containers"]] == ["replica-0", "replica-1"]
    for number, one in enumerate(spec["containers"]):
        assert one["resources"] == {
            "limits": {"cpu": "500m", "memory": "100Mi"},
            "requests": {"cpu": "500m", "memory": "100Mi"},
        }
        kind, request, replica = one["args"]
        told = kinds.read_request(json.loads(request) | {"replica": int(replica)}, print)
        assert (
            kind,
            told.work,
            told.from_work,
            told.seed,
            told.attempt,
            told.replicas,
            told.replica,
        ) == (
            "sleep",
            2.5,
            0.25,
            11,
            3,
            2,
            number,
        )
        assert told.params["serial"] == 0.5
    [term] = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchFields"][0]["values"] == ["node-a"]


def node(name: str, *, ready: bool = True, cordoned: bool = False) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    return {
        "metadata": {"name": name},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": conditions},
    }


def nodes(slots: int, *names: str) -> kubernetes.Nodes:
    none: Any = None  # no cluster is asked
    return kubernetes.Nodes(none, "0123456789ab", EngineConfig(), slots, names)


def test_a_job_runs_where_most_slots_are_free() -> None:
    """3 slots on two nodes: 2 and 1. Of what is lost nothing is given."""
    made = nodes(3, "a", "b")
    assert [made.take(replace(JOB, job=number, replicas=1)) for number in (1, 2, 3)] == [
        ("a",),
        ("a",),
        ("b",),
    ]
    with pytest.raises(Refused, match="Job 4 needs 1 slots at once, but only 0 of 3 are free"):
        made.take(replace(JOB, job=4, replicas=1))
    made.leave(1)
    assert made.has(2)
    assert not made.has(1)
    assert made.take(replace(JOB, job=4, replicas=1)) == ("a",)
    made.leave(2)
    assert made.update("MODIFIED", node("a", ready=False)) is False
    with pytest.raises(Refused, match="0 of 3 are free"):
        made.take(replace(JOB, job=5, replicas=1))


def test_a_node_that_is_lost_or_back_is_told_once() -> None:
    made = nodes(2, "a")
    stages = [
        node("a"),
        node("a", cordoned=True),
        node("a", ready=False),
        node("a", cordoned=True),
        node("a"),
        node("a"),
        node("other"),
    ]
    assert [made.update("MODIFIED", one) for one in stages] == [
        None,
        False,
        None,
        None,
        True,
        None,
        None,
    ]
    assert made.update("DELETED", node("a")) is False


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("false", "{node}"), "exit code 1: nothing on stderr"),
        (("sh", "-c", "echo no such host >&2; exit 3", "{node}"), "exit code 3: no such host"),
        (("nosuchprogram", "{node}"), "nosuchprogram a: .*No such file"),
    ],
)
def test_a_command_that_fails_is_told_with_what_it_said(
    command: tuple[str, ...], words: str
) -> None:
    with pytest.raises(Refused, match=f"{words}.*Correct `stop` and `start`"):
        kubernetes.run_command(command, "a")
