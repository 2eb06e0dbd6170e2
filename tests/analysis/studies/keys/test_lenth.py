"""Designs of which nothing was run twice."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from analysis.studies.keys import lenth


@pytest.mark.parametrize(
    ("contrasts", "alone", "together"),
    [(7, 2.297, 4.867), (15, 2.156, 4.240)],
    ids=["8 runs", "16 runs"],
)
def test_margins_are_those_of_the_tables(contrasts: int, alone: float, together: float) -> None:
    """Ye & Hamada, J. Quality Technology 32 (2000): critical values of Lenth's ratio at 5 %, individual and experimentwise."""
    found = lenth.null(np.eye(contrasts))
    assert (found.alone, found.together) == pytest.approx((alone, together), rel=0.01)


def test_the_pseudo_standard_error_by_hand() -> None:
    """|c| = 1, 2, 3, 4, 5, 12, 40: median 4, s0 = 6; below 15 lie all but 40, with median 3.5, so PSE = 5.25."""
    assert float(lenth.pse(np.array([1, -2, 3, -4, 5, -12, 40.0]))) == pytest.approx(5.25)


@pytest.mark.parametrize("contrasts", [7, 15])
def test_of_designs_without_any_effect_one_in_twenty_has_one_that_stands_out(contrasts: int) -> None:
    """The simultaneous margin, on draws that it was not made from: 2,000 designs, exact 99 % band about 5 %."""
    together = lenth.null(np.eye(contrasts)).together
    drawn = np.random.default_rng(7).normal(0, 3, (2000, contrasts))
    alarms = int((np.abs(drawn).max(1) > together * lenth.pse(drawn)).sum())
    low, high = scipy.stats.binom.interval(0.99, 2000, 0.05)
    assert low <= alarms <= high


def test_margins_of_estimates_that_hang_together_are_their_own() -> None:
    """Seven contrasts with correlation 0.5 to each other (a design that lost cells): the orthogonal margin would be wrong, theirs holds."""
    correlation = np.full((7, 7), 0.5) + 0.5 * np.eye(7)
    together = lenth.null(correlation).together
    drawn = np.random.default_rng(8).multivariate_normal(np.zeros(7), correlation, 2000)
    low, high = scipy.stats.binom.interval(0.99, 2000, 0.05)
    assert low <= int((np.abs(drawn).max(1) > together * lenth.pse(drawn)).sum()) <= high


def test_chances_are_never_nought() -> None:
    """However large an effect: no simulation of 100,000 can say more than 1 in 100,001."""
    alone, together = lenth.null(np.eye(7)).chances(1e9)
    assert 0 < alone < together == pytest.approx(1 / 100_001)
