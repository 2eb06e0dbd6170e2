"""Two arms as one series in time: the step beside a line and AR(1) noise, against the textbook's dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.stats import many
from analysis.stats.effect import two_sample_effect
from analysis.stats.in_time import step_in_time
from analysis.stats.step_evidence import PHI
from analysis.terms import Metric

RATE = Metric("throughput_samples_per_s", "higher")
DAYS = np.array([0, 1, 2, 3, 4, 7, 8, 9, 10, 13.0])  # no run at weekends
TURNS = [0, 0, 0, 0, 0, 0, 1, 0, 1, 1]


def by_matrices(series: np.ndarray, turns: list[int], times: np.ndarray) -> tuple[float, float]:
    """Generalised least squares with the covariance written out, weighted by the restricted likelihood (Harville 1974)."""
    unit = np.median(np.diff(times))
    known = np.column_stack([np.ones(len(times)), turns, times])
    df = len(times) - 3
    found = []
    for phi in PHI:
        alike = phi ** (np.abs(np.subtract.outer(times, times)) / unit)
        inner = np.linalg.inv(known.T @ np.linalg.inv(alike) @ known)
        beta = inner @ known.T @ np.linalg.inv(alike) @ series
        off = series - known @ beta
        left = off @ np.linalg.inv(alike) @ off
        likelihood = np.linalg.det(inner) ** 0.5 * np.linalg.det(alike) ** -0.5 * left ** (-df / 2)
        found.append((likelihood, beta[1], left / df * inner[1, 1]))
    weights, steps, variances = np.array(found).T
    weights /= weights.sum()
    step = weights @ steps
    return float(step), float(np.sqrt(weights @ (variances + (steps - step) ** 2)))


@pytest.mark.parametrize("seed", range(5))
def test_the_step_is_that_of_the_textbook(seed: int) -> None:
    series = np.random.default_rng(seed).normal(0, 1, 10)
    step, error, df = step_in_time(series, TURNS, DAYS)
    assert (float(step), float(error)) == pytest.approx(by_matrices(series, TURNS, DAYS), rel=1e-6)
    assert df == 7


def test_neither_the_unit_of_time_nor_a_steady_drift_makes_a_difference() -> None:
    series = np.random.default_rng(1).normal(0, 1, 10)
    first = step_in_time(series, TURNS, DAYS)
    assert step_in_time(series + 0.7 * DAYS, TURNS, 86400 * DAYS + 1.7e9) == pytest.approx(first, rel=1e-6)


def test_the_longer_the_time_between_the_arms_the_less_is_known() -> None:
    """A line may go anywhere meanwhile: the error grows with the time, while Welch's stays what it was."""
    series, turns = np.random.default_rng(2).normal(0, 1, 16), [0] * 8 + [1] * 8
    errors = [float(step_in_time(series, turns, np.r_[np.arange(8), np.arange(8) + 8 + gap])[1]) for gap in (0, 20, 200)]
    assert errors == sorted(errors)
    assert errors[2] > 10 * errors[0]


@pytest.mark.parametrize(("n", "m"), [(8, 8), (3, 3), (8, 1), (3, 2), (15, 3)])
def test_many_at_once_are_what_each_is_alone(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    base, candidate = rng.normal(0, 0.1, (20, n)), rng.normal(0.1, 0.1, (20, m))
    found = many.in_time_effects(base, candidate, 0.03)
    times = tuple(range(n)), tuple(range(n, n + m))
    for at in range(20):
        one = two_sample_effect(RATE, np.exp(base[at]).tolist(), np.exp(candidate[at]).tolist(), 0.03, times)
        assert (one.p, one.p_equivalent) == pytest.approx((found.p[at], found.p_equivalent[at]))
        assert (np.log1p(one.gain), np.log1p(one.low90)) == pytest.approx((found.log_gain[at], found.log_low90[at]))
        assert one.low <= one.low90 <= one.gain <= one.high90 <= one.high


@pytest.mark.parametrize(("n", "m", "spreads"), [(8, 8, 4), (15, 1, 4), (8, 1, 5), (4, 4, 6)])
def test_nine_in_ten_differences_of_a_few_spreads_are_found(n: int, m: int, spreads: float) -> None:
    """The power that docs/between_runs.md tells, at a correlation of .35 between neighbours; ± 3 % of 1,000 draws."""
    noise = remembering(n + m)
    found = many.in_time_effects(noise[:, :n], noise[:, n:] + spreads, 0.03).p < 0.05
    assert found.mean() > 0.87


def test_runs_that_take_turns_find_less_than_half_of_that() -> None:
    noise = remembering(16) + np.tile([0, 1.6], 8)
    times = tuple(range(0, 16, 2)), tuple(range(1, 16, 2))
    found = [two_sample_effect(RATE, np.exp(one[::2]).tolist(), np.exp(one[1::2]).tolist(), 0.03, times).p < 0.05 for one in noise]
    assert np.mean(found) > 0.87


def remembering(runs: int, phi: float = 0.35) -> np.ndarray:
    """Draw noise of spread 1, each of whose values resembles the one before."""
    noise = np.random.default_rng(1).normal(0, 1, (1000, runs))
    for at in range(1, runs):
        noise[:, at] = phi * noise[:, at - 1] + np.sqrt(1 - phi**2) * noise[:, at]
    return noise
