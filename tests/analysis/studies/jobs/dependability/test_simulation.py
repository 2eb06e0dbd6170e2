"""Checkpoint intervals in simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.studies.jobs.dependability.intervals import CheckpointPlan, simulate
from analysis.terms import Refused

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

LONG = CheckpointPlan(cost_s=5, mtbf_s=1440, work_s=28800, seeds=100)


def test_a_long_job_takes_as_long_as_dalys_formula_says() -> None:
    """20 MTBF of work: within four standard errors, and what the last segment saves, at each interval."""
    advice, found = simulate(CheckpointPlan(5, 1440, 28800, restart_s=20, seeds=100))
    assert advice.daly_s == pytest.approx(116.690, abs=5e-4)
    for one in found:
        assert one.time.se is not None
        saved = 5 / 28800  # the end of the work needs no checkpoint
        assert abs(one.time.value + saved - one.formula) < 4 * one.time.se


def test_dalys_interval_is_best_of_its_neighbours_with_the_same_failures() -> None:
    advice, found = simulate(LONG)
    assert [one.interval_s / advice.daly_s for one in found] == pytest.approx([0.25, 0.5, 1, 2, 4])
    assert min(found, key=lambda one: one.time.value).interval_s == advice.daly_s
    for one in found:
        if one.interval_s != advice.daly_s:
            assert one.against_daly is not None
            assert one.against_daly.low is not None
            assert one.against_daly.low > 1


def test_failures_that_come_in_bunches_cost_less_than_the_formula_says_where_intervals_are_long() -> None:
    _, found = simulate(CheckpointPlan(5, 1440, 28800, shape=0.5, seeds=100, intervals_s=(2000.0,)))
    (long,) = [one for one in found if one.interval_s == 2000]
    assert long.time.high is not None
    assert long.time.high < long.formula


def test_without_failures_only_checkpoints_take_time() -> None:
    """100 s of work, MTBF 10⁸ s, a checkpoint of 1 s every 10 s but the last: 109 s."""
    _, found = simulate(CheckpointPlan(1, 1e8, 100, seeds=3, intervals_s=(10.0,)))
    assert found[0].time.value == pytest.approx(1.09)
    assert found[0].time.low is None  # every seed is the same


def test_what_a_seed_plays_is_the_same_again() -> None:
    short = CheckpointPlan(5, 1440, 2880, seeds=5)
    assert simulate(short)[1] == simulate(short)[1]


def test_what_cannot_be_played_is_refused(snapshot: SnapshotAssertion) -> None:
    """The last but one: a day without a failure, which will not come."""
    found = {}
    for case, asked in {
        "no work": CheckpointPlan(5, 1440, 0),
        "shape 0": CheckpointPlan(5, 1440, 1e4, shape=0),
        "two seeds": CheckpointPlan(5, 1440, 1e4, seeds=2),
        "an interval of 0 s": CheckpointPlan(5, 1440, 1e4, intervals_s=(0.0,)),
        "much work": CheckpointPlan(5, 1440, 1e12),
        "long intervals": CheckpointPlan(5, 1440, 1e6, intervals_s=(1e5,)),
        "no cost": CheckpointPlan(0, 1440, 1e4),
    }.items():
        with pytest.raises(Refused) as refused:
            simulate(asked)
        found[case] = str(refused.value)
    assert found == snapshot
