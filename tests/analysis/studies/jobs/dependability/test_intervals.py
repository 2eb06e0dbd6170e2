"""Intervals between checkpoints: the literature's own figures, and what must hold whatever the times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.dependability.intervals import advise, best_s, daly_s, time_per_work, young_s
from analysis.terms import Refused

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

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
