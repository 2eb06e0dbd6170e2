"""Small figures that any text on experiments must come to; the arithmetic is in each test."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.stats.effect import detectable_errors
from analysis.stats.levels import levels, ratio_interval
from analysis.stats.ranks import mann_whitney, sign_flip_p
from analysis.stats.within import effective_size


@pytest.mark.parametrize(("each", "least"), [(3, 0.10), (4, 0.0286), (5, 0.0079)])
def test_two_groups_cannot_say_more_than_their_permutations(each: int, least: float) -> None:
    """2 of C(2n, n) orders are as far apart: 2/20, 2/70, 2/252."""
    assert mann_whitney(range(each), range(10, 10 + each)).p == pytest.approx(2 / math.comb(2 * each, each))
    assert least == pytest.approx(2 / math.comb(2 * each, each), abs=5e-5)


@pytest.mark.parametrize(("blocks", "least"), [(5, 0.0625), (6, 0.03125)])
def test_blocks_cannot_say_more_than_their_signs(blocks: int, least: float) -> None:
    """2 of 2^b signs are as one-sided."""
    assert sign_flip_p([1 + 0.1 * at for at in range(blocks)]) == pytest.approx(least)


@pytest.mark.parametrize(("each", "errors"), [(3, 3.071), (5, 2.024), (10, 1.325), (20, 0.909)])
def test_what_two_groups_find_with_power_of_80_percent(each: int, errors: float) -> None:
    """In standard deviations: √(2/n) of them are a standard error, with 2n - 2 degrees of freedom."""
    assert detectable_errors(2 * each - 2) * math.sqrt(2 / each) == pytest.approx(errors, abs=5e-4)


@pytest.mark.parametrize(("effect", "each"), [(0.5, 63.77), (0.8, 25.52), (1.0, 16.71)])
def test_how_large_two_groups_must_be(effect: float, each: float) -> None:
    """The same, read the other way: so many in each find that effect."""
    assert detectable_errors(2 * each - 2) * math.sqrt(2 / each) == pytest.approx(effect, abs=2e-4)


def test_a_ratio_of_means_has_fiellers_interval() -> None:
    old, new = [10.1, 9.9, 10.3, 10.0, 9.8, 10.2], [10.6, 10.4, 10.9, 10.5, 10.3, 10.8]
    found = ratio_interval(levels(np.array(old)), levels(np.array(new)))
    assert found is not None
    assert (found.ratio, found.low, found.high) == pytest.approx((1.0530680, 1.0217063, 1.0852338), abs=1e-7)


def test_a_thousand_steps_that_hang_together_by_half_are_worth_a_third() -> None:
    """AR(1) with φ = 0.5: n(1 - φ)/(1 + φ) = 333.3; estimated from forty series, whose mean is off by a few."""
    rng = np.random.default_rng(1)
    worth = []
    for _ in range(40):
        noise, values = rng.normal(size=1000), np.zeros(1000)
        for at in range(1, 1000):
            values[at] = 0.5 * values[at - 1] + noise[at]
        worth.append(effective_size(values))
    assert np.mean(worth) == pytest.approx(1000 / 3, rel=0.05)
