"""The measurement of false alarms and power: its noise is what it says, its rates are counted right."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.stats.alarm_rates import Shape, alarm_rate, exact_rate, noise, shaped, watched_rates


@pytest.mark.parametrize(("kind", "phi"), [("white", 0.0), ("AR(1) 0.3", 0.3), ("AR(1) 0.5", 0.5), ("AR(1) 0.7", 0.7)])
def test_noise_has_unit_variance_and_its_memory_from_the_first_point_on(kind: str, phi: float) -> None:
    series = noise(kind, 10, 20_000, np.random.default_rng(1))
    assert series.std(axis=0) == pytest.approx(np.ones(10), abs=0.03)
    neighbours = [np.corrcoef(series[:, at], series[:, at + 1])[0, 1] for at in range(9)]
    assert neighbours == pytest.approx([phi] * 9, abs=0.03)


def test_an_outlier_is_one_run_that_takes_ten_times_as_long() -> None:
    """With noise of 2 %: 9 / 0.02 = 450 sd more."""
    series = noise("one 10x outlier", 20, 50, np.random.default_rng(1))
    assert (series > 400).sum(axis=1).tolist() == [1] * 50


def test_a_shape_has_its_levels() -> None:
    shape = Shape("", (0, 100, 50), (1 / 4, 1 / 2))
    series = shaped(shape, 40, 2, np.random.default_rng(1)).mean(axis=0)
    assert shape.begins(40) == [10, 20]
    assert np.round([series[:10].mean(), series[10:20].mean(), series[20:].mean()], -1).tolist() == [0, 100, 50]


def test_rates_are_shares_of_series() -> None:
    """Of four made-up answers three are alarms, one of which has everything within 3 points and nothing else."""
    answers = iter([[], [12, 20], [14, 20], [10]] * 2)
    series = np.zeros((4, 30))
    assert alarm_rate(lambda _: next(answers), series) == 0.75
    assert exact_rate(lambda _: next(answers), series, [10, 20]) == 0.25


def test_a_watched_series_alarms_while_its_change_is_recent() -> None:
    """A made-up answer: one change at 100, seen from night 105 to 120 of the nights 30 to 130, when it is among the last 20 runs."""
    series = np.zeros((2, 130))
    series[0, 104] = 1  # the one series in which anything is seen
    ever, nights = watched_rates(lambda one: [100] if one[104:].any() else [], series)
    assert ever == 0.5
    assert nights == pytest.approx(16 / (2 * 101))


def test_outliers_and_other_troubles_are_as_large_and_as_many_as_they_say() -> None:
    rng = np.random.default_rng(2)
    assert (noise("5 % 10x outliers", 100, 500, rng) > 400).mean() == pytest.approx(0.05, abs=0.005)
    assert noise("last fifth 3x as noisy", 50, 2000, rng).std(axis=0) == pytest.approx([1.0] * 40 + [3.0] * 10, rel=0.1)
    heavy = noise("t3, AR(1) 0.5", 50, 4000, rng)
    assert np.corrcoef(heavy[:, 20], heavy[:, 21])[0, 1] == pytest.approx(0.5, abs=0.1)
    assert (np.abs(heavy) > 6).mean() > 0.001  # 1 in a billion of white noise
