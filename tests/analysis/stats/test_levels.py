"""Levels of repetition: Davies' dyestuff (V13), a three-level example by hand, and what must not change an answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from analysis.stats.within import (
    Ratio,
    best_repetitions,
    between_f,
    design_effect,
    half_width,
    icc,
    levels,
    naive_alarms,
    naive_half_width,
    ratio_interval,
)

# Davies: yield of dyestuff, 6 batches of 5 samples.
DYESTUFF = np.array(
    [
        [1545, 1440, 1440, 1520, 1580],
        [1540, 1555, 1490, 1560, 1495],
        [1595, 1550, 1605, 1510, 1560],
        [1445, 1440, 1595, 1465, 1545],
        [1595, 1630, 1515, 1635, 1625],
        [1520, 1455, 1450, 1480, 1445],
    ]
)


def values_of(found: Ratio | None) -> list[float]:
    assert found is not None
    return [found.ratio, found.low, found.high]


def test_v13_variance_components() -> None:
    """Mean squares 11271.5 between and 2451.25 within: T_2² = (11271.5 - 2451.25)/5 = 1764.05, ICC = 1764.05/4215.3 = .418487."""
    found = levels(DYESTUFF)
    assert found.mean == 1527.5
    assert found.repetitions == (5, 6)
    assert found.s2 == pytest.approx((2451.25, 11271.5 / 5))
    assert found.t2 == pytest.approx((2451.25, 1764.05))
    assert [math.sqrt(variance) for variance in found.t2] == pytest.approx([49.5101, 42.0006], abs=1e-4)
    assert icc(found) == pytest.approx(0.418487, abs=1e-6)
    assert between_f(found) == pytest.approx((4.598266, 0.0043975), abs=1e-6)


def test_v13_the_right_interval_is_twice_as_wide_as_the_naive_one() -> None:
    """5 d.f.: 2.570582 · √(2254.3/6) = 49.827; taken for 30 independent values 23.533, too narrow by 2.1."""
    found = levels(DYESTUFF)
    assert [found.mean - half_width(found), found.mean + half_width(found)] == pytest.approx([1477.673, 1577.327], abs=1e-3)
    naive = naive_half_width(DYESTUFF)
    assert [found.mean - naive, found.mean + naive] == pytest.approx([1503.967, 1551.033], abs=1e-3)
    assert half_width(found) / naive == pytest.approx(2.1, abs=0.05)


@pytest.mark.parametrize(("cost", "best", "whole"), [(10, 3.728, 4), (60, 9.131, 10), (600, 28.874, 29)])
def test_v13_what_to_repeat(cost: float, best: float, whole: int) -> None:
    """A batch costs so many samples: √(cost · 2451.25/1764.05), rounded up."""
    (repetitions,) = best_repetitions(levels(DYESTUFF).t2, (1, cost))
    assert repetitions == pytest.approx(best, abs=1e-3)
    assert math.ceil(repetitions) == whole


def test_three_levels_by_hand() -> None:
    """2 boots × 2 runs × 2 steps: runs 1, 3 | 5, 7 and 11, 15 | 13, 17 have means 2, 6 | 13, 15, boots 4 | 14.

    S_1² = (2 + 2 + 8 + 8)/4 = 5; S_2² = (8 + 2)/2 = 5; S_3² = 50. T_2² = 5 - 5/2 = 2.5. T_3² = 50 - 5/2 = 47.5: the correction is
    S_2²/r_2, where the paper as printed has T_2²/r_2 and would give 48.75.
    """
    found = levels(np.array([[[1, 3], [5, 7]], [[11, 15], [13, 17]]]))
    assert found.repetitions == (2, 2, 2)
    assert found.s2 == pytest.approx((5, 5, 50))
    assert found.t2 == pytest.approx((5, 2.5, 47.5))
    assert best_repetitions(found.t2, (1, 8, 19)) == pytest.approx([math.sqrt(8 * 5 / 2.5), math.sqrt(19 / 8 * 2.5 / 47.5)])


def test_what_a_level_adds_is_never_below_nothing() -> None:
    """Cells whose means agree better than their steps allow: T_2² = 0 - 2/2 is cut to 0, and more steps are all that helps."""
    found = levels(np.array([[1.0, 3.0], [3.0, 1.0]]))
    assert found.t2 == (2, 0)
    assert icc(found) == 0
    assert best_repetitions(found.t2, (1, 10)) == [math.inf]


def test_constant_values_share_nothing() -> None:
    """A clock too coarse for the steps: no variance to divide, no F, and a ratio that is exact."""
    found = levels(np.ones((3, 4)))
    assert icc(found) == 0
    assert between_f(found) is None
    assert values_of(ratio_interval(found, levels(np.full((3, 4), 1.1)))) == pytest.approx([1.1, 1.1, 1.1])


@pytest.mark.parametrize(
    ("correlation", "rate"), [(0.0005, 0.138), (0.001, 0.215), (0.005, 0.501), (0.01, 0.624), (0.05, 0.822), (0, 0.05)]
)
def test_how_often_steps_taken_for_replicates_cry_wolf(correlation: float, rate: float) -> None:
    """1,500 steps: 2Φ(-1.96/√(1 + 1499·ICC)); with an ICC of a hundredth, 62 times in 100."""
    assert naive_alarms(1500, correlation) == pytest.approx(rate, abs=5e-4)
    assert design_effect(1500, correlation) == 1 + 1499 * correlation


def test_the_ratio_of_means_by_hand() -> None:
    """Old 9, 10, 11 and new 10.4, 11, 11.6: g = 4.302653 · 1/√3 = 2.484138, h = .6 g = 1.490483.

    X² - g² = 100 - 6.170939 = 93.829061, Y² - h² = 121 - 2.221538 = 118.778462, product 12100 - 11144.870 = 955.130, root 30.905177:
    (110 ± 30.905177)/93.829061 = .842969 to 1.501722 around 1.1.
    """
    found = ratio_interval(levels(np.array([9.0, 10, 11])), levels(np.array([10.4, 11, 11.6])))
    assert values_of(found) == pytest.approx([1.1, 0.842969, 1.501722], abs=1e-5)


def test_a_mean_lost_in_its_noise_has_no_ratio() -> None:
    """1 and 9: mean 5, half-width 12.7 · 4 = 50.8."""
    assert ratio_interval(levels(np.array([1.0, 9.0])), levels(np.array([5.0, 5.1]))) is None


def test_the_ratio_covers_as_often_as_it_says() -> None:
    """2,000 pairs of arms of 6 runs, true ratio 1.1: Fieller's interval with separate t quantiles covers at least 95 % of the time."""
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(2000):
        found = ratio_interval(levels(rng.normal(10, 0.3, 6)), levels(rng.normal(11, 0.3, 6)))
        covered += found is not None and found.low <= 1.1 <= found.high
    assert covered >= scipy.stats.binom.ppf(0.005, 2000, 0.95)


@given(arrays(float, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6), elements=st.integers(1, 2000).map(float)))
def test_f_is_that_of_scipys_one_way_anova(values: np.ndarray) -> None:
    assume(values.var(axis=1).sum() > 0)
    expected = scipy.stats.f_oneway(*values)
    assert between_f(levels(values)) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-6, abs=1e-9)
