"""Jobs of a seed: times with the requested moments, from independent random streams."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.queue_formulas import Inputs, PriorityClass, mmc, non_preemptive
from analysis.studies.jobs.simulation import (
    ClassModel,
    Coming,
    JobSource,
    TimesLaw,
    figures,
    jobs,
    play,
    read_classes,
)
from analysis.terms import Refused
from control.scheduling import policies
from control.scheduling.policies import Job
from control.scheduling.scheduler import Scheduler
from tests.analysis.studies.jobs.simulation.made_jobs import coming, source

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


EVENLY = (np.arange(50_000) + 0.5) / 50_000


@given(mean_s=st.floats(1e-3, 1e3), cv2=st.sampled_from([0.0, 0.25, 0.58962, 1.0, 2.0, 4.0]))
def test_times_have_the_requested_mean_and_variation(mean_s: float, cv2: float) -> None:
    """Over evenly spaced numbers, up to what such a grid cuts off the tail."""
    times_s = TimesLaw(mean_s, cv2).times_s(EVENLY)
    assert times_s.mean() == pytest.approx(mean_s, rel=1e-3)
    assert times_s.var() / times_s.mean() ** 2 == pytest.approx(cv2, rel=0.02, abs=1e-12)
    assert times_s.min() > 0


def told(stream: list[Coming], what: str) -> list[object]:
    return [getattr(one.job, what) for one in stream]


TWO = JobSource((ClassModel("a", 0.3, 1.0), ClassModel("b", 0.7, 1.0, priority=1)), 2, 0.8)


def test_a_seed_gives_the_same_jobs_and_another_seed_others() -> None:
    assert jobs(TWO, 50, 3) == jobs(TWO, 50, 3)
    assert told(jobs(TWO, 50, 3), "submit_s") != told(jobs(TWO, 50, 4), "submit_s")


def classes(folder: Path, text: str) -> tuple[ClassModel, ...]:
    path = folder / "classes.yaml"
    path.write_text(text)
    return read_classes(path)


def test_classes_are_read_from_a_file(tmp_path: Path) -> None:
    found = classes(
        tmp_path,
        "classes:\n"
        "  - {name: train, probability: 0.3, mean_s: 4, cv2: 0, priority: 1, tenant: a, "
        "replicas: 2, due_factor: 5}\n"
        "  - {name: serve, probability: 0.7, mean_s: 2}\n",
    )
    assert found == (
        ClassModel("train", 0.3, 4.0, 0.0, 1, "a", 2, 5.0),
        ClassModel("serve", 0.7, 2.0),
    )


def test_what_is_no_stream_of_jobs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    one = "classes: [{name: a, probability: 1, mean_s: 1"
    texts = (
        "classes: [{name: a, probability: 0.5, mean_s: 1}]",
        one + ", lambda: 2}]",
        "classes: [{name: a, probability: 1, mean_s: -1}]",
        "classes: [{name: a, probability: 1, mean_s: .nan}]",
        "classes: [{name: a, probability: 1}]",
        one + ", cv2: -1}]",
        one + ", replicas: 0}]",
        "classes: [{name: a, probability: 0.5, mean_s: 1}, {name: a, probability: 0.5, mean_s: 1}]",
        "classes: []",
        "{",
    )
    wide = replace(TWO, classes=(ClassModel("gang", 1.0, 1.0, replicas=3),))
    requests: dict[str, Callable[[], object]] = {
        text: partial(classes, Path(), text) for text in texts
    }
    requests |= {
        f"load {load}": source(load=load).must_be_stable for load in (1.0, 1.2, 0.0, float("nan"))
    }
    found = {}
    for case, request in {**requests, "fits nowhere": wide.must_be_stable}.items():
        with pytest.raises(Refused) as refused:
            request()
        found[case] = str(refused.value)
    assert found == snapshot


def waits(policy: str, *takes_s: float) -> float:
    played = play([coming(at, 0.0, seconds) for at, seconds in enumerate(takes_s)], 1, policy)
    return float(played.wait_s.mean())


def test_shortest_first_against_first_come() -> None:
    """Silberschatz, Galvin, Gagne, Operating System Concepts, CPU scheduling: 17, 3, 10.25, 7."""
    assert waits("fifo", 24, 3, 3) == 17
    assert waits("sjf", 24, 3, 3) == 3
    assert waits("fifo", 6, 8, 7, 3) == 10.25
    assert waits("sjf", 6, 8, 7, 3) == 7


def order(policy: str, *jobs: Job, slots: int = 1) -> list[int]:
    scheduler = Scheduler(policy, slots)
    for job in jobs:
        scheduler.submit(job, 0.0)
    found: list[int] = []
    for now_s in range(len(jobs) + 1):
        running = scheduler.starts(float(now_s))
        found += running
        for number in running:
            scheduler.end(number, now_s + 1.0)
    return found


def test_the_lower_priority_number_goes_first_equals_by_arrival() -> None:
    assert order(
        "priority", Job(0, 0, priority=5), Job(1, 0, priority=-1), Job(2, 0, priority=5), Job(3, 0)
    ) == [1, 3, 0, 2]


def test_the_shortest_goes_by_prediction_with_unknown_jobs_last() -> None:
    assert order("sjf", Job(0, 0), Job(1, 0, 3), Job(2, 0, 2), Job(3, 0)) == [
        2,
        1,
        0,
        3,
    ]


def test_the_least_slack_counts_from_the_latest_moment_to_start() -> None:
    """Job 1 must start by 1 s, job 2, due earlier, by 3 s; jobs without a due time come last."""
    assert order(
        "least_slack",
        Job(0, 0, 1),
        Job(1, 0, 9, due_s=10),
        Job(2, 0, 2, due_s=5),
    ) == [1, 2, 0]
    assert order("least_slack", Job(0, 0, 1, due_s=2), Job(1, 0, due_s=1.5)) == [0, 1]


def test_who_was_away_earns_no_credit_for_it() -> None:
    """Tenant b joins after 4.5 s of a: they then alternate; with credit b would run all five."""
    scheduler = Scheduler("fair_share", 1)
    for number in range(10):
        scheduler.submit(Job(number, 0, tenant="a"), 0.0)
    started = []
    for now_s in range(15):
        (number,) = scheduler.starts(float(now_s))
        started.append(number)
        if now_s == 4:
            for other in range(10, 15):
                scheduler.submit(Job(other, 4.5, tenant="b"), 4.5)
        scheduler.end(number, now_s + 1.0)
    assert started == [0, 1, 2, 3, 4, 10, 5, 11, 6, 12, 7, 13, 8, 14, 9]


def test_shares_are_fair_between_tenants_not_between_jobs() -> None:
    jobs = [Job(at, 0, tenant=tenant) for at, tenant in enumerate("aaabb")]
    assert order("fair_share", *jobs) == [0, 3, 1, 4, 2]
    assert order("fair_share", *jobs, slots=2) == [0, 3, 1, 4, 2]


jobs_of = st.lists(
    st.tuples(
        st.floats(0, 10),
        st.floats(0.01, 5),
        st.integers(1, 3),
        st.sampled_from("ab"),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("policy", policies.names())
@given(jobs=jobs_of)
def test_no_policy_loses_a_job_or_gives_a_slot_twice(
    policy: str, jobs: list[tuple[float, float, int, str, int]]
) -> None:
    stream = [
        coming(at, submit_s, takes_s, replicas=replicas, tenant=tenant, priority=priority)
        for at, (submit_s, takes_s, replicas, tenant, priority) in enumerate(sorted(jobs))
    ]
    played = play(stream, 4, policy)
    assert (played.start_s >= played.submit_s).all()
    for moment in played.start_s:
        held = played.replicas[(played.start_s <= moment) & (moment < played.end_s)]
        assert held.sum() <= 4


def test_a_gang_waits_for_all_its_slots_and_nobody_overtakes_it() -> None:
    stream = [coming(0, 0, 2), coming(1, 0.5, 1, replicas=2), coming(2, 0.6, 0.1)]
    assert play(stream, 2, "fifo").start_s.tolist() == [0, 2, 3]


def within(values: Sequence[float], expected: float, errors: float = 3.5) -> bool:
    return abs(fmean(values) - expected) < errors * stdev(values) / math.sqrt(len(values))


def mean_waits(
    one: JobSource, policy: str = "fifo", seeds: int = 8, many: int = 1500
) -> list[float]:
    streams = [jobs(one, many, seed) for seed in range(seeds)]
    return [figures(stream, play(stream, one.slots, policy)).mean_wait_s for stream in streams]


@pytest.mark.parametrize(
    ("slots", "load", "wait"), [(1, 0.8, 4.0), (2, 0.8, 1.777778), (10, 0.8, 0.20459)]
)
def test_waits_are_erlangs(slots: int, load: float, wait: float) -> None:
    """Poisson arrivals, exponential 1 s: W_q = C(c, a)/(c(1 - U)), to the digits of the table."""
    assert mmc(Inputs(slots * load, 1.0, slots)).wait_s == pytest.approx(wait, rel=1e-5)
    assert within(mean_waits(source(slots, load)), wait)


def test_waits_by_priority_are_cobhams() -> None:
    """Two kinds of 0.5 s and 1 s on one slot, load 0.7: each kind's own mean wait."""
    rates = (0.6, 0.4)
    expected = [
        one.wait_s
        for one in non_preemptive(
            [PriorityClass(0, rates[0], 0.5), PriorityClass(1, rates[1], 1.0)]
        )
    ]
    classes = tuple(ClassModel(f"{at}", rates[at], (0.5, 1.0)[at], priority=at) for at in (0, 1))
    one = JobSource(classes, 1, 0.7)
    assert one.gap_s == pytest.approx(1.0)
    waits: list[list[float]] = [[], []]
    for seed in range(8):
        stream = jobs(one, 2000, seed)
        wait_s, priority = (
            play(stream, one.slots, "priority").wait_s,
            np.array([each.job.priority for each in stream]),
        )
        for kind in (0, 1):
            waits[kind].append(float(wait_s[priority == kind][300:].mean()))
    assert within(waits[0], expected[0] or 0)
    assert within(waits[1], expected[1] or 0)


def by_simpy(stream: Sequence[Coming], slots: int, rank: str) -> list[float]:
    clock = simpy.Environment()
    resource = simpy.PriorityResource(clock, slots)
    starts_s = [0.0] * len(stream)

    def job(at: int, one: Coming) -> simpy.events.ProcessGenerator:
        yield clock.timeout(one.job.submit_s)
        with resource.request(
            priority=one.job.predicted_s if rank == "sjf" else 0,  # type: ignore[arg-type]
        ) as mine:
            yield mine
            starts_s[at] = clock.now
            yield clock.timeout(one.takes_s)

    for at, one in enumerate(stream):
        clock.process(job(at, one))
    clock.run()
    return starts_s


@pytest.mark.parametrize("policy", ["fifo", "sjf"])
@pytest.mark.parametrize("slots", [1, 3])
def test_every_job_starts_when_simpys_resource_starts_it(policy: str, slots: int) -> None:
    stream = jobs(source(slots, 0.9), 500, 5)
    assert play(stream, slots, policy).start_s.tolist() == by_simpy(stream, slots, policy)
