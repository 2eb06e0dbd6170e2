"""Faults and checkpoints by hand: where one job, one moment or one sign more makes another answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import simpy

from analysis.studies.jobs.dependability.checkpoints import trials
from analysis.studies.jobs.dependability.intervals import CheckpointPlan, _failures, _life, time_per_work
from analysis.studies.jobs.dependability.outcomes import after, shared, totals
from analysis.studies.jobs.records import Fault, Outage
from tests.analysis.studies.jobs.dependability.made_streams import attempt, job, stream


def test_the_least_is_at_the_root_of_c_over_b_and_its_interval_that_of_their_ratio() -> None:
    """1 + bτ + c/τ with b = .1, .11, .09 and c four times that: 2 s in every block, however b scatters; at 1 and 4 s 1.5, 1.55, 1.45."""
    streams = []
    for block, slope in enumerate((0.1, 0.11, 0.09), 1):
        streams.append(stream([job(0, 0, 2)], block=block))
        for interval in (1.0, 2.0, 4.0):
            made = stream([job(0, 0, 2 * (1 + slope * interval + 4 * slope / interval))], fault="kill", block=block)
            streams.append(replace(made, checkpoint_s=interval))
    (found,) = trials(streams)
    assert found.least_s is not None
    assert (found.least_s.value, found.least_s.low, found.least_s.high) == pytest.approx((2, 2, 2), rel=1e-4)
    short, best, long = found.tried
    assert (best.checkpoint_s, best.more) == (2, None)
    assert (short.more, long.more) == pytest.approx([(1.5 / 1.4 * 1.55 / 1.44 * 1.45 / 1.36) ** (1 / 3) - 1] * 2)


def test_what_is_foretold_has_the_time_to_restart_in_it_and_lost_jobs_are_counted() -> None:
    """Two checkpoints of half a second, one failure in 20 s of running, 5 s to begin again; jobs 1 and 2 are lost."""
    ones = [replace(attempt(0, 1, 0, 10, "killed"), checkpoints=2, cost_s=1.0), attempt(0, 2, 15, 25)]
    lost = [job(at, 0, None, "never started") for at in (1, 2)]
    made = stream([job(0, 0, 25), *lost], ones, fault="kill")
    found = trials([replace(made, checkpoint_s=4.0), replace(made, checkpoint_s=8.0)])[0].tried
    assert [one.foretold for one in found] == pytest.approx([time_per_work(one, 0.5, 20, 5) for one in (4, 8)])
    assert [one.lost for one in found] == [2, 2]


def test_checkpoints_of_a_job_that_was_never_done_are_not_lost_twice() -> None:
    """Of 8 s, 4 of the lost job and half a second of the other's checkpoints are gone."""
    tried = [replace(attempt(at, 1, 0, 4, how), checkpoints=1, cost_s=0.5) for at, how in enumerate(("done", "killed"))]
    assert totals(stream([job(0, 0, 4), job(1, 0, 4, "killed")], tried)).useful == pytest.approx(3.5 / 8)


def test_a_node_that_was_away_before_the_first_job_or_after_the_last_is_missed_by_nobody() -> None:
    """Jobs from 2 to 10 s on two nodes: 2 s of the one and 1 s of the other, of 16."""
    made = stream([job(0, 2, 10)], outages=[Outage("a", 0, 4), Outage("b", 9, 20)], nodes=2)
    assert totals(made).available == pytest.approx(1 - 3 / 16)


@pytest.mark.parametrize(("off_s", "many"), [(1e-7, 1), (1e-4, 0)])
def test_a_plan_is_the_same_to_the_microsecond(off_s: float, many: int) -> None:
    one = job(0, 0, 1)
    assert len(shared(stream([one]), stream([replace(one, planned_s=off_s)]))) == many


@pytest.mark.parametrize(("end_s", "hits"), [(1.7, [1]), (1.0, [])])
def test_a_kill_hit_what_ended_just_before_it_was_told_and_nothing_earlier(end_s: float, hits: list[int]) -> None:
    tried = [attempt(0, 1, 0.5, end_s, "killed"), attempt(0, 2, 2.5, 4)]
    assert [one.hit for one in after(stream([job(0, 0, 4)], tried, [Fault("kill", 2, 2, "a", 0)], fault="kill"), None)] == hits


@pytest.mark.parametrize("shape", [0.7, 1.0, 2.0])
def test_failures_come_as_often_as_is_said_whatever_their_shape(shape: float) -> None:
    """Of 40,000 gaps the mean is known to a hundredth at shape 0.7, whose variation is 1.46."""
    moments = list(islice(_failures(CheckpointPlan(1, 100, 1000, shape=shape), 1), 40_000))
    assert np.diff(moments).mean() == pytest.approx(100, rel=0.03)


def test_a_failure_while_a_job_begins_again_lets_it_begin_once_more() -> None:
    """Down at 4 s till 9, at 7 s till 12; then 10 s of work, without a checkpoint at their end."""
    clock = simpy.Environment()
    clock.run(clock.process(_life(clock, CheckpointPlan(1, 100, 10, 5), 10, iter([4.0, 7.0, 100.0]))))
    assert clock.now == 22
