"""Held-out errors beside the training mean: by hand, and on known laws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.stats.effect import holm
from analysis.studies.jobs.prediction.models import Measurement, TooFew, ridge, table
from analysis.studies.jobs.prediction.validation import (
    HeldOut,
    Scored,
    calibrated,
    scored,
    validate,
    wilson,
)
from control.t_test import t_quantile
from tests.analysis.answers import known
from tests.analysis.studies.jobs.prediction.made import made_table

NAN = math.nan


def scores(
    predicted: list[float], mean: list[float], truth: list[float], units: str, *, log: bool
) -> Scored:
    """The score of a model with these predictions for left-out rows, group by group."""
    made = replace(
        table(
            [Measurement(unit, unit, {"x": float(at)}, 1.0) for at, unit in enumerate(units)],
            "time_s",
        ),
        measured=np.array(truth),
        log=log,
    )
    nothing = np.full(len(units), NAN)
    said, base = (np.log(values) if log else np.array(values) for values in (predicted, mean))
    return scored(
        HeldOut("model", said, nothing, nothing), base, made, made.configurations, len(set(units))
    )


def test_errors_count_each_group_once() -> None:
    """Group a has two rows 10 % off each, b one that is 30 % off: MAPE 20 %, not 16.7 %.

    RMSE √((1 + 9)/2).
    """
    found = scores([11, 9, 13], [20.0] * 3, [10.0] * 3, "aab", log=True)
    assert found.mape == pytest.approx(0.2)
    assert found.rmse == pytest.approx(math.sqrt(5))
    assert found.typical == pytest.approx(
        math.exp(((math.log(1.1) - math.log(0.9)) / 2 + math.log(1.3)) / 2) - 1
    )
    assert found.mean_typical == pytest.approx(1.0)


def test_a_difference_is_paired_and_widened_for_shared_training() -> None:
    """Errors smaller by 1, 2, 3 in three groups, in three folds: 2 ± t · √(1/3 · (1 + 3/2))."""
    found = known(
        scores([1, 11, 11], [2.0, 13.0, 14.0], [0.0, 10.0, 10.0], "abc", log=False).difference
    )
    half = t_quantile(0.975, 2) * math.sqrt(1 / 3 * (1 + 3 / 2))
    assert (found.value, found.low, found.high) == pytest.approx((2, 2 - half, 2 + half))


def test_p_values_are_adjusted_for_the_number_of_models() -> None:
    made = made_table()
    alone = [
        known(validate(made, "run", [name]).scored[1].difference).p for name in ("ridge", "trees")
    ]
    among = [
        known(score.difference).p for score in validate(made, "run", ["ridge", "trees"]).scored[1:]
    ]
    assert among == pytest.approx(holm(alone))


def test_wilsons_interval_by_hand() -> None:
    """9 of 10 (Wilson 1927): 0.5958 to 0.9821; 10 of 10 does not reach down to 1."""
    assert wilson(0.9, 10) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert wilson(1.0, 10)[0] == pytest.approx(0.7225, abs=1e-4)


def test_a_law_in_the_factors_beats_the_mean_where_unmeasured() -> None:
    found = validate(made_table(), "configuration", ["ridge"])
    _, ridge = found.scored
    assert (found.groups, found.folds) == (12, 10)
    assert known(ridge.mape) < 0.05
    assert (known(ridge.difference).verdict, known(ridge.difference).low > 1) == ("better", True)
    assert found.extrapolated == 0  # what a batch left out lacks, the other cache had


def test_of_noise_nothing_is_shown() -> None:
    """Factors that do nothing, 12 seeds: at 5 % at most a few are called better."""
    better = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        told = [
            Measurement(
                str(at),
                str(at),
                {"x": float(rng.normal()), "y": float(rng.normal())},
                float(np.exp(rng.normal())),
            )
            for at in range(15)
        ]
        difference = known(
            validate(table(told, "time_s"), "configuration", ["ridge"], 0.5).scored[1].difference
        )
        better += difference.verdict == "better"
    assert better <= 3


def test_too_few_groups_are_refused_or_reported_without_interval() -> None:
    with pytest.raises(TooFew, match="time_s by run: 4"):
        validate(made_table(runs=4), "run")
    ridge = validate(made_table(runs=6), "run", ["ridge"]).scored[1]
    assert (ridge.covered, "90 %" in ridge.why) == (None, True)


def intervals_of(
    off: list[float], groups: list[str], level: float, says: float = 0.0
) -> tuple[float, float]:
    """The interval at a point for a model that always predicts `says` and missed by `off`."""
    made = replace(
        table(
            [Measurement(group, "r", {"x": float(at)}, 1.0) for at, group in enumerate(groups)], "x"
        ),
        measured=says + np.array(off),
        log=False,
    )
    low, high = calibrated(
        made, "configuration", lambda _: lambda points: np.full(len(points), says)
    )(made.points[:1], level)
    return low.item(), high.item()


def test_the_90_percent_interval_of_9_groups_is_the_worst_error() -> None:
    """0.9 · (9 + 1) = 9 of 9 groups: the ninth.

    At 80 % it is the eighth, at 95 % it would be the one that never came.
    """
    off, groups = [*map(float, range(1, 10))], [*"abcdefghi"]
    assert intervals_of(off, groups, 0.9) == (-9, 9)
    assert intervals_of(off, groups, 0.8) == (-8, 8)
    assert intervals_of(off, groups, 0.95) == (-np.inf, np.inf)
    assert intervals_of(off, groups, 0.9, says=100.0) == (91, 109)


def test_a_group_counts_once_however_many_rows_it_has() -> None:
    """100 rows off by 1 are one group, outweighed by four off by 5: 0.5 · (5 + 1) = 3 groups."""
    assert intervals_of([1.0] * 100 + [5.0] * 4, ["a"] * 100 + [*"bcde"], 0.5)[1] == 5


def test_intervals_cover_what_they_promise_of_groups_never_seen() -> None:
    """Groups with effects that no factor carries: 40 groups of 3 rows, 90 % promised, 60 tables."""
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        told = []
        for group in range(41):
            level = rng.normal(0, 1)
            told += [
                Measurement(
                    str(group),
                    "r",
                    {"x": float(at), "z": float(rng.normal())},
                    float(np.exp(level + rng.normal(0, 0.3))),
                )
                for at in range(3)
            ]
        both = table(told, "time_s")
        training, test = both.take(np.arange(120)), both.take(np.arange(120, 123))
        low, high = calibrated(training, "configuration", ridge)(test.points, 0.9)
        covered.append(np.mean((low <= test.seen()) & (test.seen() <= high)))
    assert 0.85 <= np.mean(covered) <= 0.99
