"""Jobs of a stream before they run: drawn by the stated law, with numbers apart per purpose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.studies.jobs import classes, stream
from fixtures.studies.jobs.arrivals import read_trace
from fixtures.studies.jobs.terms import Planned, Size
from fixtures.terms import BadInput

MANY = 20_000
TWO = """\
classes:
  - {name: small, kind: sleep, probability: 0.75, size: {law: exponential, mean: 0.1}, \
predicted_s_per_work: 2, due_factor: 3}
  - name: large
    kind: sleep
    probability: 0.25
    size: {law: lognormal, mean: 0.5, scv: 2}
    priorities: [{priority: 3, probability: 0.4}, {priority: -1, probability: 0.6}]
    predicted_s_per_work: 1
    prediction_scv: 0.25
    replicas: 4
    params: {serial: 0.2}
"""


def plan(seed: int = 1, files: dict[str, Path] | None = None, **given: Any) -> list[Planned]:
    return stream.plan(
        classes.complete({name: str(value) for name, value in given.items()}), seed, files
    )


def two(folder: Path, text: str = TWO, seed: int = 1, **given: Any) -> list[Planned]:
    path = folder / "two.yaml"
    path.write_text(text)
    classes.read.cache_clear()
    return plan(seed, {"classes_file": path}, classes_file="0123456789ab", **given)


def column(jobs: list[Planned], name: str) -> list[Any]:
    return [getattr(one, name) for one in jobs]


def test_the_same_parameters_and_seed_are_the_same_stream(tmp_path: Path) -> None:
    assert two(tmp_path, jobs=50) == two(tmp_path, jobs=50)
    assert column(two(tmp_path, jobs=50), "submit_s") != column(
        two(tmp_path, jobs=50, seed=2), "submit_s"
    )
    assert column(two(tmp_path, jobs=50), "work") != column(two(tmp_path, jobs=50, seed=2), "work")


def test_a_longer_stream_begins_as_a_shorter_one(tmp_path: Path) -> None:
    assert two(tmp_path, jobs=80)[:30] == two(tmp_path, jobs=30)


@pytest.mark.parametrize(
    "changed",
    [{"arrivals": "mmpp"}, {"arrivals": "deterministic"}, {"arrivals": "fltk"}, {"rate_per_s": 40}],
)
def test_other_arrivals_leave_the_jobs_as_they_are(tmp_path: Path, changed: dict[str, Any]) -> None:
    """Two loads, or two kinds of arrivals, are compared on the very same jobs."""
    one, other = two(tmp_path, jobs=60), two(tmp_path, jobs=60, **changed)
    assert column(one, "submit_s") != column(other, "submit_s")
    assert [replace(job, submit_s=0.0, due_s=None) for job in one] == [
        replace(job, submit_s=0.0, due_s=None) for job in other
    ]


@pytest.mark.parametrize(
    "size",
    [
        Size("exponential", 2.0, 1.0),
        Size("hyperexponential", 2.0, 4.0),
        Size("lognormal", 2.0, 0.5),
    ],
    ids=str,
)
def test_sizes_have_the_requested_mean_and_variation(size: Size) -> None:
    """Of 400,000: the mean within 1 %, the squared coefficient of variation within 5 %."""
    works = stream.works(size, np.random.default_rng(1).random((400_000, 2)))
    assert works.mean() == pytest.approx(size.mean, rel=0.01)
    assert works.var() / works.mean() ** 2 == pytest.approx(size.scv, rel=0.05)
    assert (works > 0).all()


def test_predictions_are_unbiased_with_the_requested_variance() -> None:
    jobs = plan(jobs=MANY, classes="tenants")
    off = np.array([(job.predicted_s or 0) / job.work for job in jobs])
    assert off.mean() == pytest.approx(1, abs=4 * np.sqrt(0.1 / MANY))
    assert off.var() == pytest.approx(0.1, rel=0.1)
    assert {job.predicted_s == job.work for job in plan(jobs=50)} == {True}


def test_predictions_and_due_times_follow_work_and_replicas(tmp_path: Path) -> None:
    """Small: 2 s a unit of work, due after three times that.

    Large: on 4 replicas, a fifth of it serial, 0.2 + 0.8/4 = 0.4 of the time.
    """
    jobs = two(tmp_path, TWO.replace("    prediction_scv: 0.25\n", ""), jobs=40)
    for job in jobs:
        if job.class_.name == "small":
            assert job.predicted_s == pytest.approx(2 * job.work)
            assert job.due_s == pytest.approx(job.submit_s + 6 * job.work)
        else:
            assert job.predicted_s == pytest.approx(0.4 * job.work)
            assert (job.due_s, job.replicas) == (None, 4)


def test_options_for_all_classes_override_their_own_values(tmp_path: Path) -> None:
    jobs = two(tmp_path, jobs=30, cores=1.5, memory_mib=64, replicas=2, work=3)
    assert {
        (job.class_.cores, job.class_.memory_mib, job.class_.replicas, job.replicas) for job in jobs
    } == {(1.5, 64, 2, 2)}
    assert {job.class_.size.mean for job in jobs} == {3}


def test_values_in_a_trace_are_kept_and_missing_ones_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("submit_s,class,priority,replicas,work\n0,large,7,2,1.5\n1,small,,,\n2,,,,\n")
    (tmp_path / "two.yaml").write_text(TWO)
    given = {
        "arrivals": "trace",
        "trace": "0123456789ab",
        "jobs": "3",
        "classes_file": "0123456789ab",
    }
    jobs = stream.plan(
        classes.complete(given), 1, {"trace": path, "classes_file": tmp_path / "two.yaml"}
    )
    assert [(job.submit_s, job.class_.name) for job in jobs[:2]] == [(0.0, "large"), (1.0, "small")]
    assert (jobs[0].priority, jobs[0].replicas, jobs[0].work) == (7, 2, 1.5)
    drawn = two(tmp_path, jobs=3)
    assert (jobs[2].work, jobs[2].class_, jobs[2].seed) == (
        drawn[2].work,
        drawn[2].class_,
        drawn[2].seed,
    )
    path.write_text("submit_s,class\n0,small\n0,larg\n")
    read_trace.cache_clear()
    with pytest.raises(
        BadInput,
        match=r"Job 1 of the trace has class 'larg', which is not one of small, large. "
        r"Did you mean 'large'\? Specify its classes",
    ):
        stream.plan(
            classes.complete({**given, "jobs": "2"}),
            1,
            {"trace": path, "classes_file": tmp_path / "two.yaml"},
        )


def test_a_name_with_all_parameters_written_out_means_the_same() -> None:
    """A cell receives the declared parameters."""
    found = classes.complete(
        {
            "arrivals": "mmpp",
            "rate_per_s": "4.80",
            "jobs": "007",
            "cores": "0.5",
            "classes": "mixed",
        }
    )
    assert (found["rate_per_s"], found["jobs"], found["burst"]) == (4.8, 7, 9)
    assert (
        classes.complete({name: str(value) for name, value in found.items() if value is not None})
        == found
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"jobs": "0"}, "jobs=0: must be a whole number from 1 to 1000000"),
        ({"cores": "0"}, "cores=0: must be a number from 0.01"),
        ({"memory_mib": "-1"}, "memory_mib=-1: must be a number from 1 "),
        ({"work": "nan"}, "work=nan: must be a number"),
        ({"lr": "fast", "classes": "sleep"}, "lr=fast: must be a number"),
        (
            {"batch": "8"},
            (
                "batch=8: no class has a kind with this parameter. Kinds with it: federated, "
                "infer, train"
            ),
        ),
        ({"classes": "sleep", "classes_file": "0123456789ab"}, "give only one of them"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        classes.complete(given)
