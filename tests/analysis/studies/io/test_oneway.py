"""Variance over epochs and on repeated runs: scipy's F, the arithmetic of pairs, and refusals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.studies.io.dlio_study import RunError, mean_over_runs, on_run_error, over_epochs, run_error

VALUES = st.lists(st.floats(0, 100), min_size=2, max_size=8)


@given(st.lists(VALUES, min_size=2, max_size=5))
def test_over_epochs_it_is_scipys_f(groups: list[list[float]]) -> None:
    found = over_epochs({str(at): values for at, values in enumerate(groups)})
    if found is None:
        assert sum(len(set(values)) > 1 for values in groups) == 0 or min(max(v) - min(v) for v in groups) < 1e-6
        return
    theirs = stats.f_oneway(*groups)
    if theirs.statistic > 1e-6 and math.isfinite(theirs.statistic):
        assert found.f == pytest.approx(theirs.statistic, rel=1e-6, abs=1e-6)
        assert found.p == pytest.approx(theirs.pvalue, rel=1e-4, abs=1e-9)
    assert found.eta2 is not None
    assert -1e-9 <= found.eta2 <= 1 + 1e-9


def test_eta_squared_by_hand() -> None:
    """1, 3 and 5, 7: means 2 and 6 around 4 are 16 of 20 between, 4 within; F = 16 / (4 / 2) = 8."""
    found = over_epochs({"low": [1, 3], "high": [5, 7]})
    assert found is not None
    assert (found.f, found.eta2) == pytest.approx((8, 0.8))
    assert (found.df_between, found.df_error) == (1, 2)


def test_epochs_at_the_start_can_be_left_out() -> None:
    assert over_epochs({"low": [99, 1, 3], "high": [0, 5, 7]}, skip=1) == over_epochs({"low": [1, 3], "high": [5, 7]})


@pytest.mark.parametrize("levels", [{}, {"one": [1.0, 2.0]}, {"a": [1.0], "b": [2.0]}, {"a": [1.0, 1.0], "b": [2.0, 2.0]}])
def test_what_gives_no_f(levels: dict[str, list[float]]) -> None:
    """One level, one epoch each, or epochs without any scatter."""
    assert over_epochs(levels) is None


def test_pairs_scatter_by_the_root_of_half_their_mean_squared_difference() -> None:
    """Differences 1 and 3: root of (1 + 9) / 2 / 2 = 1.581 with one degree of freedom each."""
    error = run_error({"one": [10.0, 11.0], "two": [20.0, 23.0], "alone": [5.0]})
    assert error is not None
    assert error.sd == pytest.approx(math.sqrt(2.5))
    assert (error.df, error.settings) == (2, 2)


def test_without_a_repeat_there_is_no_run_error() -> None:
    assert run_error({"one": [10.0], "two": [20.0]}) is None


def test_f_on_repeated_runs() -> None:
    """Means 2 and 6 of one run each: 8 between them over 2² of run error = 2, with the run error's degrees of freedom.

    A mean of two runs counts twice: 2 and 6 around 10 / 3.
    """
    found = on_run_error([[2.0], [6.0]], RunError(2.0, 5, 5))
    assert found is not None
    assert found.f == pytest.approx(2)
    assert (found.df_between, found.df_error) == (1, 5)
    assert found.p == pytest.approx(float(stats.f.sf(2, 1, 5)))
    several = on_run_error([[1.0, 3.0], [6.0]], RunError(2.0, 5, 5))
    assert several is not None
    assert several.f == pytest.approx((2 * (2 - 10 / 3) ** 2 + (6 - 10 / 3) ** 2) / 4)
    assert on_run_error([[2.0]], RunError(2.0, 5, 5)) is None
    assert on_run_error([[2.0], [6.0]], RunError(0.0, 5, 5)) is None


def test_the_interval_of_a_mean_over_runs_is_students() -> None:
    """Three runs, 1, 2 and 3: 2 +- 4.303 x 1 / sqrt(3). One run has no interval."""
    over, sd = mean_over_runs([1.0, 2.0, 3.0])
    assert over is not None
    assert sd == pytest.approx(1)
    assert over.low == pytest.approx(2 - 4.3027 / math.sqrt(3), abs=1e-4)
    alone, sd = mean_over_runs([5.0])
    assert alone is not None
    assert (alone.value, alone.low, sd) == (5.0, None, None)
