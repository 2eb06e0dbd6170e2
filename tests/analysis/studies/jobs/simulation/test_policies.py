"""Which waiting job is next: each policy by examples that can be done by hand, and what holds for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.simulation.loop import play
from analysis.terms import Refused, UnknownName
from control.scheduling import policies
from control.scheduling.scheduler import Scheduler
from control.scheduling.terms import Job, Start
from tests.analysis.studies.jobs.simulation.made_jobs import ANY, coming

if TYPE_CHECKING:
    from collections.abc import Callable

    from syrupy.assertion import SnapshotAssertion


def waits(policy: str, *takes_s: float) -> float:
    """The mean wait of jobs that come together, on one slot."""
    played = play([coming(at, 0.0, seconds) for at, seconds in enumerate(takes_s)], {ANY: 1}, policy)
    return float(played.wait_s.mean())


def test_shortest_first_against_first_come() -> None:
    """Silberschatz, Galvin and Gagne, Operating System Concepts, chapter on CPU scheduling: 17 and 3, 10.25 and 7."""
    assert waits("fifo", 24, 3, 3) == 17
    assert waits("sjf", 24, 3, 3) == 3
    assert waits("fifo", 6, 8, 7, 3) == 10.25
    assert waits("sjf", 6, 8, 7, 3) == 7


def order(policy: str, *jobs: Job, slots: int = 1) -> list[int]:
    """The numbers as they are started when every job ends after a second."""
    scheduler = Scheduler(policy, {ANY: slots})
    for job in jobs:
        scheduler.submit(job, 0.0)
    found: list[int] = []
    for now_s in range(len(jobs) + 1):
        running = [start.number for start in scheduler.starts(float(now_s))]
        found += running
        for number in running:
            scheduler.end(number, now_s + 1.0)
    return found


def test_the_lower_priority_number_goes_first_and_equals_as_they_came() -> None:
    assert order("priority", Job(0, 0, priority=5), Job(1, 0, priority=-1), Job(2, 0, priority=5), Job(3, 0)) == [1, 3, 0, 2]


def test_the_shortest_goes_by_what_is_predicted_and_what_is_unknown_comes_last() -> None:
    assert order("sjf", Job(0, 0), Job(1, 0, {ANY: 3}), Job(2, 0, {ANY: 2}), Job(3, 0)) == [2, 1, 0, 3]


def test_the_least_slack_counts_from_the_latest_moment_to_start() -> None:
    """Job 1 is due after job 2 but takes so long that it must start at 1 s, job 2 at 3 s; without a promise one comes last."""
    assert order("least_slack", Job(0, 0, {ANY: 1}), Job(1, 0, {ANY: 9}, due_s=10), Job(2, 0, {ANY: 2}, due_s=5)) == [1, 2, 0]
    assert order("least_slack", Job(0, 0, {ANY: 1}, due_s=2), Job(1, 0, due_s=1.5)) == [0, 1]


def test_shares_are_fair_between_tenants_not_between_jobs() -> None:
    """Tenant a came with three jobs before b's two: they take turns."""
    jobs = [Job(at, 0, tenant=tenant) for at, tenant in enumerate("aaabb")]
    assert order("fair_share", *jobs) == [0, 3, 1, 4, 2]
    assert order("fair_share", *jobs, slots=2) == [0, 3, 1, 4, 2]


def test_who_was_away_earns_no_credit_for_it() -> None:
    """Tenant b comes when a has had 4.5 s alone: from then on they take turns; with credit b would have its five in a row."""
    scheduler = Scheduler("fair_share", {ANY: 1})
    for number in range(10):
        scheduler.submit(Job(number, 0, tenant="a"), 0.0)
    started = []
    for now_s in range(15):
        (start,) = scheduler.starts(float(now_s))
        started.append(start.number)
        if now_s == 4:
            for number in range(10, 15):
                scheduler.submit(Job(number, 4.5, tenant="b"), 4.5)
        scheduler.end(start.number, now_s + 1.0)
    assert started == [0, 1, 2, 3, 4, 10, 5, 11, 6, 12, 7, 13, 8, 14, 9]


FAST_AND_SLOW = {"gpu": 1, "cpu": 1}


def heterogeneous(*jobs: Job, taken: tuple[Job, ...] = ()) -> list[Start]:
    """What is started at 0 s; `taken` were started, by themselves, before the others came."""
    scheduler = Scheduler("heterogeneous", FAST_AND_SLOW)
    for job in taken:
        scheduler.submit(job, 0.0)
    scheduler.starts(0.0)
    for job in jobs:
        scheduler.submit(job, 0.0)
    return scheduler.starts(0.0)


def train(number: int) -> Job:
    return Job(number, 0, {"gpu": 1, "cpu": 10}, "train")


def serve(number: int) -> Job:
    return Job(number, 0, {"gpu": 0.9, "cpu": 1}, "serve")


def test_each_class_goes_where_it_gains_most_even_if_it_came_later() -> None:
    """Job 0 would be a little faster on the GPU; job 1 is ten times as fast there."""
    assert heterogeneous(serve(0), train(1)) == [Start(0, "cpu"), Start(1, "gpu")]
    assert heterogeneous(train(0), serve(1)) == [Start(0, "gpu"), Start(1, "cpu")]


def test_a_job_waits_for_its_slots_where_others_are_slower_than_waiting() -> None:
    """The GPU is free again in 1 s: 2 s in all, against 10 s at once. Behind 20 s it is not worth it."""
    assert heterogeneous(train(1), taken=(train(0),)) == []
    long = Job(0, 0, {"gpu": 20, "cpu": 200}, "train")
    assert heterogeneous(train(1), taken=(long,)) == [Start(1, "cpu")]


def test_where_all_slots_are_alike_it_is_first_come() -> None:
    jobs = [Job(at, 0, {ANY: float(takes)}) for at, takes in enumerate((3, 1, 2))]
    assert order("heterogeneous", *jobs) == [0, 1, 2]


def test_every_policy_says_what_it_is() -> None:
    for policy in map(policies.load, policies.names()):
        assert policy.description
        assert (policy.rank is None) != (policy.choose is None)


jobs_of = st.lists(
    st.tuples(st.floats(0, 10), st.floats(0.01, 5), st.integers(1, 3), st.sampled_from("ab"), st.integers(0, 2)), min_size=1, max_size=25
)


@pytest.mark.parametrize("policy", policies.names())
@given(jobs=jobs_of)
def test_no_policy_loses_a_job_or_gives_a_slot_twice(policy: str, jobs: list[tuple[float, float, int, str, int]]) -> None:
    """Whatever comes, every job starts after it came, ends, and at no moment more slots of a kind are held than there are."""
    slots = {"gpu": 3, "cpu": 4}
    stream = [
        coming(at, submit_s, {"gpu": takes_s, "cpu": 2 * takes_s}, replicas=replicas, tenant=tenant, class_=tenant, priority=priority)
        for at, (submit_s, takes_s, replicas, tenant, priority) in enumerate(sorted(jobs))
    ]
    played = play(stream, slots, policy)
    assert (played.start_s >= played.submit_s).all()
    for kind, many in slots.items():
        mine = [at for at, one in enumerate(played.kinds) if one == kind]
        for at in mine:
            moment = played.start_s[at]
            held = sum(played.replicas[other] for other in mine if played.start_s[other] <= moment < played.end_s[other])
            assert held <= many


def test_a_gang_waits_for_all_its_slots_and_nobody_overtakes_it() -> None:
    stream = [coming(0, 0, 2), coming(1, 0.5, 1, replicas=2), coming(2, 0.6, 0.1)]
    assert play(stream, {ANY: 2}, "fifo").start_s.tolist() == [0, 2, 3]


def test_what_a_scheduler_refuses(snapshot: SnapshotAssertion) -> None:
    one, both = Scheduler("fifo", {ANY: 1}), Scheduler("fifo", {"gpu": 2, "cpu": 4})
    one.submit(Job(1, 0), 1.0)
    requests: dict[str, Callable[[], object]] = {
        "unknown policy": lambda: Scheduler("lifo", {ANY: 1}),
        "no slots": lambda: Scheduler("fifo", {}),
        "wider than all kinds": lambda: both.submit(Job(3, 0, replicas=5), 0.0),
        "wider than its kind": lambda: both.submit(Job(3, 0, {"gpu": 1.0}, replicas=3), 0.0),
        "end of a job that waits": lambda: one.end(1, 1.0),
        "end of an unknown job": lambda: one.end(2, 1.0),
        "twice": lambda: one.submit(Job(1, 0), 1.0),
        "clock": lambda: one.starts(0.5),
    }
    found = {}
    for case, request in requests.items():
        with pytest.raises((Refused, UnknownName)) as refused:
            request()
        found[case] = str(refused.value)
    assert found == snapshot


def test_a_job_of_several_replicas_takes_and_gives_back_as_many_slots_and_predicted_ends() -> None:
    """Two replicas until 5, one until 3: the ends are 3, 5, 5; when the two are over, 3 is left."""
    scheduler = Scheduler("fifo", {ANY: 4})
    scheduler.submit(Job(1, 0.0, {ANY: 5.0}, replicas=2), 0.0)
    scheduler.submit(Job(2, 0.0, {ANY: 3.0}), 0.0)
    scheduler.starts(0.0)
    assert (scheduler.state.ends_s[ANY], scheduler.state.free[ANY]) == ([3, 5, 5], 1)
    scheduler.end(1, 2.0)
    assert (scheduler.state.ends_s[ANY], scheduler.state.free[ANY]) == ([3], 3)
