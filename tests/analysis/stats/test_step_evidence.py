"""Evidence for steps: the fast arithmetic is the textbook's, written out with matrices."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.stats.step_evidence import PHI, SHORTEST_EPISODE, SHORTEST_LEVEL, step_evidence


def log_likelihood(series: np.ndarray, phi: float, regressors: np.ndarray) -> float:
    """Generalised least squares: AR(1) noise of unknown size around regressors of unknown size, both integrated out.

    |S|^-1/2 · |X'S^-1 X|^-1/2 · RSS^-(n-k)/2, with S the correlation matrix phi^|i-j| (Harville 1974).
    """
    n, k = regressors.shape
    correlation = (phi or 1e-300) ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    inverse = np.linalg.inv(correlation)
    information = regressors.T @ inverse @ regressors
    rest = series - regressors @ np.linalg.solve(information, regressors.T @ inverse @ series)
    return float(
        -0.5 * np.linalg.slogdet(correlation)[1] - 0.5 * np.linalg.slogdet(information)[1] - (n - k) / 2 * np.log(rest @ inverse @ rest)
    )


def by_matrices(series: np.ndarray) -> np.ndarray:
    """Likelihood of a step against none for each phi and place, the step's own integral left to the prior of its place."""
    n = len(series)
    one = np.ones((n, 1))
    rows = []
    for phi in PHI:
        flat = log_likelihood(series, phi, one)
        inverse = np.linalg.inv((phi or 1e-300) ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))))
        rest = series - (one.T @ inverse @ series / (one.T @ inverse @ one)).item()
        spread = rest @ inverse @ rest
        row = []
        for place in range(SHORTEST_LEVEL, n - SHORTEST_LEVEL + 1):
            step = (np.arange(n) >= place).astype(float)[:, None]
            both = np.hstack([one, step])
            own = np.linalg.slogdet(both.T @ inverse @ both)[1] - np.linalg.slogdet(one.T @ inverse @ one)[1]
            row.append(log_likelihood(series, phi, both) + 0.5 * own - 0.5 * np.log(spread) - flat)
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("n", [12, 31])
def test_the_bayes_factor_of_one_step_is_that_of_generalised_least_squares(n: int) -> None:
    """Weights: phi of no step all alike, of a step by exp(-(1+2s)·phi); places by (4·t·(n-t)/n²)^(0.5+1.75s); s = min(1, 30/n)."""
    series = np.random.default_rng(n).normal(size=n) + np.where(np.arange(n) < n // 3, 0, 1.5)
    short = min(1, 30 / n)
    places = np.arange(SHORTEST_LEVEL, n - SHORTEST_LEVEL + 1)
    calm = np.exp(-(1 + 2 * short) * PHI)
    weights = np.outer(calm / calm.sum(), (4 * places * (n - places) / n**2) ** (0.5 + 1.75 * short) / len(places))
    flat = np.array([log_likelihood(series, phi, np.ones((n, 1))) for phi in PHI])
    joint = np.exp(by_matrices(series) + flat[:, None] - flat.max()) * weights
    expected = np.log(joint.sum() / np.exp(flat - flat.max()).mean())
    found = step_evidence(series, most=1)
    assert found.log_bayes_factor == pytest.approx(expected, rel=1e-9)
    assert found.splits == (places[joint.sum(axis=0).argmax()],)
    at = joint.sum(axis=0).argmax()
    assert found.memory == pytest.approx(joint[:, at] / joint[:, at].sum())


def test_an_up_and_a_down_that_cancel_out_are_two_steps() -> None:
    """No single step explains it: with one alone the evidence is not worth mentioning (a Bayes factor of 10 is ln 10 = 2.3)."""
    series = np.random.default_rng(2).normal(size=90)
    series[30:60] += 3
    assert step_evidence(series, most=1).log_bayes_factor < 1
    found = step_evidence(series)
    assert found.log_bayes_factor > 5
    assert found.splits == (30, 60)


@pytest.mark.parametrize("steps", [1, 2, 4, 9])
def test_a_staircase_is_climbed_step_by_step(steps: int) -> None:
    edges = [20 * at for at in range(1, steps + 1)]
    series = np.random.default_rng(steps).normal(size=20 * (steps + 1)) + 6 * np.searchsorted(
        edges, np.arange(20 * (steps + 1)), side="right"
    )
    assert step_evidence(series).splits == tuple(edges)


def test_steps_stand_apart() -> None:
    """Both edges of an episode of one point less than the shortest are never taken together."""
    series = np.random.default_rng(4).normal(size=60)
    series[30 : 30 + SHORTEST_EPISODE - 1] += 20
    assert step_evidence(series).splits != (30, 30 + SHORTEST_EPISODE - 1)


def test_a_series_too_short_for_a_second_step_is_weighed_for_one() -> None:
    found = step_evidence(np.array([0.0, 0.1, 0.05, 1.0, 1.1, 0.9, 1.05]))
    assert found.splits == (3,)
