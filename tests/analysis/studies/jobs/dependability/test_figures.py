"""What a stream came to, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.studies.jobs.dependability.outcomes import goodput_per_s, responses, shared, totals
from analysis.studies.jobs.records import Outage
from tests.analysis.studies.jobs.dependability.made_streams import attempt, job, stream


def test_useful_time_is_what_is_left_without_lost_work_and_checkpoints() -> None:
    """Attempts of 2 s and 4 s of job 0, of which 1.5 s were lost and 0.5 s went into checkpoints; 2 s of job 1. 6 s of 8."""
    tried = [attempt(0, 1, 0, 2, "killed"), replace(attempt(0, 2, 2, 6), checkpoints=2, cost_s=0.5), attempt(1, 1, 6, 8)]
    found = totals(stream([job(0, 0, 6, lost_s=1.5), job(1, 1, 8)], tried))
    assert (found.held_s, found.lost_s, found.checkpoint_s, found.useful) == (8, 1.5, 0.5, 0.75)


def test_all_time_of_a_job_that_was_never_done_is_lost() -> None:
    tried = [attempt(0, 1, 0, 2, "killed"), attempt(0, 2, 2, 3, "killed"), attempt(1, 1, 0, 3)]
    found = totals(stream([job(0, 0, 3, "killed", 0.2), job(1, 0, 3)], tried))
    assert (found.lost_s, found.useful) == (3, 0.5)
    assert found.outcomes == {"done": 1, "killed": 1}


def test_lost_time_that_was_not_told_is_that_of_attempts_without_a_checkpoint_or_unknown() -> None:
    tried = [attempt(0, 1, 0, 2, "killed"), attempt(0, 2, 2, 6)]
    assert totals(stream([job(0, 0, 6, lost_s=None)], tried)).lost_s == 2
    tried[0] = replace(tried[0], checkpoints=1)
    assert totals(stream([job(0, 0, 6, lost_s=None)], tried)).lost_s is None


def test_times_that_are_missing_or_go_back_leave_no_figure() -> None:
    assert totals(stream([job(0, 0, 6)], [attempt(0, 1, 6, 2)])).held_s is None
    assert totals(stream([job(0, 0, 6)], [attempt(0, 1, 2, None)])).useful is None


def test_an_attempt_that_never_ended_has_no_time_that_counts() -> None:
    found = totals(stream([job(0, 0, 2), job(1, 0, None, "never ended")], [attempt(0, 1, 0, 2), attempt(1, 1, 0, None, "never ended")]))
    assert found.held_s == 2


def test_availability_counts_slots_and_time() -> None:
    """Ten seconds, two nodes; one was away from 2 to 4 s, the other from 3 s on for good: 9 of 20, and for a second nobody was there."""
    made = stream([job(0, 0, 10)], outages=[Outage("a", 2, 4), Outage("b", 3)], nodes=2)
    found = totals(made)
    assert found.available == pytest.approx(1 - 9 / 20)
    assert found.alone_down_s == 1
    assert totals(stream([job(0, 0, 10)])).available == 1


def test_streams_share_jobs_of_one_number_class_size_and_plan() -> None:
    one, other = stream([job(0, 0, 1), job(1, 1, 2), job(2, 2, 3), job(9, 4, 5)]), stream([job(0, 0, 2), job(1, 1, 3), job(2, 2, 4)])
    changed = replace(other, jobs=(other.jobs[0], replace(other.jobs[1], work=2.0), replace(other.jobs[2], planned_s=2.1)))
    assert [mine.number for mine, _ in shared(one, other)] == [0, 1, 2]
    assert [mine.number for mine, _ in shared(one, changed)] == [0]
    assert shared(one, replace(other, jobs=(replace(other.jobs[0], class_="large"),))) == []


def test_responses_are_of_jobs_that_both_got_done() -> None:
    """Job 0: 2 s against 1 s; job 1 was not done, job 2's clock went back."""
    one = stream([job(0, 0, 2), job(1, 1, 9, "killed"), job(2, 2, 1)])
    other = stream([job(0, 0, 1), job(1, 1, 2), job(2, 2, 3)])
    assert responses(shared(one, other)) == (1, 2)
    assert responses([]) is None


def test_goodput_is_work_or_where_that_is_not_told_jobs() -> None:
    jobs = [replace(job(0, 0, 2), work=3.0), replace(job(1, 1, 4), work=5.0), replace(job(2, 1, 4, "failed"), work=7.0)]
    assert goodput_per_s(jobs) == 2
    assert goodput_per_s([*jobs[:2], replace(jobs[2], work=None)]) == 0.5
    assert goodput_per_s([job(0, 0, None, "never ended")]) is None
