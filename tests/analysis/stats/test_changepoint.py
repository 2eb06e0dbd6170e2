"""Change points: found in place and size, and seldom without a change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from analysis.stats.changepoint import (
    SHORTEST,
    change_points,
    energy_divergence,
    odd_end,
)

SEEDS = st.integers(0, 10_000)
SETTLING = 60  # points after which AR(1) noise has forgotten where it began


def at(series: np.ndarray) -> list[int]:
    return [point.index for point in change_points(series).points]


def noise(kind: str, n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Noise series of variance 1; an outlier run takes ten times as long where noise is 2 %."""
    shape = (count, n + SETTLING)
    series = rng.standard_t(3, shape) if kind == "t3" else rng.standard_normal(shape)
    if kind.startswith("AR(1)"):
        phi = float(kind.rsplit(maxsplit=1)[-1])
        for place in range(1, n + SETTLING):
            series[:, place] = phi * series[:, place - 1] + np.sqrt(1 - phi**2) * series[:, place]
    series = series[:, SETTLING:]
    if kind == "one 10x outlier":
        series[np.arange(count), rng.integers(0, n, count)] += 9 / 0.02
    return series


def shaped(
    levels: tuple[float, ...],
    n: int,
    count: int,
    seed: int,
    begins: Sequence[int] | None = None,
    kind: str = "white",
) -> np.ndarray:
    """Noise around levels, in SD of the noise, equally long unless `begins` gives the starts."""
    series = noise(kind, n, count, np.random.default_rng(seed))
    begins = (
        [round(n * part / len(levels)) for part in range(1, len(levels))]
        if begins is None
        else begins
    )
    for level, (begin, end) in zip(levels, pairwise([0, *begins, n]), strict=True):
        series[:, begin:end] += level
    return series


def made(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    series = rng.normal(size=rng.integers(SHORTEST, 120))
    for _ in range(rng.integers(0, 4)):
        series[rng.integers(3, len(series) - 2) :] += rng.normal(0, 5)
    return series


def test_the_published_toy_series_has_the_published_change() -> None:
    """Matteson and James's Q and Student's t, with the first point of the new level as index."""
    (point,) = change_points(TOY).points
    assert point.index == 10
    assert point.energy == pytest.approx(4.682222, rel=1e-6)
    assert point.student_t == pytest.approx(-31.3763, rel=1e-6)
    assert point.df == 18
    assert point.student_p == pytest.approx(3.6e-17, rel=0.01)
    # 1.12 is pulled in.
    assert point.shift == pytest.approx(np.mean(TOY[10:]) - np.mean(TOY[:10]), abs=0.005)
    assert point.low < point.shift < point.high < 0
    assert change_points(TOY).p < 1e-6


def test_a_change_is_moved_where_three_last_points_form_a_level() -> None:
    """Three are a level: the first pass cuts at 8, between its neighbours the change is at 9."""
    series = [
        9.8,
        9.8,
        9.9,
        10.1,
        10.1,
        10.0,
        10.1,
        9.9,
        9.5,
        8.1,
        8.7,
        8.8,
        8.8,
        8.4,
        11.6,
        11.2,
        11.0,
    ]
    assert [point.index for point in change_points(series).points] == [9, 14]


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("white", 1), ("t3", 2), ("AR(1) 0.3", 3), ("AR(1) 0.5", 4), ("one 10x outlier", 5)],
)
@pytest.mark.parametrize("n", [10, 20, 30, 50, 100, 200, 500])
def test_noise_alone_seldom_raises_an_alarm(kind: str, seed: int, n: int) -> None:
    """At most 5 % of series, within the binomial 99 % band of the simulated number."""
    count = 6_000 // max(n, 50)
    alarms = sum(bool(at(series)) for series in noise(kind, n, count, np.random.default_rng(seed)))
    assert alarms <= binom.ppf(0.99, count, 0.05)


@pytest.mark.parametrize(("place", "least"), [(1 / 2, 0.93), (1 / 3, 0.87), (2 / 3, 0.87)])
def test_a_step_of_two_sd_is_seen_in_30_runs(place: float, least: float) -> None:
    """As often mid-series as Otava itself claims, with a test that memory in noise cannot fool."""
    series = shaped((0, 2), 30, 200, 6, [round(30 * place)])
    assert sum(bool(at(one)) for one in series) >= binom.ppf(0.01, 200, least)


def test_a_single_outlier_is_no_change_wherever_it_stands() -> None:
    """Any one run of thirty takes ten times as long; log scale, 2 % noise."""
    quiet = np.random.default_rng(8).normal(0, 0.02, 30)
    assert at(quiet) == []
    for place in range(30):
        series = quiet.copy()
        series[place] += math.log(10)
        assert at(series) == []


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ((0, 4, 0), [30, 60]),
        ((0, 4, 8), [30, 60]),
        ((0, 4, 0, 4), [30, 60, 90]),
        ((0, 5, 10, 5, 0, 7), [30, 60, 90, 120, 150]),
    ],
)
def test_several_changes_are_all_found(levels: tuple[float, ...], expected: list[int]) -> None:
    (series,) = shaped(levels, 30 * len(levels), 1, 11)
    assert at(series) == expected


def test_changes_are_placed_anew_between_their_neighbours() -> None:
    """All four steps, each within 3 runs of its place and no other, in more than 82 % of series."""
    found = [at(series) for series in shaped((0, 2.5, 5, 7.5, 10), 200, 60, 3)]
    exact = [
        len(places) == 4 and np.abs(np.subtract(places, [40, 80, 120, 160])).max() <= 3
        for places in found
    ]
    assert np.mean(exact) > 0.82


@pytest.mark.parametrize("before", [7, 27, 40])
@pytest.mark.parametrize("after", [3, 4])
@pytest.mark.parametrize("factor", [1.3, 2.0])
def test_a_short_last_level_is_found_and_described_by_its_runs(
    before: int, after: int, factor: float
) -> None:
    """The new level is the mean of its runs, unclipped by the old level and in the interval."""
    series = np.random.default_rng(before).normal(0, 0.005, before + after)
    series[before:] += math.log(factor)
    (point,) = change_points(series).points
    assert point.index == before
    assert point.after == pytest.approx(series[before:].mean(), abs=0.005)
    assert point.low < math.log(factor) < point.high
    (back,) = change_points(series[::-1]).points
    assert back.index == after
    assert back.before == pytest.approx(point.after)


def test_one_or_two_odd_runs_at_the_end_are_counted_as_no_change() -> None:
    quiet = np.random.default_rng(8).normal(0, 0.02, 30)
    for count in (0, 1, 2):
        series = quiet.copy()
        series[30 - count :] += math.log(2)
        assert (at(series), odd_end(series), odd_end(-series), odd_end(series[::-1])) == (
            [],
            count,
            count,
            0,
        )


def test_the_interval_holds_the_truth() -> None:
    """Nominal 95 %: 0.97 for white noise, 0.95 for long AR(1) 0.5, less for short series."""
    for kind in ("white", "t3", "AR(1) 0.5"):
        series = shaped((0, 5), 100, 60, 13, kind=kind)
        points = [
            found[0]
            for one in series
            if len(found := change_points(one).points) == 1 and abs(found[0].index - 50) <= 1
        ]
        held = sum(point.low <= 5 <= point.high for point in points)
        assert held >= binom.ppf(0.005, len(points), 0.95)


def test_a_constant_series_has_no_change() -> None:
    assert [change_points([value] * 40).points for value in (0.0, 5.0, -1e-300, 1e300)] == [()] * 4


def test_a_step_without_any_noise_is_a_change() -> None:
    (point,) = change_points([5.0] * 12 + [6.0] * 15).points
    assert (point.index, point.before, point.after, point.low, point.high) == (
        12,
        5.0,
        6.0,
        1.0,
        1.0,
    )


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        *(([1.0] * n, "at least 10") for n in (0, 1, SHORTEST - 1)),
        *(([1.0] * 20 + [wrong], "finite") for wrong in (math.nan, math.inf)),
    ],
)
def test_too_few_values_and_what_is_no_number_are_refused(values: list[float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        change_points(values)


@given(SEEDS, st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_shift_and_scale_make_no_difference(seed: int, scale: float, shift: float) -> None:
    series = made(seed)
    plain, moved = change_points(series), change_points(scale * series + shift)
    assert [point.index for point in moved.points] == [point.index for point in plain.points]
    assert moved.p == pytest.approx(plain.p, rel=1e-3)
    for one, other in zip(plain.points, moved.points, strict=True):
        assert (other.shift, other.low, other.high) == pytest.approx(
            (scale * one.shift, scale * one.low, scale * one.high), rel=1e-3
        )


# A toy series published with jhunter, a port of Hunter (Apache Otava): one change, at index 10.
TOY = [
    1.02,
    0.95,
    0.99,
    1.00,
    1.12,
    1.00,
    1.01,
    0.98,
    1.01,
    0.96,
    0.50,
    0.51,
    0.48,
    0.48,
    0.55,
    0.50,
    0.49,
    0.51,
    0.50,
    0.49,
]
SAMPLES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


def pair_by_pair(before: list[float], after: list[float]) -> float:
    """Matteson and James (2014), equation 5, as it is printed."""
    m, n = len(before), len(after)
    between = 2 / (m * n) * sum(abs(x - y) for x in before for y in after)
    within = [
        2
        / (len(one) * (len(one) - 1))
        * sum(abs(a - b) for i, a in enumerate(one) for b in one[i + 1 :])
        for one in (before, after)
    ]
    return m * n / (m + n) * (between - sum(within))


@given(SAMPLES, SAMPLES)
def test_energy_by_ranks_is_energy_pair_by_pair(before: list[float], after: list[float]) -> None:
    assert energy_divergence(np.array(before), np.array(after)) == pytest.approx(
        pair_by_pair(before, after), rel=1e-9, abs=1e-5
    )
