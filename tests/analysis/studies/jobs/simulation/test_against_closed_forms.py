"""The simulator against what is known exactly: queues with closed forms, simpy's own resources, and recursions on the same jobs."""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np
import pytest
import simpy

from analysis.studies.jobs.queues.formulas import Inputs, mg1, mmc
from analysis.studies.jobs.queues.priorities import PriorityClass, non_preemptive
from analysis.studies.jobs.simulation.loop import figures, play
from analysis.studies.jobs.simulation.stream import JobClass, JobSource, jobs
from tests.analysis.studies.jobs.simulation.made_jobs import ANY, source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.studies.jobs.simulation.stream import Coming


def within(values: Sequence[float], expected: float, errors: float = 3.5) -> bool:
    """Whether the mean over seeds is where it should be, by its own standard error."""
    return abs(fmean(values) - expected) < errors * stdev(values) / math.sqrt(len(values))


def mean_waits(one: JobSource, policy: str = "fifo", seeds: int = 8, many: int = 1500) -> list[float]:
    """Of the jobs after the first tenth, a seed each."""
    streams = [jobs(one, many, seed) for seed in range(seeds)]
    return [figures(stream, play(stream, one.slots, policy)).mean_wait_s for stream in streams]


@pytest.mark.parametrize(("slots", "load", "wait"), [(1, 0.8, 4.0), (2, 0.8, 1.777778), (10, 0.8, 0.20459)])
def test_waits_are_erlangs(slots: int, load: float, wait: float) -> None:
    """Poisson arrivals, exponential times of 1 s: W_q = C(c, a)/(c(1 - U)), to the digits of the table of Erlang's C."""
    assert mmc(Inputs(slots * load, 1.0, slots)).wait_s == pytest.approx(wait, rel=1e-5)
    assert within(mean_waits(source(slots, load)), wait)


@pytest.mark.parametrize(("cv2", "wait"), [(0.0, 2.0), (4.0, 10.0)])
def test_waits_on_one_slot_are_pollaczeks_and_khinchines(cv2: float, wait: float) -> None:
    """Load 0.8: W_q = 0.8(1 + cs²)/(2·0.2)."""
    assert mg1(Inputs(0.8, 1.0, scv_service=cv2)).wait_s == pytest.approx(wait)
    assert within(mean_waits(source(cv2=cv2), many=2500), wait)


def test_waits_by_priority_are_cobhams() -> None:
    """Two kinds of 0.5 s and 1 s on one slot, load 0.7: each kind's own mean wait."""
    rates = (0.6, 0.4)
    expected = [one.wait_s for one in non_preemptive([PriorityClass(0, rates[0], 0.5), PriorityClass(1, rates[1], 1.0)])]
    classes = tuple(JobClass(f"{at}", rates[at], {ANY: (0.5, 1.0)[at]}, priority=at) for at in (0, 1))
    one = JobSource(classes, {ANY: 1}, 0.7)
    assert one.gap_s == pytest.approx(1.0)
    waits: list[list[float]] = [[], []]
    for seed in range(8):
        stream = jobs(one, 2000, seed)
        wait_s, priority = play(stream, one.slots, "priority").wait_s, np.array([each.job.priority for each in stream])
        for kind in (0, 1):
            waits[kind].append(float(wait_s[priority == kind][300:].mean()))
    assert within(waits[0], expected[0] or 0)
    assert within(waits[1], expected[1] or 0)


def by_simpy(stream: Sequence[Coming], slots: int, rank: str) -> list[float]:
    """Start times by simpy's own PriorityResource: another queue, another way of waiting."""
    clock = simpy.Environment()
    resource = simpy.PriorityResource(clock, slots)
    starts_s = [0.0] * len(stream)

    def job(at: int, one: Coming) -> simpy.events.ProcessGenerator:
        yield clock.timeout(one.job.submit_s)
        with resource.request(priority=one.job.shortest_s if rank == "sjf" else 0) as mine:  # type: ignore[arg-type]  # any order will do
            yield mine
            starts_s[at] = clock.now
            yield clock.timeout(one.takes_s[ANY])

    for at, one in enumerate(stream):
        clock.process(job(at, one))
    clock.run()
    return starts_s


@pytest.mark.parametrize("policy", ["fifo", "sjf"])
@pytest.mark.parametrize("slots", [1, 3])
def test_every_job_starts_when_simpys_resource_starts_it(policy: str, slots: int) -> None:
    stream = jobs(source(slots, 0.9), 500, 5)
    assert play(stream, {ANY: slots}, policy).start_s.tolist() == by_simpy(stream, slots, policy)


def test_littles_law_holds_exactly() -> None:
    """From an empty cluster to an empty one: the integral of the jobs inside is the sum of their times inside."""
    stream = jobs(source(3), 500, 7)
    played = play(stream, {ANY: 3}, "sjf")
    moments = np.concatenate([played.submit_s, played.end_s])
    order = np.argsort(moments, kind="stable")
    inside = np.cumsum(np.where(order < len(stream), 1, -1))
    area = float((inside[:-1] * np.diff(moments[order])).sum())
    assert area == pytest.approx(float((played.end_s - played.submit_s).sum()), rel=1e-12)


def test_a_thousand_nodes_are_as_busy_as_they_are_asked_to_be() -> None:
    stream = jobs(source(1000, 0.9), 5000, 1)
    found = figures(stream, play(stream, {ANY: 1000}, "fifo"))
    assert found.mean_wait_s == pytest.approx(0.0, abs=0.01)
    assert 0.7 < found.busy < 1.0
