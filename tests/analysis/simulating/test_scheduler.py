"""What the scheduler keeps of the slots, which policies read."""

from __future__ import annotations

from analysis.scheduling.scheduler import Scheduler
from analysis.scheduling.terms import Job
from tests.analysis.simulating.made_jobs import ANY


def test_a_job_of_several_replicas_takes_and_gives_back_as_many_slots_and_predicted_ends() -> None:
    """Two replicas until 5, one until 3: the ends are 3, 5, 5; when the two are over, 3 is left."""
    scheduler = Scheduler("fifo", {ANY: 4})
    scheduler.submit(Job(1, 0.0, {ANY: 5.0}, replicas=2), 0.0)
    scheduler.submit(Job(2, 0.0, {ANY: 3.0}), 0.0)
    scheduler.starts(0.0)
    assert scheduler.state.ends_s[ANY] == [3, 5, 5]
    assert scheduler.state.free[ANY] == 1
    scheduler.end(1, 2.0)
    assert scheduler.state.ends_s[ANY] == [3]
    assert scheduler.state.free[ANY] == 3
