"""What came after a fault, on streams that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.studies.jobs.dependability.outcomes import ANOTHER, CLOSED, GIVEN_UP, LASTED, NO_TWIN, NOT_YET, after
from analysis.studies.jobs.records import Fault
from tests.analysis.studies.jobs.dependability.made_streams import attempt, job, stream

# Without a fault: three jobs a second apart, each done 2 s after it came.
TWIN = stream([job(0, 0, 2), job(1, 1, 3), job(2, 2, 4)])


def test_a_killed_job_is_over_when_it_is_done_and_the_others_have_caught_up() -> None:
    """Job 1 is killed at 2 s, begins again at 2.5 s and is done at 5 s; job 2 waits behind it till 6 s, two after its time."""
    tried = [attempt(0, 1, 0, 2), attempt(1, 1, 1, 2, "killed"), attempt(1, 2, 2.5, 5), attempt(2, 1, 5, 6)]
    made = stream([job(0, 0, 2), job(1, 1, 5, lost_s=1), job(2, 2, 6)], tried, [Fault("kill", 2, 2, "a", 1)], fault="kill")
    (found,) = after(made, TWIN)
    assert (found.hit, found.given_up, found.restart_s) == (1, 0, 0.5)
    assert found.recovery_s == 4  # at 6 s: one job was still behind when job 1 was done
    assert found.behind == 2


def test_a_stream_that_is_not_behind_has_recovered_when_the_job_is_done() -> None:
    tried = [attempt(0, 1, 0, 2), attempt(1, 1, 1, 2, "killed"), attempt(1, 2, 2, 3), attempt(2, 1, 2, 4)]
    made = stream([job(0, 0, 2), job(1, 1, 3), job(2, 2, 4)], tried, [Fault("kill", 2, 2, "a", 1)], fault="kill")
    (found,) = after(made, TWIN)
    assert (found.recovery_s, found.restart_s, found.behind) == (1, 0, 0)


def test_a_lost_node_hits_all_that_ran_on_it_and_nothing_else() -> None:
    tried = [attempt(0, 1, 0, 2), attempt(0, 2, 4, 5), attempt(1, 1, 1, 3, node="b"), attempt(2, 1, 2, 2.5, "failed", "a")]
    tried[0] = attempt(0, 1, 0, 1.5, "killed", "a")
    made = stream([job(0, 0, 5), job(1, 1, 3), job(2, 2, 4)], tried, [Fault("node", 1.5, 3, "a")], nodes=2, fault="node")
    (found,) = after(made, TWIN)
    assert (found.hit, found.restart_s, found.recovery_s) == (1, 2.5, 3.5)


def test_the_restart_after_a_lost_node_is_that_of_the_last_to_begin_again() -> None:
    tried = [
        attempt(0, 1, 0, 1.5, "killed"),
        attempt(1, 1, 1, 1.5, "killed"),
        attempt(0, 2, 2, 4),
        attempt(1, 2, 3, 5),
        attempt(2, 1, 2, 4),
    ]
    made = stream([job(0, 0, 4), job(1, 1, 5), job(2, 2, 4)], tried, [Fault("node", 1.5, 1.8, "a")], fault="node")
    (found,) = after(made, TWIN)
    assert (found.hit, found.restart_s, found.recovery_s) == (2, 1.5, 3.5)


def test_a_job_that_is_given_up_has_no_recovery() -> None:
    tried = [attempt(0, 1, 0, 2), attempt(1, 1, 1, 2, "killed"), attempt(2, 1, 2, 4)]
    made = stream([job(0, 0, 2), job(1, 1, 2, "killed"), job(2, 2, 4)], tried, [Fault("kill", 2, 2, "a", 1)], fault="kill")
    (found,) = after(made, TWIN)
    assert (found.given_up, found.restart_s, found.recovery_s, found.why) == (1, None, None, GIVEN_UP)


def test_the_next_fault_ends_the_wait_for_recovery() -> None:
    tried = [attempt(0, 1, 0, 2), attempt(1, 1, 1, 2, "killed"), attempt(1, 2, 2, 3, "killed"), attempt(1, 3, 3, 5), attempt(2, 1, 5, 6)]
    faults = [Fault("kill", 3, 3, "a", 1), Fault("kill", 2, 2, "a", 1)]
    made = stream([job(0, 0, 2), job(1, 1, 5), job(2, 2, 6)], tried, faults, fault="kill")
    first, second = after(made, TWIN)
    assert (first.fault.at_s, first.why, first.recovery_s) == (2, ANOTHER, None)
    assert second.recovery_s == 3


def test_a_kill_that_hit_nothing_is_no_fault() -> None:
    """Nothing ran, or what ran was over before it could be killed; the first was no reason for a wait of the second either."""
    made = stream([job(0, 0, 2), job(1, 1, 3), job(2, 2, 4)], faults=[Fault("kill", 2.5), Fault("kill", 3.1, 3.1, "a", 1)], fault="kill")
    assert after(made, TWIN) == []


def test_a_kill_that_came_too_late_has_not_hit_the_attempt_before() -> None:
    """Attempt 2 was done when the second kill came, 0.2 s after the first."""
    tried = [attempt(0, 1, 0, 2), attempt(1, 1, 1, 2, "killed"), attempt(1, 2, 2.05, 2.15), attempt(2, 1, 2, 4)]
    faults = [Fault("kill", 2, 2, "a", 1), Fault("kill", 2.2, 2.2, "a", 1)]
    (found,) = after(stream([job(0, 0, 2), job(1, 1, 2.15), job(2, 2, 4)], tried, faults, fault="kill"), TWIN)
    assert (found.fault.at_s, found.hit) == (2, 1)


def test_a_closed_stream_never_catches_up() -> None:
    closed = [replace(one, planned_s=None) for one in TWIN.jobs]
    tried = [attempt(0, 1, 0, 1, "killed"), attempt(0, 2, 1, 3), attempt(1, 1, 3, 5), attempt(2, 1, 5, 7)]
    made = stream([replace(one, end_s=3.0 + 2 * at) for at, one in enumerate(closed)], tried, [Fault("kill", 1, 1, "a", 0)], fault="kill")
    (found,) = after(made, replace(TWIN, jobs=tuple(closed)))
    assert (found.hit, found.restart_s, found.recovery_s, found.why) == (1, 0, None, CLOSED)


def test_a_neighbour_hits_nobody_and_is_over_when_it_ends() -> None:
    """It is there from 1 to 5 s; job 1 is done at 6 s in place of 3, job 2 at 7."""
    made = stream([job(0, 0, 2), job(1, 1, 6), job(2, 2, 7)], faults=[Fault("cpu_hog", 1, 5)], fault="cpu_hog")
    (found,) = after(made, TWIN)
    assert (found.hit, found.recovery_s, found.behind) == (0, 6, 2)


def test_a_flood_is_over_when_its_own_jobs_are_done() -> None:
    made = stream([job(0, 0, 2), job(1, 1, 3), job(2, 2, 4), job(7, 1, 9)], faults=[Fault("flood", 1, 1)], fault="flood")
    assert after(made, TWIN)[0].recovery_s == 8


def test_a_stream_that_is_still_behind_when_it_ends_has_not_recovered() -> None:
    """Nothing of it was done in both streams after the node had been lost."""
    jobs = [job(0, 0, None, "never started"), job(1, 1, None, "never started")]
    made = stream(jobs, [attempt(0, 1, 5, None, "never started")], [Fault("node", 1, 3, "a")], fault="node")
    (found,) = after(made, TWIN)
    assert (found.recovery_s, found.why) == (None, NOT_YET)


@pytest.mark.parametrize(("twin", "why"), [(None, NO_TWIN), (TWIN, LASTED)])
def test_without_an_end_or_a_twin_there_is_no_recovery(twin: object, why: str) -> None:
    made = stream([job(0, 0, 2), job(1, 1, 3)], faults=[Fault("memory_hog", 1)], fault="memory_hog")
    (found,) = after(made, TWIN if twin else None)
    assert (found.recovery_s, found.why) == (None, why)
