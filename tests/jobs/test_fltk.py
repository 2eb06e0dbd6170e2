"""FLTK's two JSON files become jobs and classes of ours."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures.studies.jobs import fltk
from fixtures.studies.jobs.kinds import complete
from fixtures.terms import BadInput

if TYPE_CHECKING:
    from fixtures.studies.jobs.fltk import FltkStream

FILES = Path(__file__).parent / "fltk_files"
CLUSTER = json.loads((FILES / "cluster.json").read_text())
DISTRIBUTED = json.loads((FILES / "distributed.json").read_text())
FEDERATED = json.loads((FILES / "federated.json").read_text())
Json = dict[str, Any]


def read(
    folder: Path,
    cluster: object = CLUSTER,
    experiment: object = DISTRIBUTED,
    seed: int = 1,
    jobs: int | None = None,
) -> FltkStream:
    paths = folder / "cluster.json", folder / "experiment.json"
    for path, document in zip(paths, (cluster, experiment), strict=True):
        path.write_text(document if isinstance(document, str) else json.dumps(document))
    return fltk.read(*paths, seed, jobs)


def changed(document: Json, *at: str | int, value: object) -> Json:
    """A document with another value at a place; `...` takes the key away."""
    found = copy.deepcopy(document)
    inner: Any = found
    for key in at[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return found


def batch() -> Json:
    orchestrator = {"orchestrator_type": "batch"}
    return changed(CLUSTER, "cluster", "orchestrator", value=orchestrator)


def job_class(document: Json, *at: str | int, value: object) -> Json:
    return changed(document, "trainTasks", 0, "jobClassParameters", 0, *at, value=value)


def learning(found: FltkStream) -> dict[str, Any]:
    return dict(found.classes[0].params)


def test_a_class_has_the_default_configuration() -> None:
    """The Worker's own settings are not read. FLTK's first seed is 11."""
    found = fltk.read(FILES / "cluster.json", FILES / "distributed.json", jobs=9)
    one, other = found.classes
    assert learning(found) == {"batch": 32, "lr": 0.2, "optimiser": "momentum"}
    assert (one.cores, one.memory_mib, one.replicas) == (0.25, 512, 3)
    assert one.priorities == ((0, 1.0),)
    assert (other.cores, other.memory_mib, other.replicas) == (2, 2048, 1)
    by_seed = [
        fltk.read(FILES / "cluster.json", FILES / "distributed.json", seed=seed, jobs=9).jobs
        for seed in (11, 12)
    ]
    assert by_seed[0] == found.jobs != by_seed[1]


CLASS = ("trainTasks", 0, "jobClassParameters", 0)


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (("trainTasks", 0, "type"), "distribute", r"experiment.json: .*`\$.trainTasks\[0\].type`"),
        (("trainTasks", 0, "type"), ..., "missing required field `type`"),
        (("trainTasks", 0, "lambda"), ..., r"trainTasks\[0\].lambda is missing"),
        (("trainTasks",), [], r"`\$.trainTasks`"),
        (CLASS, 1, r"`\$.trainTasks\[0\].jobClassParameters\[0\]`"),
        ((*CLASS, "networkConfiguration", "dataset"), "mnits", "networkConfiguration.dataset"),
        ((*CLASS, "systemParameters", "dataParallelism"), 0, "systemParameters.dataParallelism"),
        (
            (*CLASS, "systemParameters", "configurations", "default", "cores"),
            "500x",
            "'500x' is not a quantity; write it as Kubernetes does: 500m",
        ),
        (
            (*CLASS, "systemParameters", "configurations", "default", "memory"),
            ...,
            "missing required field `memory`",
        ),
        ((*CLASS, "hyperParameters", "default", "batchSize"), 12.5, "default.batchSize"),
        (
            (*CLASS, "hyperParameters", "default", "totalEpochs"),
            0,
            "Cifar10CNN-cifar10: `totalEpochs` must be at least 1",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(
    tmp_path: Path, at: tuple[str | int, ...], value: object, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        read(tmp_path, experiment=changed(DISTRIBUTED, *at, value=value))


def test_classes_with_probability_0_are_dropped_but_never_all(tmp_path: Path) -> None:
    document = job_class(DISTRIBUTED, "classProbability", value=0)
    assert [one.name for one in read(tmp_path, experiment=document, jobs=1).classes] == [
        "MNISTCNN-mnist"
    ]
    with pytest.raises(BadInput, match="all `classProbability` are 0"):
        read(
            tmp_path,
            experiment=changed(
                document, "trainTasks", 0, "jobClassParameters", 1, "classProbability", value=0
            ),
        )


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, "{}", '{"cluster": {}}'])
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=r"cluster\.json: "):
        read(tmp_path, text)


def test_simulated_arrivals_have_fltks_rate_until_the_duration(tmp_path: Path) -> None:
    """100 hours at lambda 2: 360000 s / 121.353 s = 2967 jobs, ± 4 · √(0.47 · 2967)."""
    found = read(tmp_path, changed(CLUSTER, "execution_config", "duration", value=360_000))
    submit_s = [job.submit_s for job in found.jobs]
    assert abs(len(submit_s) - 2967) < 4 * np.sqrt(0.47 * 2967)
    assert submit_s[-1] < 360_000
    assert {at % 10 for at in submit_s} == {0}
    assert [job.job for job in found.jobs] == list(range(len(submit_s)))


def test_a_federated_job_is_rounds_of_its_clients(tmp_path: Path) -> None:
    found = read(tmp_path, batch(), FEDERATED)
    (one,) = found.classes
    assert (one.kind, one.size.mean, one.replicas) == ("federated", 8, 1)
    assert (one.cores, one.memory_mib) == (1.5, 1024)
    assert one.params == {
        "clients": 6,
        "aggregation": "fedavg",
        "lr": 0.15,
        "batch": 40,
        "epochs": 2,
    }
    assert complete(one.kind, one.params)
    with pytest.raises(BadInput, match="`rounds` must be at least 1"):
        read(tmp_path, batch(), job_class(FEDERATED, "learningParameters", "rounds", value=...))


@pytest.mark.parametrize(
    ("optimiser", "momentum", "becomes"),
    [
        ("SGD", None, "sgd"),
        ("SGD", 0.9, "momentum"),
        ("AdamW", None, "adam"),
        ("FedProx", None, "sgd"),
    ],
)
def test_what_stands_in_for_an_optimiser(
    tmp_path: Path, optimiser: str, momentum: float | None, becomes: str
) -> None:
    value = {"type": optimiser, "learningRate": 0.1, "momentum": momentum}
    at = ("hyperParameters", "default", "optimizerConfig")
    found = read(tmp_path, experiment=job_class(DISTRIBUTED, *at, value=value), jobs=1)
    assert found.classes[0].params["optimiser"] == becomes
