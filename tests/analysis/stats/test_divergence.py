"""What other tools judge a change by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from analysis.stats.changepoint import energy_divergence, student

# A toy series published with jhunter, a port of Hunter (Apache Otava): one change, at index 10.
TOY = [1.02, 0.95, 0.99, 1.00, 1.12, 1.00, 1.01, 0.98, 1.01, 0.96, 0.50, 0.51, 0.48, 0.48, 0.55, 0.50, 0.49, 0.51, 0.50, 0.49]
SAMPLES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


def pair_by_pair(before: list[float], after: list[float]) -> float:
    """Matteson and James (2014), equation 5, as it is printed."""
    m, n = len(before), len(after)
    between = 2 / (m * n) * sum(abs(x - y) for x in before for y in after)
    within = [2 / (len(one) * (len(one) - 1)) * sum(abs(a - b) for i, a in enumerate(one) for b in one[i + 1 :]) for one in (before, after)]
    return m * n / (m + n) * (between - sum(within))


def test_energy_of_the_published_toy_series() -> None:
    assert energy_divergence(np.array(TOY[:10]), np.array(TOY[10:])) == pytest.approx(4.682222, rel=1e-6)


def test_student_of_the_published_toy_series() -> None:
    found = student(np.array(TOY[:10]), np.array(TOY[10:]))
    assert found is not None
    assert found[0] == pytest.approx(-31.3763, rel=1e-6)
    assert found[1] == pytest.approx(3.6e-17, rel=0.01)


@given(SAMPLES, SAMPLES)
def test_energy_by_ranks_is_energy_pair_by_pair(before: list[float], after: list[float]) -> None:
    assert energy_divergence(np.array(before), np.array(after)) == pytest.approx(pair_by_pair(before, after), rel=1e-9, abs=1e-5)


def test_student_is_scipys() -> None:
    rng = np.random.default_rng(1)
    before, after = rng.normal(size=7), rng.normal(size=5) + 1
    expected = ttest_ind(after, before)
    assert student(before, after) == pytest.approx((expected.statistic, expected.pvalue))


def test_without_any_spread_there_is_no_t() -> None:
    assert student(np.array([1.0, 1.0]), np.array([2.0, 2.0, 2.0])) is None
