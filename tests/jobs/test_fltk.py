"""FLTK's two JSON files: they are read, defaults are merged as it merges them, and what it reads over is refused or said."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.arrivals import fltk
from fixtures.jobs import fltk_config, fltk_stream
from fixtures.jobs.kinds import complete
from fixtures.terms import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from fixtures.jobs.fltk_config import Experiment

FILES = Path(__file__).parent / "fltk_files"
CLUSTER = json.loads((FILES / "cluster.json").read_text())
DISTRIBUTED = json.loads((FILES / "distributed.json").read_text())
FEDERATED = json.loads((FILES / "federated.json").read_text())
TREES = st.recursive(st.none() | st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8)
Json = dict[str, Any]


def read(folder: Path, cluster: object = CLUSTER, experiment: object = DISTRIBUTED) -> Experiment:
    paths = folder / "cluster.json", folder / "experiment.json"
    for path, document in zip(paths, (cluster, experiment), strict=True):
        path.write_text(document if isinstance(document, str) else json.dumps(document))
    return fltk_config.read(*paths)


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


def batch(*, parallel: bool = True) -> Json:
    orchestrator = {"orchestrator_type": "batch", "parallel_execution": parallel}
    return changed(CLUSTER, "cluster", "orchestrator", value=orchestrator)


def job_class(document: Json, *at: str | int, value: object) -> Json:
    return changed(document, "trainTasks", 0, "jobClassParameters", 0, *at, value=value)


def test_an_experiment_is_read() -> None:
    """What a class says of its Worker is the Worker's alone; a class without one has a Master."""
    found = fltk_config.read(FILES / "cluster.json", FILES / "distributed.json")
    (task,) = found.tasks
    one, other = task.classes
    assert (found.batch, found.duration_s, found.seeds) == (False, 240, (11, 12, 13))
    assert (task.mean_gap_min, one.network, one.dataset, one.priorities) == (2, "Cifar10CNN", "cifar10", ((2, 0.75), (0, 0.25)))
    assert {name: (role.many, role.cores, role.memory_mib) for name, role in one.roles.items()} == {
        "Master": (1, 0.25, 512),
        "Worker": (2, 1, 512),
    }
    assert {name: (role.many, role.cores, role.memory_mib) for name, role in other.roles.items()} == {"Master": (1, 2, 2048)}


def test_what_stands_there_without_effect_is_said() -> None:
    """parallel_execution is where FLTK does not look for it, and preemption never was."""
    found = fltk_config.read(FILES / "cluster.json", FILES / "distributed.json")
    home = "FLTK reads it in cluster.orchestrator alone, where it is true if nothing is said"
    assert found.notes == (
        f"{FILES}/cluster.json: execution_config.reproducibility.parallel_execution is true, without effect: {home}.",
        f"{FILES}/distributed.json: trainTasks[0].preemptJobs is true, without effect: FLTK reads it and never preempts a job.",
        f"{FILES}/distributed.json: trainTasks[0]: classProbability sums to 4: they are weights.",
    )
    assert found.parallel


def test_parallel_execution_counts_where_fltk_reads_it_and_not_elsewhere(tmp_path: Path) -> None:
    elsewhere = changed(CLUSTER, "execution_config", "reproducibility", "parallel_execution", value=False)
    assert read(tmp_path, elsewhere).parallel
    assert not read(tmp_path, batch(parallel=False)).parallel


def test_overrides_are_merged_over_the_default_at_any_depth() -> None:
    """The Worker's learning rate and step size are its own, what stands beside them in the default stays."""
    found = fltk_config.read(FILES / "cluster.json", FILES / "distributed.json")
    roles = found.tasks[0].classes[0].roles
    assert roles["Master"].hyper["optimizerConfig"] == {"type": "SGD", "learningRate": 0.2, "momentum": 0.6, "betas": None}
    assert roles["Worker"].hyper["optimizerConfig"] == {"type": "SGD", "learningRate": 0.02, "momentum": 0.6, "betas": None}
    assert roles["Worker"].hyper["schedulerConfig"] == {"schedulerStepSize": 9, "schedulerGamma": 0.8, "minimumLearningRate": None}
    assert roles["Worker"].hyper["batchSize"] == roles["Master"].hyper["batchSize"] == 32


@pytest.mark.parametrize(
    "override", [None, {}, {"batchSize": None}, {"optimizerConfig": None}, {"optimizerConfig": {"learningRate": None}}]
)
def test_null_means_the_default(tmp_path: Path, override: Json | None) -> None:
    document = job_class(DISTRIBUTED, "hyperParameters", "configurations", "Worker", value=override)
    roles = read(tmp_path, experiment=document).tasks[0].classes[0].roles
    assert roles["Worker"].hyper == roles["Master"].hyper


@given(st.dictionaries(st.sampled_from("abc"), TREES, max_size=3), st.dictionaries(st.sampled_from("abc"), TREES, max_size=3))
def test_a_merge_loses_no_default_that_nothing_overrides(default: Json, override: Json) -> None:
    """Each leaf of the result is the override's where it has one that is not null, and the default's otherwise."""
    found = fltk_config.merged(default, override)
    assert fltk_config.merged(default, None) == default
    assert fltk_config.merged(found, override) == found
    assert found.keys() == default.keys() | override.keys()
    for key in found:
        if override.get(key) is None and key in default:
            assert found[key] == default[key]
        elif not isinstance(override[key], dict):
            assert found[key] == override[key]


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (("jobs",), 1, r"experiment.json: the file: no key 'jobs'. There are: trainTasks"),
        (("trainTasks", 0, "lamda"), 1, r"trainTasks\[0\]: no key 'lamda'. Did you mean 'lambda'"),
        (
            ("trainTasks", 0, "classProbability"),
            1,
            r"trainTasks\[0\]: no key 'classProbability'. It belongs into trainTasks\[\].jobClassParameters\[\]",
        ),
        (("trainTasks", 0, "parallel_execution"), True, r"It belongs into cluster.orchestrator\."),
        (
            ("trainTasks", 0, "type"),
            "distribute",
            "type is \"distribute\"; one of distributed, federated is needed. Did you mean 'distributed'",
        ),
        (("trainTasks", 0, "type"), ..., r"trainTasks\[0\].type is missing; one of distributed, federated is needed"),
        (("trainTasks", 0, "lambda"), "1.5", r'lambda is "1.5"; a number from 0 on is needed'),
        (("trainTasks", 0, "lambda"), True, "lambda is true; a number"),
        (("trainTasks", 0, "lambda"), 0, "simulated arrivals need `lambda`, a mean gap in minutes above 0"),
        (("trainTasks", 0, "lambda"), ..., "simulated arrivals need `lambda`"),
        (("trainTasks",), [], r"trainTasks is \[\]; a list of one or more is needed"),
        (("trainTasks", 0, "jobClassParameters"), {}, r"jobClassParameters is \{\}; a list"),
    ],
)
def test_what_fltk_would_read_over_is_refused_by_name_and_place(
    tmp_path: Path, at: tuple[str | int, ...], value: object, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        read(tmp_path, experiment=changed(DISTRIBUTED, *at, value=value))


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (("workers",), 2, r"jobClassParameters\[0\]: no key 'workers'"),
        (("networkConfiguration", "network"), "MNISTCNM", r"network is \"MNISTCNM\"; .* Did you mean 'MNISTCNN'"),
        (("networkConfiguration", "lossFunction"), "os.system('x')", r"lossFunction is .*one of L1Loss"),
        (("systemParameters", "dataParallelism"), 0, "dataParallelism is 0; a whole number from 1 on"),
        (("systemParameters", "configurations", "default", "cores"), "500x", "Master: '500x' is no quantity; Kubernetes writes 500m"),
        (("systemParameters", "configurations", "default", "cores"), "0", "'0': more than 0 is needed"),
        (("systemParameters", "configurations", "default", "memory"), ..., "Master has no memory, and no default has"),
        (("systemParameters", "configurations", "Server"), {}, r"configurations: no key 'Server'. There are: default, Master, Worker"),
        (("hyperParameters", "default", "batchSize"), 12.5, "default.batchSize is 12.5; a whole number from 1 on"),
        (("hyperParameters", "default", "lr"), 0.1, r"hyperParameters.default: no key 'lr'"),
        (("hyperParameters", "default", "learningRate"), 0.1, r"It belongs into .*hyperParameters.default.optimizerConfig or "),
        (("hyperParameters", "default"), None, "hyperParameters.default is missing; an object is needed"),
        (("learningParameters",), {"aggregation": "Median"}, "one of Avg, FedAvg, Sum is needed"),
        (("classProbability",), ..., "simulated arrivals need `classProbability`, and `priorities`"),
        (("priorities",), [{"priority": 1, "probability": 0}], "`priorities` not all of which are 0"),
        (("priorities", 0, "priority"), 1.5, r"priorities\[0\].priority is 1.5; a whole number"),
    ],
)
def test_what_is_wrong_in_a_class_is_refused_by_name_and_place(tmp_path: Path, at: tuple[str | int, ...], value: object, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read(tmp_path, experiment=job_class(DISTRIBUTED, *at, value=value))


def test_classes_of_which_none_would_come_are_refused(tmp_path: Path) -> None:
    document = job_class(DISTRIBUTED, "classProbability", value=0)
    assert read(tmp_path, experiment=document).tasks[0].classes[0].weight == 0
    with pytest.raises(BadInput, match="all `classProbability` are 0: no job would come"):
        read(tmp_path, experiment=changed(document, "trainTasks", 0, "jobClassParameters", 1, "classProbability", value=0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cluster.json:1:2: broken JSON: Expecting property name"),
        ("[]", r"the file is \[\]; an object is needed"),
        ('{"cluster": {}, "cluster": {}}', "broken JSON: 'cluster' is there twice in one object"),
        ('{"cluster": NaN}', "NaN is no number of JSON"),
        ("[" * 100_000, "broken JSON"),
        ("{}", "cluster.orchestrator.orchestrator_type is missing|cluster is missing; an object is needed"),
    ],
)
def test_what_is_no_json_object_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("written", "cores", "memory"),
    [
        ("500m", 0.5, None),
        ("2", 2, None),
        ("0.25", 0.25, None),
        ("1e1", 10, None),
        ("1Gi", None, 1024),
        ("512Mi", None, 512),
        ("1G", None, 1e9),
    ],
)
def test_quantities_are_kubernetes_own(written: str, cores: float | None, memory: float | None) -> None:
    if cores is not None:
        assert fltk_config.cores(written) == pytest.approx(cores)
    if memory is not None:
        assert fltk_config.memory_mib(written) == pytest.approx(memory if memory < 1e6 else memory / 2**20)


def test_simulated_arrivals_come_until_the_duration_is_over_at_fltk_s_rate(tmp_path: Path) -> None:
    """100 hours at lambda 2: 360000 s / 121.353 s = 2967 jobs, give or take four times √(0.47 · 2967)."""
    found = fltk_stream.made(read(tmp_path, changed(CLUSTER, "execution_config", "duration", value=360_000)), seed=1)
    submit_s = [job.submit_s for job in found.jobs]
    assert abs(len(submit_s) - 2967) < 4 * np.sqrt(0.47 * 2967)
    assert submit_s[-1] < 360_000
    assert {at % 10 for at in submit_s} == {0}
    assert [job.job for job in found.jobs] == list(range(len(submit_s)))
    # A quarter of three in four jobs.
    share = 0.25 * 0.75
    assert abs(np.mean([job.priority == 0 for job in found.jobs]) - share) < 4 * np.sqrt(share * (1 - share) / len(submit_s))


def test_every_seed_is_a_replication_of_its_own_and_can_be_had_again(tmp_path: Path) -> None:
    """What FLTK does not do: it takes the first seed for all, and none for its arrivals."""
    experiment = read(tmp_path, changed(CLUSTER, "execution_config", "duration", value=36_000))
    one, again, other = (fltk_stream.made(experiment, seed) for seed in (1, 1, 2))
    assert one.jobs == again.jobs
    assert [job.submit_s for job in one.jobs] != [job.submit_s for job in other.jobs]


def two_tasks() -> Json:
    document: Json = copy.deepcopy(DISTRIBUTED)
    (task,) = document["trainTasks"]
    document["trainTasks"].append(task | {"lambda": 5, "jobClassParameters": task["jobClassParameters"][:1]})
    return document


def test_each_task_has_ticks_and_classes_of_its_own(tmp_path: Path) -> None:
    """Weights 3 and 1 are 3 in 4; the second task's jobs come every 300 s or so, whatever the first one does."""
    experiment = read(tmp_path, changed(CLUSTER, "execution_config", "duration", value=1_000_000), two_tasks())
    found = fltk_stream.made(experiment, seed=1)
    names = [one.name for one in found.classes]
    assert names == ["Cifar10CNN-cifar10", "MNISTCNN-mnist", "Cifar10CNN-cifar10-2"]
    counts = [sum(job.class_.name == name for job in found.jobs) for name in names]
    assert counts[0] / counts[1] == pytest.approx(3, rel=0.1)
    assert counts[2] == pytest.approx(1_000_000 / fltk.mean_gap_s(5), rel=0.05)
    assert [job.submit_s for job in found.jobs] == sorted(job.submit_s for job in found.jobs)
    assert [one.tenant for one in found.classes] == ["task0", "task0", "task1"]
    assert [one.probability for one in found.classes] == pytest.approx([count / sum(counts) for count in counts], rel=0.05)


def test_a_batch_has_each_class_once_and_at_once(tmp_path: Path) -> None:
    found = fltk_stream.made(read(tmp_path, batch(parallel=False), two_tasks()), seed=1)
    assert [(job.submit_s, job.class_.name) for job in found.jobs] == [(0.0, one.name) for one in found.classes]
    assert [note for note in found.notes if "run one at a time on one slot (slots=1)" in note]
    assert [note for note in read(tmp_path, batch(), two_tasks()).notes if "lambda is 2, without effect: a batch comes at once" in note]


def test_a_distributed_job_trains_as_long_and_as_it_would(tmp_path: Path) -> None:
    """12 epochs of CIFAR-10's 50000 images, on three pods as large as the larger of them."""
    one, _ = fltk_stream.made(read(tmp_path), seed=1, jobs=1).classes
    assert (one.kind, one.size.law, one.size.mean, one.replicas) == ("train", "constant", 600_000, 3)
    assert (one.cores, one.memory_mib) == (1, 512)
    assert dict(one.priorities) == pytest.approx({0: 0.25, 2: 0.75})
    assert one.params == {"batch": 32, "lr": 0.02, "optimiser": "momentum"}
    assert complete(one.kind, one.params)


def test_priorities_are_weights_and_one_that_is_there_twice_is_one(tmp_path: Path) -> None:
    """2, 5, 1 and 0 of 8: as Python's `choices` draws them."""
    listed = [{"priority": key, "probability": weight} for key, weight in ((1, 2), (0, 5), (1, 1), (7, 0))]
    experiment = read(tmp_path, experiment=job_class(DISTRIBUTED, "priorities", value=listed))
    assert fltk_stream.made(experiment, seed=1, jobs=1).classes[0].priorities == ((0, 0.625), (1, 0.375))
    assert any("priorities sums to 8: they are weights" in note for note in experiment.notes)


def test_a_federated_job_is_rounds_of_its_clients(tmp_path: Path) -> None:
    """It has no lambda, so it is a batch; of its six clients three learn in a round, which is said."""
    found = fltk_stream.made(read(tmp_path, batch(), FEDERATED), seed=1)
    (one,) = found.classes
    assert (one.kind, one.size.mean, one.replicas) == ("federated", 8, 1)
    assert (one.cores, one.memory_mib) == (1.5, 1024)  # its server's CPUs and its clients' memory
    assert one.params == {"clients": 6, "aggregation": "fedavg", "lr": 0.15, "batch": 80, "epochs": 2}
    assert complete(one.kind, one.params)
    assert [note for note in found.notes if "3 of 6 clients learn in a round; all do here" in note]
    assert [note for note in found.notes if "the larger of them" in note]
    assert [note for note in found.notes if "all learn as the Worker here" in note]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            lambda: job_class(DISTRIBUTED, "hyperParameters", "default", "totalEpochs", value=0),
            "Cifar10CNN-cifar10: it needs `totalEpochs`",
        ),
        (lambda: job_class(FEDERATED, "learningParameters", "rounds", value=...), "it needs `rounds`, 1 or more"),
    ],
)
def test_a_job_that_would_do_nothing_is_refused(tmp_path: Path, document: Callable[[], Json], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        fltk_stream.made(read(tmp_path, batch(), document()), seed=1)


@pytest.mark.parametrize(
    ("optimiser", "momentum", "becomes", "said"),
    [("SGD", None, "sgd", False), ("SGD", 0.9, "momentum", False), ("AdamW", None, "adam", True), ("FedProx", None, "sgd", True)],
)
def test_what_stands_in_for_an_optimiser_is_said(tmp_path: Path, optimiser: str, momentum: float | None, becomes: str, said: bool) -> None:  # noqa: FBT001
    value = {"type": optimiser, "learningRate": 0.1, "momentum": momentum}
    experiment = read(tmp_path, experiment=job_class(DISTRIBUTED, "hyperParameters", "default", "optimizerConfig", value=value))
    found = fltk_stream.made(experiment, seed=1, jobs=1)
    assert found.classes[0].params["optimiser"] == becomes
    assert any(f"optimiser {optimiser} is {becomes} here" in note for note in found.notes) == said


def test_a_duration_in_which_too_many_jobs_come_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fltk_stream, "MOST_JOBS", 100)
    experiment = read(tmp_path, changed(CLUSTER, "execution_config", "duration", value=360_000))
    with pytest.raises(BadInput, match=r"\d{4} jobs come within FLTK's duration of 360000 s; 100 are the most: give --jobs"):
        fltk_stream.made(experiment, seed=1)


def test_a_duration_in_which_no_job_comes_is_refused(tmp_path: Path) -> None:
    """At lambda 1000 the first comes after most of a day."""
    experiment = read(tmp_path, experiment=changed(DISTRIBUTED, "trainTasks", 0, "lambda", value=1000))
    with pytest.raises(BadInput, match="No job comes within FLTK's duration of 240 s"):
        fltk_stream.made(experiment, seed=1)
    assert len(fltk_stream.made(experiment, seed=1, jobs=7).jobs) == 7
