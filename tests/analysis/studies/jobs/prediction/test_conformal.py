"""Intervals: quantiles by hand, and what they cover of groups that nobody saw."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.studies.jobs.prediction import tables, validation
from analysis.studies.jobs.prediction.models import ridge, same
from analysis.studies.jobs.prediction.tables import Measurement, Points, table
from analysis.studies.jobs.prediction.validation import Calibrated, calibrated, enough, intervals, validate
from tests.analysis.studies.jobs.prediction.made import made_table

ONE = Points(1, {}, {})


def errors(off: list[float], groups: list[str]) -> Calibrated:
    """One model that always says 0, and was off by so much."""
    named = np.array(groups)
    return Calibrated(
        [lambda points: np.zeros(points.count)], np.zeros(len(off), dtype=np.int64), np.array(off), tables.weights(named), len(set(groups))
    )


def test_the_interval_of_nine_groups_at_90_percent_is_their_largest_error() -> None:
    """0.9 · (9 + 1) = 9 of 9 groups: the ninth. At 80 % it is the eighth, at 95 % it would be the one that never came."""
    found = errors([*map(float, range(1, 10))], [*"abcdefghi"])
    assert [one.item() for one in intervals(found, ONE, 0.9)] == [-9, 9]
    assert [one.item() for one in intervals(found, ONE, 0.8)] == [-8, 8]
    assert [one.item() for one in intervals(found, ONE, 0.95)] == [-np.inf, np.inf]


@pytest.mark.parametrize(
    ("groups", "level", "finite"), [(9, 0.9, True), (8, 0.9, False), (4, 0.8, True), (3, 0.8, False), (19, 0.95, True)]
)
def test_how_many_groups_an_interval_takes(groups: int, level: float, finite: bool) -> None:  # noqa: FBT001  # pytest's parameter
    assert enough(groups, level) is finite


def test_a_group_counts_once_however_many_rows_it_has() -> None:
    """A hundred rows off by 1 are one group; four groups off by 5 outweigh it: 0.5 · (5 + 1) = 3 groups are reached among these."""
    assert intervals(errors([1.0] * 100 + [5.0] * 4, ["a"] * 100 + [*"bcde"]), ONE, 0.5)[1] == 5


def test_each_candidate_comes_from_the_model_that_left_the_row_out() -> None:
    """CV+: a model that says 10 left out a row and was off by 1, one that says 0 was off by 2: upper ends 11 and 2."""
    found = Calibrated(
        [lambda points: np.full(points.count, 10.0), lambda points: np.zeros(points.count)],
        np.array([0, 1]),
        np.array([1.0, 2.0]),
        np.ones(2),
        2,
    )
    low, high = intervals(found, ONE, 0.6)  # 0.6 · 3 = 1.8: both
    assert (low.item(), high.item()) == (-2, 11)


def test_errors_are_those_of_groups_left_out() -> None:
    """What knows nothing but the rows it was given cannot tell of any configuration left out; by run it knows each from other runs."""
    assert len(calibrated(made_table(), "configuration", same).off) == 0
    by_run = calibrated(made_table(), "run", same)
    assert (len(by_run.off), by_run.groups) == (72, 6)
    assert by_run.off.min() > 0


def test_intervals_cover_what_they_promise_of_groups_never_seen() -> None:
    """Groups with an effect of their own, which no factor tells: 40 groups of 3 rows, 90 % promised, 60 tables."""
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        told = []
        for group in range(41):
            level = rng.normal(0, 1)
            told += [
                Measurement(str(group), "r", {"x": float(at), "z": float(rng.normal())}, float(np.exp(level + rng.normal(0, 0.3))))
                for at in range(3)
            ]
        both = table(told, "time_s")
        training, test = both.take(np.arange(120)), both.take(np.arange(120, 123))
        low, high = intervals(calibrated(training, "configuration", ridge), test.points, 0.9)
        covered.append(np.mean((low <= test.seen()) & (test.seen() <= high)))
    assert 0.85 <= np.mean(covered) <= 0.99


def test_coverage_is_measured_on_groups_left_out() -> None:
    found = validate(made_table(runs=12, noise=0.1), "run", ["ridge"])
    _, ridge_ = found.scored
    assert ridge_.coverage is not None
    assert ridge_.coverage.nominal == validation.LEVEL
    assert ridge_.coverage.share > 0.8
    assert ridge_.coverage.low < ridge_.coverage.share <= ridge_.coverage.high
    assert 1.2 < ridge_.coverage.width < 3
