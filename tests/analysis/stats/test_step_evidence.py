"""Evidence for steps: the fast arithmetic is the textbook's, written out with matrices."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtr

from analysis.stats.changepoint import PHI, SHORTEST_LEVEL, step_evidence
from analysis.stats.in_time import (
    CAUTION,
    CLIP,
    DRIFTS,
    FORGETTING,
    MEMORIES,
    clipped,
    odd_runs,
    step_in_time,
)
from control.t_test import t_tail


def log_likelihood(series: np.ndarray, phi: float, regressors: np.ndarray) -> float:
    """Likelihood by generalised least squares: AR(1) noise and regressors integrated out.

    |S|^-1/2 · |X'S^-1 X|^-1/2 · RSS^-(n-k)/2, with S the correlation matrix phi^|i-j| (Harville
    1974).
    """
    n, k = regressors.shape
    correlation = (phi or 1e-300) ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    inverse = np.linalg.inv(correlation)
    information = regressors.T @ inverse @ regressors
    rest = series - regressors @ np.linalg.solve(information, regressors.T @ inverse @ series)
    return float(
        -0.5 * np.linalg.slogdet(correlation)[1]
        - 0.5 * np.linalg.slogdet(information)[1]
        - (n - k) / 2 * np.log(rest @ inverse @ rest)
    )


def by_matrices(series: np.ndarray) -> np.ndarray:
    """Likelihood ratio of a step for each phi and place, up to the prior of the place."""
    n = len(series)
    one = np.ones((n, 1))
    rows = []
    for phi in PHI:
        flat = log_likelihood(series, phi, one)
        inverse = np.linalg.inv(
            (phi or 1e-300) ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        )
        rest = series - (one.T @ inverse @ series / (one.T @ inverse @ one)).item()
        spread = rest @ inverse @ rest
        row = []
        for place in range(SHORTEST_LEVEL, n - SHORTEST_LEVEL + 1):
            step = (np.arange(n) >= place).astype(float)[:, None]
            both = np.hstack([one, step])
            own = (
                np.linalg.slogdet(both.T @ inverse @ both)[1]
                - np.linalg.slogdet(one.T @ inverse @ one)[1]
            )
            row.append(log_likelihood(series, phi, both) + 0.5 * own - 0.5 * np.log(spread) - flat)
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("n", [12, 31])
def test_the_bayes_factor_of_a_step_is_generalised_least_squares(n: int) -> None:
    """Weights: phi even, with a step exp(-(1+2s)·phi); places (4t(n-t)/n²)^(0.5+1.75s)."""
    series = np.random.default_rng(n).normal(size=n) + np.where(np.arange(n) < n // 3, 0, 1.5)
    short = min(1, 30 / n)
    places = np.arange(SHORTEST_LEVEL, n - SHORTEST_LEVEL + 1)
    calm = np.exp(-(1 + 2 * short) * PHI)
    weights = np.outer(
        calm / calm.sum(), (4 * places * (n - places) / n**2) ** (0.5 + 1.75 * short) / len(places)
    )
    flat = np.array([log_likelihood(series, phi, np.ones((n, 1))) for phi in PHI])
    joint = np.exp(by_matrices(series) + flat[:, None] - flat.max()) * weights
    expected = np.log(joint.sum() / np.exp(flat - flat.max()).mean())
    found = step_evidence(series, most=1)
    assert found.log_bayes_factor == pytest.approx(expected, rel=1e-9)
    assert found.splits == (places[joint.sum(axis=0).argmax()],)
    at = joint.sum(axis=0).argmax()
    assert found.memory == pytest.approx(joint[:, at] / joint[:, at].sum())


def test_an_up_and_a_down_that_cancel_out_are_two_steps() -> None:
    """A single step is not worth mentioning: ln BF below 1, where ln 10 = 2.3."""
    series = np.random.default_rng(2).normal(size=90)
    series[30:60] += 3
    assert step_evidence(series, most=1).log_bayes_factor < 1
    found = step_evidence(series)
    assert found.log_bayes_factor > 5
    assert found.splits == (30, 60)


DAYS = np.array([0, 1, 2, 3, 4, 7, 8, 9, 10, 13.0])  # no run at weekends
TURNS = [0, 0, 0, 0, 0, 0, 1, 0, 1, 1]


def step_by_matrices(
    series: np.ndarray, turns: list[int], times: np.ndarray
) -> tuple[float, float]:
    """GLS with explicit covariance, drift as a random effect, weighted by restricted likelihood.

    Source: Harville 1974.
    """
    unit, runs = np.median(np.diff(times)), len(times)
    known = np.column_stack([np.ones(runs), turns])
    line = (times - times.mean()) / np.ptp(times)
    found = []
    for memory in MEMORIES:
        for size, weight in DRIFTS:
            alike = memory ** (np.abs(np.subtract.outer(times, times)) / unit) + size**2 * np.outer(
                line, line
            )
            inner = np.linalg.inv(known.T @ np.linalg.inv(alike) @ known)
            beta = inner @ known.T @ np.linalg.inv(alike) @ series
            off = series - known @ beta
            left = off @ np.linalg.inv(alike) @ off
            likelihood = (
                np.linalg.det(inner) ** 0.5
                * np.linalg.det(alike) ** -0.5
                * left ** (-(runs - 2) / 2)
            )
            found.append(
                (
                    weight * np.exp(-FORGETTING * memory) * likelihood,
                    beta[1],
                    left / (runs - 3) * inner[1, 1],
                )
            )
    weights, steps, variances = np.array(found).T
    weights /= weights.sum()
    step = weights @ steps
    return float(step), float(np.sqrt(weights @ (variances + (steps - step) ** 2)))


@pytest.mark.parametrize("seed", range(5))
def test_the_step_is_that_of_the_textbook(seed: int) -> None:
    series = np.random.default_rng(seed).normal(0, 1, 10)
    tame, off = clipped(series, TURNS, CLIP)
    odd = np.count_nonzero(off)
    step, error, df = step_in_time(series, TURNS, DAYS)
    by_hand, error_by_hand = step_by_matrices(tame, TURNS, DAYS)
    assert (float(step), float(error)) == pytest.approx(
        (by_hand, error_by_hand * CAUTION * 10 / (10 - odd)), rel=1e-6
    )
    assert df == 7 - odd


def test_the_unit_of_time_has_no_influence_and_drift_hardly_any() -> None:
    series = np.random.default_rng(1).normal(0, 1, 10)
    first, error, _ = step_in_time(series, TURNS, DAYS)
    assert float(step_in_time(series, TURNS, 86400 * DAYS + 1.7e9)[0]) == pytest.approx(
        float(first), rel=1e-6
    )
    assert abs(float(step_in_time(series + 0.7 * DAYS, TURNS, DAYS)[0] - first)) < 0.25 * float(
        error
    )


NIGHTS = [0] * 14 + [1]


def night_by_night(*changes: tuple[int, float]) -> np.ndarray:
    """Fourteen accepted nights that scatter by 0.7 %, and a candidate; changes are logarithms."""
    series = np.random.default_rng(5).normal(0, 0.007, 15)
    for place, change in changes:
        series[place] += change
    return series


def p_of(series: np.ndarray, arms: list[int]) -> float:
    step, error, df = step_in_time(series, arms, range(len(arms)))
    return 2 * t_tail(abs(float(step / error)), float(df))


@pytest.mark.parametrize("odd", [(4,), (0,), (13,), (4, 9), (3, 4)])
@pytest.mark.parametrize("size", [-0.4, 0.4, -3.0])
def test_odd_accepted_nights_do_not_hide_a_slower_candidate(
    odd: tuple[int, ...], size: float
) -> None:
    """The candidate is 8 % slower; any one or two nights were far off, either way.

    They are named with their distance.
    """
    quiet = night_by_night((14, -0.08))
    series = night_by_night((14, -0.08), *((place, size) for place in odd))
    assert p_of(quiet, NIGHTS) < 0.001
    assert p_of(series, NIGHTS) < 0.01
    assert float(step_in_time(series, NIGHTS, range(15))[0]) == pytest.approx(-0.08, abs=0.025)
    assert [place for place, _ in odd_runs(series, NIGHTS)] == [*odd]
    assert [off for _, off in odd_runs(series, NIGHTS)] == pytest.approx(
        [size] * len(odd), abs=0.025
    )
    assert odd_runs(quiet, NIGHTS) == []


def test_three_nights_in_a_row_are_a_level_and_no_odd_runs() -> None:
    """A candidate as slow as the last accepted nights is not called slower than them."""
    for lasting in (2, 3, 5):
        series = night_by_night(*((place, -0.08) for place in range(14 - lasting, 15)))
        assert odd_runs(series, NIGHTS) == []
        assert p_of(series, NIGHTS) > 0.05


def test_the_longer_the_time_between_the_arms_the_less_is_known() -> None:
    """Drift may lead anywhere in a gap, so the error grows with time, unlike Welch's."""
    series, turns = np.random.default_rng(2).normal(0, 1, 16), [0] * 8 + [1] * 8
    errors = [
        float(step_in_time(series, turns, np.r_[np.arange(8), np.arange(8) + 8 + gap])[1])
        for gap in (0, 20, 200)
    ]
    assert errors == sorted(errors)
    assert errors[2] > 10 * errors[0]


DOCS = Path(__file__).parents[3] / "docs"
RATE_METRIC = "throughput_samples_per_s"


def stretches(runs: int) -> np.ndarray:
    """Log gains of every stretch of equal runs on which constants were chosen."""
    saved = map(json.loads, (DOCS / "equal_runs.jsonl").read_text(encoding="utf-8").splitlines())
    series = [
        np.log(one["values"]) * (1 if one["metric"] == RATE_METRIC else -1)
        for one in saved
        if one["chosen_on"] and one["metric"] in {RATE_METRIC, "step_time_p10_s"}
    ]
    long = [one for one in series if len(one) >= runs]
    return np.concatenate([np.lib.stride_tricks.sliding_window_view(one, runs) for one in long])


def share_called(old: int, new: int, order: str, slower: float = 0.0) -> float:
    """Share of stretches, in %, in which the last or every other run is called different."""
    runs, arms = stretches(old + new), np.zeros(old + new, int)
    turns = np.linspace(0, old + new - 1, new + 2)[1:-1].round().astype(int)
    every_other = slice(1, None, 2) if old == new else turns
    arms[slice(old, None) if order == "old first" else every_other] = 1
    step, error, df = step_in_time(runs + np.log1p(-slower) * arms, arms.tolist(), range(len(arms)))
    return float(100 * np.mean(2 * stdtr(df, -np.abs(step) / error) < 0.05))


@pytest.mark.parametrize("order", ["old first", "in turn"])
@pytest.mark.parametrize(("old", "new"), [(8, 8), (4, 4), (8, 1), (15, 1)])
def test_equal_runs_are_called_different_once_in_twenty(old: int, new: int, order: str) -> None:
    """The figures of docs/verdicts.md, on series of a real machine."""
    found = [share_called(old, new, order, slower) for slower in (0, 0.1)]
    figures = " | ".join(f"{share:.1f}" for share in found)
    row = f"| {old}+{new} | {order} | {len(stretches(old + new))} | {figures} |"
    assert row in (DOCS / "verdicts.md").read_text(encoding="utf-8")
    assert found[0] <= 5


@pytest.mark.parametrize("new", [3, 4, 5])
def test_few_runs_after_many_differ_once_in_twenty(new: int) -> None:
    assert share_called(15, new, "old first") <= 5.25
