"""From steps to one number a cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics import disagreements, metrics_of, quantile
from analysis.terms import Steps


def steps(wall_s: list[float], warmup: int = 0, tokens: tuple[int, ...] | None = None) -> Steps:
    return Steps(tuple(wall_s), (8,) * len(wall_s), tokens, tuple(2 * value for value in wall_s), warmup)


def test_throughput_is_the_sum_of_samples_over_the_sum_of_time() -> None:
    """Two steps of 8 samples in 0.1 s and 0.3 s: 16 / 0.4 = 40 a second. The mean of the rates (80 + 26.7) / 2 = 53.3 would flatter."""
    assert metrics_of(steps([0.1, 0.3]))["throughput_samples_per_s"] == pytest.approx(40)


def test_warm_up_counts_nowhere() -> None:
    cold, warm = metrics_of(steps([9.0, 0.1, 0.2, 0.3], warmup=1)), metrics_of(steps([0.1, 0.2, 0.3]))
    assert cold == warm


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=50), st.floats(0, 1))
def test_percentiles_are_numpys(wall_s: list[float], q: float) -> None:
    assert quantile(wall_s, q) == pytest.approx(np.quantile(wall_s, q))


def test_work_without_tokens_has_no_token_throughput() -> None:
    """It is absent and not 0: nothing was measured."""
    assert "throughput_tokens_per_s" not in metrics_of(steps([0.1, 0.2], tokens=(0, 0)))
    assert metrics_of(steps([0.1, 0.3], tokens=(10, 30)))["throughput_tokens_per_s"] == pytest.approx(100)


@pytest.mark.parametrize("wall_s", [1e308, 1e-320])
def test_times_whose_sums_are_no_numbers_have_no_metrics(wall_s: float) -> None:
    with pytest.raises(ArithmeticError):
        metrics_of(steps([wall_s] * 3))


def test_a_file_that_contradicts_its_own_steps_is_told_so() -> None:
    """Rounding is forgiven (1 in 10,000), another formula is not."""
    computed = {"step_time_p10_s": 0.1}
    assert disagreements({"step_time_p10_s": 0.100001, "unknown": 7}, computed) == []
    (line,) = disagreements({"step_time_p10_s": 0.11}, computed)
    assert "0.11" in line
    assert "0.1;" in line
