"""One estimate: a mean or a change, its interval and p against scipy's, or a reason for none."""

from __future__ import annotations

import math

import pytest
import scipy.stats

from analysis.stats.estimate import Mean, change_of, mean_of
from analysis.terms import NotComparable

CHANGES = [0.021, 0.034, 0.018, 0.027, 0.040]


def test_a_change_is_a_one_sample_t() -> None:
    found = change_of(CHANGES, log=True)
    low, high = scipy.stats.t.interval(0.95, 4, 0.028, scipy.stats.sem(CHANGES))
    assert (found.n, found.missing) == (5, None)
    assert (found.value, found.low, found.high) == pytest.approx(
        (math.expm1(0.028), math.expm1(low), math.expm1(high))
    )
    assert found.p == pytest.approx(scipy.stats.ttest_1samp(CHANGES, 0).pvalue)


def test_what_is_no_measurement_is_not_compared() -> None:
    with pytest.raises(NotComparable, match="exactly the same change"):
        change_of([0.1, 0.1, 0.1], log=False)


def test_a_mean_stays_as_measured_and_its_interval_in_range() -> None:
    """Shares of 0.9 and 1.0: 0.95 ± 12.7 · 0.05."""
    assert mean_of([]) is None
    assert mean_of([0.9]) == Mean(1, value=0.9)
    both = mean_of([0.9, 1.0], within=(0.0, 1.0))
    assert both is not None
    assert (both.value, both.low, both.high) == pytest.approx(
        (0.95, 0.95 - 12.7062 * 0.05, 1.0), rel=1e-4
    )
