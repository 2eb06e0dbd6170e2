"""Checkpoint intervals that were tried."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.load import from_json
from analysis.studies.jobs.checkpoint_plans import CheckpointPlan, simulate
from analysis.studies.jobs.checkpoints import (
    NO_LEAST,
    OUTSIDE,
    TOO_FEW_LEVELS,
    advise,
    best_s,
    daly_s,
    fieller,
    time_per_work,
    trials,
    young_s,
)
from analysis.studies.jobs.records import Attempt, Stream, streams
from analysis.terms import Refused
from tests.analysis.answers import known
from tests.analysis.studies.jobs.dependability.made_faults import Faulty, faulty_run
from tests.analysis.studies.jobs.dependability.made_streams import attempt, job, stream

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


KILLS = ":fault=kill:fault_rate_per_s=1:retries=1000"
LONG = Faulty(work_s=1.5, rate_per_s=0.5, jobs=60)


def tried(interval_s: float, mtbf_s: float = 1.0) -> Faulty:
    return replace(LONG, words=f"{KILLS}:checkpoint_s={interval_s:g}", fault="kill", mtbf_s=mtbf_s, checkpoint_s=interval_s)


def read(made: list[Faulty], blocks: int = 5) -> list[Stream]:
    refused: list[str] = []
    found = streams(from_json(faulty_run(made, blocks), "made-up"), refused)
    assert not refused
    return found


def test_the_measured_least_has_dalys_inside_its_interval() -> None:
    """A crash a second, 20 ms a checkpoint: Daly's is 0.188 s; 0.2 s is best of those tried, and its neighbours are worse for certain."""
    (found,) = trials(read([LONG, *(tried(one) for one in (0.05, 0.2, 0.8))]))
    assert found.cost_s == pytest.approx(0.02)
    assert found.mtbf_s is not None
    assert known(found.mtbf_s.low) < 1 < known(found.mtbf_s.high)
    assert found.restart_s == pytest.approx(0.01)
    short, best, long = found.tried
    assert (best.checkpoint_s, best.more, best.p) == (0.2, None, None)
    for other in (short, long):
        assert known(other.more) > 0.1
        assert known(other.p) < 0.01
    for one in found.tried:
        assert known(one.time).value == pytest.approx(one.foretold, rel=0.1)
    assert found.least_s is not None
    assert known(found.least_s.low) < daly_s(0.02, 1) < known(found.least_s.high)


def test_time_per_work_is_held_time_over_that_of_the_same_jobs_without_faults() -> None:
    """Job 0 takes 2 s without the fault, and 1 + 2.5 s with it; job 1 is not done with it and has no part."""
    twin = stream([job(0, 0, 2), job(1, 1, 3)])
    ones = [attempt(0, 1, 0, 1, "killed"), attempt(0, 2, 1.5, 4), attempt(1, 1, 1, 9, "killed")]
    made = stream([job(0, 0, 4), job(1, 1, 9, "killed")], ones, fault="kill")
    (found,) = trials([twin, made, replace(made, checkpoint_s=1.0)])
    assert [one.time.value for one in found.tried if one.time] == [1.75, 1.75]
    assert (found.killed, found.ran_s, found.restart_s) == (4, 23, 0.5)
    assert [one.lost for one in found.tried] == [1, 1]
    assert found.least_s is None
    assert found.why == TOO_FEW_LEVELS


def test_without_a_twin_it_is_held_over_useful_time() -> None:
    ones = [attempt(0, 1, 0, 1, "killed"), attempt(0, 2, 1.5, 4.5)]
    made = stream([job(0, 0, 4.5, lost_s=1)], ones, fault="kill")
    (found,) = trials([made, replace(made, checkpoint_s=1.0)])
    assert [one.time.value for one in found.tried if one.time] == pytest.approx([4 / 3, 4 / 3])


def test_time_that_falls_faster_than_checkpoints_cost_less_has_no_least() -> None:
    """In each block 2, 1.8 and 1 times the work, at 0.1, 1 and 2 s: b is below 0."""
    streams = []
    for block in (1, 2, 3):
        streams.append(stream([job(0, 0, 2)], block=block))
        for interval, time in ((0.1, 2.0), (1.0, 1.8), (2.0, 1.0)):
            made = stream([job(0, 0, 2 * time)], fault="kill", block=block)
            streams.append(replace(made, checkpoint_s=interval))
    (found,) = trials(streams)
    assert (found.least_s, found.why) == (None, NO_LEAST)


def test_where_nothing_ever_fails_the_least_is_said_to_lie_beyond_what_was_tried() -> None:
    never = [replace(tried(one), mtbf_s=None, jitter=0.0) for one in (0.05, 0.2, 0.8)]
    (found,) = trials(read([LONG, *never], blocks=3))
    assert (found.mtbf_s, found.killed, found.restart_s) == (None, 0, None)
    assert (known(found.least_s).value > 0.8, known(found.least_s).high, found.why) == (True, math.inf, OUTSIDE)
    assert all(one.foretold is None for one in found.tried)


def test_one_interval_is_no_trial() -> None:
    assert trials(read([LONG, tried(0.2)], blocks=1)) == []


def test_the_mtbf_of_no_checkpoint_has_the_exact_interval_of_a_count() -> None:
    """Ten kills in 100 s of running: 10 s, from 100/18.390 to 100/4.7954 (Poisson, 10 seen)."""
    ones = [attempt(0, at + 1, 10 * at, 10 * at + 10, "killed") for at in range(10)]
    made = stream([job(0, 0, 100, "killed")], ones, fault="kill")
    (found,) = trials([made, replace(made, checkpoint_s=1.0, attempts=(Attempt(0, 1, "a", None, None, "never started"),))])
    assert (known(found.mtbf_s).value, found.cost_s) == (10, None)
    assert known(found.mtbf_s).low == pytest.approx(100 / 18.390, rel=1e-4)
    assert known(found.mtbf_s).high == pytest.approx(100 / 4.7954, rel=1e-4)


def test_fiellers_interval_where_the_ratio_is_certain_and_where_it_is_not() -> None:
    """Six pairs, uncorrelated by design: means 6 and 2. With t = 2.5706 the ends solve (6 - 2r)² = t²(v/6 + r²w/6)."""
    above = np.array([5.0, 7.0, 5.0, 7.0, 6.0, 6.0])
    below = np.array([1.9, 2.1, 2.1, 1.9, 2.0, 2.0])
    low, high = fieller(above, below)
    for end in (low, high):
        assert (6 - 2 * end) ** 2 == pytest.approx(2.570582**2 * (0.8 + end**2 * 0.008) / 6, rel=1e-4)
    assert low < 3 < high
    # Where the denominator may be nought there is no upper end, and where both may be, nothing is known.
    low, high = fieller(above, below + np.array([-5.0, 5.0, -5.0, 5.0, 0.0, 0.0]))
    assert 0 < low < 3
    assert high == math.inf
    assert fieller(above + np.array([-20.0, 20.0, 20.0, -20.0, 0.0, 0.0]), below * 20 - 38 + np.array([9, -9, 9, -9, 0, 0])) == (
        0,
        math.inf,
    )


def test_fiellers_interval_holds_the_ratio_in_nineteen_of_twenty_samples() -> None:
    rng = np.random.default_rng(1)
    pairs = rng.normal([3.0, 1.0], [0.5, 0.4], (2000, 6, 2))
    held = [low <= 3 <= high for low, high in (fieller(one[:, 0], one[:, 1]) for one in pairs if one.mean(axis=0).min() > 0)]
    assert 0.93 < np.mean(held) < 0.97


COSTS = st.floats(1e-3, 1e4)
RATIOS = st.floats(1e-8, 1.9)  # of cost to MTBF


def test_young_and_daly_for_five_minutes_and_a_day() -> None:
    """C = 5 min, M = 1440 min: √(2·5·1440) = 120; 120·(1 + √(5/2880)/3 + 5/2880/9) - 5 = 116.690."""
    assert young_s(5, 1440) == pytest.approx(120, rel=1e-12)
    assert daly_s(5, 1440) == pytest.approx(116.690, abs=5e-4)
    assert best_s(5, 1440) == pytest.approx(116.690, abs=5e-4)


def test_a_checkpoint_of_two_mtbf_and_more_is_written_once_an_mtbf() -> None:
    assert daly_s(20, 10) == daly_s(50, 10) == 10
    # √300·(1 + √0.75/3 + 0.75/9) - 15
    assert daly_s(15, 10) == pytest.approx(8.7638, abs=1e-4)
    assert advise(50, 10).too_dear
    assert not advise(4, 10).too_dear


@given(cost_s=COSTS, ratio=RATIOS)
def test_no_interval_takes_less_time_than_the_best(cost_s: float, ratio: float) -> None:
    mtbf_s = cost_s / ratio
    best = best_s(cost_s, mtbf_s)
    least = time_per_work(best, cost_s, mtbf_s)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert time_per_work(factor * best, cost_s, mtbf_s) >= least * (1 - 1e-9)
    # exp(x + c)·(1 - x) = 1 at the least.
    x = best / mtbf_s
    assert math.log1p(-x) + x + ratio == pytest.approx(0, abs=1e-9)


@given(cost_s=COSTS, ratio=st.floats(1e-8, 0.02))
def test_dalys_is_within_a_thousandth_of_the_best_and_youngs_within_a_tenth(cost_s: float, ratio: float) -> None:
    mtbf_s = cost_s / ratio
    assert daly_s(cost_s, mtbf_s) == pytest.approx(best_s(cost_s, mtbf_s), rel=1e-3)
    assert young_s(cost_s, mtbf_s) == pytest.approx(best_s(cost_s, mtbf_s), rel=0.1)


@given(cost_s=COSTS, ratio=RATIOS)
def test_between_its_ends_the_range_takes_one_percent_more_at_most(cost_s: float, ratio: float) -> None:
    found = advise(cost_s, cost_s / ratio)
    least = time_per_work(found.best_s, cost_s, cost_s / ratio)
    assert found.low_s < found.best_s < found.high_s
    for end in (found.low_s, found.high_s):
        assert time_per_work(end, cost_s, cost_s / ratio) == pytest.approx(1.01 * least, rel=1e-6)


def test_time_per_work_by_hand() -> None:
    """10 s of work and 1 s of checkpoint, M = 100 s: 100·(exp(0.11) - 1)/10 = 1.16278; a restart of 5 s: times exp(0.05)."""
    assert time_per_work(10, 1, 100) == pytest.approx(1.1627807, rel=1e-6)
    assert time_per_work(10, 1, 100, 5) == pytest.approx(1.1627807 * math.exp(0.05), rel=1e-6)


def test_an_interval_of_many_mtbf_is_never_done() -> None:
    assert time_per_work(1e6, 1, 1) == math.inf


def test_times_that_are_none_are_refused(snapshot: SnapshotAssertion) -> None:
    found = {}
    for times in ((0, 10, 0), (1, math.nan, 0), (1, 10, -1), (1e3, 1, 0)):
        with pytest.raises(Refused) as refused:
            advise(*times)
        found[str(times)] = str(refused.value)
    assert found == snapshot


LONG_JOB = CheckpointPlan(cost_s=5, mtbf_s=1440, work_s=28800, seeds=100)


def test_a_long_job_takes_as_long_as_dalys_formula_says() -> None:
    """20 MTBF of work: within four standard errors, and what the last segment saves, at each interval."""
    advice, found = simulate(CheckpointPlan(5, 1440, 28800, restart_s=20, seeds=100))
    assert advice.daly_s == pytest.approx(116.690, abs=5e-4)
    for one in found:
        saved = 5 / 28800  # the end of the work needs no checkpoint
        assert abs(one.time.value + saved - one.formula) < 4 * known(one.time.se)


def test_dalys_interval_is_best_of_its_neighbours_with_the_same_failures() -> None:
    advice, found = simulate(LONG_JOB)
    assert [one.interval_s / advice.daly_s for one in found] == pytest.approx([0.25, 0.5, 1, 2, 4])
    assert min(found, key=lambda one: one.time.value).interval_s == advice.daly_s
    for one in found:
        if one.interval_s != advice.daly_s:
            assert known(known(one.against_daly).low) > 1


def test_failures_that_come_in_bunches_cost_less_than_the_formula_says_where_intervals_are_long() -> None:
    _, found = simulate(CheckpointPlan(5, 1440, 28800, shape=0.5, seeds=100, intervals_s=(2000.0,)))
    (long,) = [one for one in found if one.interval_s == 2000]
    assert known(long.time.high) < long.formula


def test_without_failures_only_checkpoints_take_time() -> None:
    """100 s of work, MTBF 10⁸ s, a checkpoint of 1 s every 10 s but the last: 109 s."""
    _, found = simulate(CheckpointPlan(1, 1e8, 100, seeds=3, intervals_s=(10.0,)))
    assert found[0].time.value == pytest.approx(1.09)
    assert found[0].time.low is None  # every seed is the same


def test_what_a_seed_plays_is_the_same_again() -> None:
    short = CheckpointPlan(5, 1440, 2880, seeds=5)
    assert simulate(short)[1] == simulate(short)[1]


def test_what_cannot_be_played_is_refused(snapshot: SnapshotAssertion) -> None:
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
