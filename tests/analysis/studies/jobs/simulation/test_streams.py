"""The jobs of a seed: times with the moments asked for, from streams of numbers that do not disturb each other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.simulation import stream
from analysis.studies.jobs.simulation.stream import Coming, JobClass, JobSource, TimesLaw, errors, jobs
from analysis.terms import Refused
from control.scheduling import allocation
from tests.analysis.studies.jobs.simulation.made_jobs import ANY, source

if TYPE_CHECKING:
    from collections.abc import Callable

    from syrupy.assertion import SnapshotAssertion

EVENLY = (np.arange(50_000) + 0.5) / 50_000


@given(mean_s=st.floats(1e-3, 1e3), cv2=st.sampled_from([0.0, 0.25, 0.58962, 1.0, 2.0, 4.0]))
def test_times_have_the_mean_and_the_variation_that_were_asked_for(mean_s: float, cv2: float) -> None:
    """Over evenly spaced numbers, up to what such a grid cuts off the tail."""
    times_s = TimesLaw(mean_s, cv2).times_s(EVENLY)
    assert times_s.mean() == pytest.approx(mean_s, rel=1e-3)
    assert times_s.var() / times_s.mean() ** 2 == pytest.approx(cv2, rel=0.02, abs=1e-12)
    assert times_s.min() > 0


@given(number=st.floats(0, 1), cv2=st.floats(0, 50))
def test_no_number_gives_an_infinite_time(number: float, cv2: float) -> None:
    assert np.isfinite(TimesLaw(1.0, cv2).times_s(np.array([min(number, np.nextafter(1, 0))]))).all()
    assert np.isfinite(errors(np.array([number]), 0.5)).all()


def told(stream: list[Coming], what: str) -> list[object]:
    return [getattr(one.job, what) for one in stream]


TWO = JobSource((JobClass("a", 0.3, {ANY: 1.0}), JobClass("b", 0.7, {ANY: 1.0}, priority=1)), {ANY: 2}, 0.8)


def test_a_seed_gives_the_same_jobs_and_another_seed_others() -> None:
    assert jobs(TWO, 50, 3) == jobs(TWO, 50, 3)
    assert told(jobs(TWO, 50, 3), "submit_s") != told(jobs(TWO, 50, 4), "submit_s")


def test_changing_one_thing_leaves_the_others_as_they_were() -> None:
    """Common random numbers: errors of prediction move neither arrivals nor times, a higher load only squeezes the arrivals together."""
    plain, wrong = (jobs(replace(TWO, error=error), 50, 3) for error in (0.0, 0.5))
    assert told(plain, "submit_s") == told(wrong, "submit_s")
    assert [one.takes_s for one in plain] == [one.takes_s for one in wrong]
    assert told(plain, "predicted_s") != told(wrong, "predicted_s")
    busier = jobs(replace(TWO, load=0.4), 50, 3)
    assert told(busier, "submit_s") == pytest.approx([2 * one.job.submit_s for one in plain])
    assert told(busier, "class_") == told(plain, "class_")
    assert [one.takes_s for one in busier] == [one.takes_s for one in plain]


def test_classes_come_as_often_as_they_should() -> None:
    """30 % of 4000 within 3.5 standard errors."""
    often = np.mean([one == "a" for one in told(jobs(TWO, 4000, 1), "class_")])
    assert abs(often - 0.3) < 3.5 * (0.3 * 0.7 / 4000) ** 0.5


def test_a_promise_is_a_multiple_of_the_mean_time_where_it_is_shortest() -> None:
    one = replace(TWO, classes=(JobClass("a", 1.0, {ANY: 2.0}, due_factor=5),))
    assert all(each.job.due_s == each.job.submit_s + 10 for each in jobs(one, 5, 1))


def test_the_gap_is_that_of_the_load() -> None:
    """Two slots busy to 0.8 with jobs of a second: 1.6 of them a second. A gang of two counts twice."""
    assert source(2, 0.8).gap_s == pytest.approx(1 / 1.6)
    assert replace(source(2, 0.8), classes=(JobClass("gang", 1.0, {ANY: 1.0}, replicas=2),)).gap_s == pytest.approx(2 / 1.6)


def test_the_plan_for_two_kinds_of_slots_is_the_linear_programs() -> None:
    """4 GPUs, 12 CPUs; train takes 4 s or 40 s (0.3 of the jobs), serve 3 s or 4 s.

    With x of train on the GPUs and all of serve on the CPUs both are equally busy: 1.2x/4 = (12(1 - x) + 2.8)/12, so x = 0.9487 and a job
    a second asks for 0.28462 of the slots.
    """
    demand_s = {"train": {"gpu": 1.2, "cpu": 12.0}, "serve": {"gpu": 2.1, "cpu": 2.8}}
    slots = {"gpu": 4, "cpu": 12}
    assert allocation.load(demand_s, slots) == pytest.approx(0.284615, rel=1e-5)
    shares = allocation.plan(demand_s, slots)
    assert shares["serve"] == pytest.approx({"cpu": 1.0})
    assert shares["train"]["gpu"] == pytest.approx(0.9487, abs=0.03)  # of rounded demand


def test_a_class_is_never_planned_where_it_cannot_run() -> None:
    demand_s = {"train": {"gpu": 1.0, "cpu": float("inf")}, "serve": {"gpu": 0.1, "cpu": 1.0}}
    assert allocation.plan(demand_s, {"gpu": 1, "cpu": 1})["train"] == {"gpu": 1.0}


def classes(folder: Path, text: str) -> tuple[JobClass, ...]:
    path = folder / "classes.yaml"
    path.write_text(text)
    return stream.read_classes(path, ("gpu", "cpu"))


def test_classes_are_read_from_a_file(tmp_path: Path) -> None:
    found = classes(
        tmp_path,
        "classes:\n"
        "  - {name: train, probability: 0.3, mean_s: {gpu: 4}, cv2: 0, priority: 1, tenant: a, replicas: 2, due_factor: 5}\n"
        "  - {name: serve, probability: 0.7, mean_s: 2}\n",
    )
    assert found == (JobClass("train", 0.3, {"gpu": 4.0}, 0.0, 1, "a", 2, 5.0), JobClass("serve", 0.7, {"gpu": 2.0, "cpu": 2.0}))


def test_what_is_no_stream_of_jobs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    monkeypatch.chdir(tmp_path)
    one = "classes: [{name: a, probability: 1, mean_s: 1"
    texts = (
        "classes: [{name: a, probability: 0.5, mean_s: 1}]",
        one + ", lambda: 2}]",
        "classes: [{name: a, probability: 1, mean_s: {tpu: 1}}]",
        "classes: [{name: a, probability: 1, mean_s: -1}]",
        "classes: [{name: a, probability: 1, mean_s: .nan}]",
        "classes: [{name: a, probability: 1}]",
        one + ", cv2: -1}]",
        one + ", replicas: 0}]",
        "classes: [{name: a, probability: 0.5, mean_s: 1}, {name: a, probability: 0.5, mean_s: 1}]",
        "classes: []",
        "{",
    )
    wide = replace(TWO, classes=(JobClass("gang", 1.0, {ANY: 1.0}, replicas=3),))
    requests: dict[str, Callable[[], object]] = {text: partial(classes, Path(), text) for text in texts}
    requests |= {f"load {load}": source(load=load).must_be_stable for load in (1.0, 1.2, 0.0, float("nan"))}
    found = {}
    for case, request in {**requests, "fits nowhere": wide.must_be_stable}.items():
        with pytest.raises(Refused) as refused:
            request()
        found[case] = str(refused.value)
    assert found == snapshot
