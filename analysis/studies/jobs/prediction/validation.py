"""Cross-validation by groups: every model is asked of groups it never saw, with intervals calibrated on its training groups alone.

Each group counts once; a model is compared with the mean of the training set, paired by group. Intervals are CV+ over groups: what a model
was off by where it was left out is what it may be off by next (Barber, Candès, Ramdas and Tibshirani 2021; for rows that come in groups, of
which the next is a new one, Lee, Barber and Willett 2023: every group counts once, and one more, of which nothing is known, counts as
infinitely far). Nothing is assumed of the errors but that groups could have come in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from analysis.stats.adjust import holm
from analysis.terms import Refused
from analysis.wording import unsigned
from control.t_test import ALPHA, LARGEST_LOG, t_interval

from . import models, tables
from .tables import By, FactorTable, Floats, Texts, TooFew, Whole

if TYPE_CHECKING:
    from pandas import DataFrame as Points

    from .models import Fitted, Learner


LEVEL = 0.9
AT_ONCE = 512  # points whose candidates are held together


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Models that each left a fold out, and by how much they were off there. `off` and `weight`: shape (rows,), of the rows' `fold`."""

    models: Sequence[Fitted]
    fold: Whole
    off: Floats
    weight: Floats
    groups: int


def enough(groups: int, level: float) -> bool:
    """Whether so many groups give a finite interval: the share `level` of them and one more must not reach that one."""
    return level * (groups + 1) <= groups + 1e-9


def calibrated(table: FactorTable, by: By, learner: Learner, most: int = tables.INNER) -> Calibrated:
    units = table.units(by)
    fold = tables.folds(units, most)
    off = np.full(len(fold), np.nan)
    seen = table.seen()
    models = []
    for training, test in tables.each(fold):
        model = learner(table.take(training), units[training])
        models.append(model)
        off[test] = np.abs(model(table.points.iloc[test]) - seen[test])
    known = ~np.isnan(off)
    return Calibrated(models, fold[known], off[known], tables.weights(units[known]), len(np.unique(units[known])))


def intervals(models: Calibrated, points: Points, level: float) -> tuple[Floats, Floats]:
    """Return low and high, shape (points,) each, as models see values; infinite where there are too few groups."""
    predicted = np.column_stack([model(points) for model in models.models])
    low, high = np.empty(len(points)), np.empty(len(points))
    for begin in range(0, len(points), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        candidates = predicted[part][:, models.fold]
        high[part] = _quantile(candidates + models.off, models.weight, level, models.groups)
        low[part] = -_quantile(models.off - candidates, models.weight, level, models.groups)
    return low, high


def _quantile(values: Floats, weight: Floats, level: float, groups: int) -> Floats:
    """The smallest value of each line, shape (points, rows), up to which `level` of all groups and one infinite group lies."""
    order = np.argsort(values, axis=1)
    reached = np.cumsum(weight[order], axis=1) >= level * (groups + 1) - 1e-9
    first = reached.argmax(axis=1)
    quantile = np.take_along_axis(values, np.take_along_axis(order, first[:, None], 1), 1)[:, 0]
    return np.where(reached.any(axis=1), quantile, np.inf)


def learners(table: FactorTable) -> dict[str, Learner]:
    """All models that can be asked: the black boxes, and the white ones that have their factors here."""
    return {**models.BLACK, **models.white_boxes(table)}


def validate(table: FactorTable, by: By, wanted: Sequence[str] = (), level: float = LEVEL) -> CrossValidation:
    """Leave groups out, fold by fold, and score every model, or those asked for, on them.

    Raises: TooFew, with how many groups there are; Refused, for a model that is none.
    """
    units = table.units(by)
    try:
        splits = tables.each(tables.folds(units))
    except TooFew as error:
        raise TooFew(f"{table.response} by {by}: {error}.") from None
    known = learners(table)
    for name in wanted:
        if name not in known:
            raise Refused(f"{name}: is no model of these rows; there are {', '.join(known)}.")
    with models.many_small_fits():
        mean, _ = _held_out(table, by, splits, models.BASELINE, models.mean)
        results = [_held_out(table, by, splits, name, known[name], level) for name in wanted or known]
    truth = Truth(table.measured, units, len(splits), table.log)
    baseline = replace(scored(mean, mean.predicted, truth), difference=None)
    scores = []
    for held, why in results:
        score, covered = scored(held, mean.predicted, truth), coverage(held, table.measured, units, level, log=table.log)
        few = "" if covered else f"too few groups for intervals of {unsigned(level)}"
        scores.append(replace(score, coverage=covered, why=why or score.why or few))
    outside = (tables.beyond(table.points.iloc[training], table.points.iloc[test]) for training, test in splits)
    return CrossValidation(
        response=table.response,
        by=by,
        rows=len(table.measured),
        groups=len(np.unique(units)),
        folds=len(splits),
        log=table.log,
        scored=(baseline, *adjusted(scores)),
        measured=table.measured,
        units=units,
        held_out=(mean, *(held for held, _ in results)),
        extrapolated=sum(bool(reasons) for of_fold in outside for reasons in of_fold),
    )


def _held_out(
    table: FactorTable, by: By, splits: Sequence[tuple[Whole, Whole]], name: str, learner: Learner, level: float | None = None
) -> tuple[HeldOut, str]:
    """Return what a model says of each row when its group is left out, with intervals of `level`, and why it could not say it of some."""
    units = table.units(by)
    predicted, low, high = (np.full(len(table.measured), np.nan) for _ in range(3))
    why = ""
    for training, test in splits:
        known, points = table.take(training), table.points.iloc[test]
        try:
            predicted[test] = learner(known, units[training])(points)
            if level is not None and enough(len(np.unique(units[training])), level):
                low[test], high[test] = intervals(calibrated(known, by, learner), points, level)
        except Refused as error:
            why = str(error)
    return HeldOut(name, in_unit(predicted, table), in_unit(low, table), in_unit(high, table)), why


def in_unit(seen: Floats, table: FactorTable) -> Floats:
    with np.errstate(over="ignore"):
        values = np.exp(seen) if table.log else seen
    return np.where(np.isfinite(seen) & np.isfinite(values), values, np.nan)


LEAST_GROUPS = 3  # groups, for an interval of their mean


@dataclass(frozen=True, slots=True)
class Truth:
    measured: Floats
    units: Texts
    folds: int
    log: bool


def scored(held: HeldOut, baseline: Floats, of: Truth) -> Scored:
    """Score one model on the rows it could predict, beside the mean of the training set on the same rows.

    The difference is a t-test over groups of what models are fitted by: errors of logarithms, which one configuration that the mean misses
    tenfold does not rule, or else absolute ones. Training sets overlap, so that groups are not independent: its variance is widened after
    Nadeau and Bengio (2003), by 1 + folds/(folds - 1), about 2.
    """
    known = ~np.isnan(held.predicted)
    names, group = np.unique(of.units[known], return_inverse=True)
    if not len(names):
        return Scored(held.model, 0, 0, why="it could predict none of the rows left out")
    truth = of.measured[known]
    own, base = (_errors(predicted[known], truth, group, log=of.log) for predicted in (held.predicted, baseline))
    return Scored(
        held.model,
        groups=len(names),
        rows=int(known.sum()),
        mape=own[1],
        rmse=own[2],
        typical=own[3],
        baseline_mape=base[1],
        baseline_rmse=base[2],
        baseline_typical=base[3],
        difference=_difference(base[0] - own[0], of.folds, log=of.log),
    )


def _errors(predicted: Floats, truth: Floats, group: Whole, *, log: bool) -> tuple[Floats, float | None, float, float]:
    """Return errors by group, of logarithms where models see these; MAPE, RMSE and the typical error, each group counted once."""
    mape = float(_by_group(np.abs(predicted / truth - 1), group).mean()) if (truth > 0).all() else None
    rmse = math.sqrt(_by_group((predicted - truth) ** 2, group).mean())
    absolute = _by_group(np.abs(np.log(predicted / truth)) if log else np.abs(predicted - truth), group)
    return absolute, mape, rmse, math.expm1(min(absolute.mean(), LARGEST_LOG)) if log else float(absolute.mean())


def adjusted(scores: Sequence[Scored]) -> tuple[Scored, ...]:
    """Adjust the p-values of several models for their number (Holm), and say which differences are shown."""
    held = [(at, score.difference) for at, score in enumerate(scores) if score.difference is not None]
    result = list(scores)
    for (at, score), p in zip(held, holm([score.p for _, score in held]), strict=True):
        result[at] = replace(result[at], difference=replace(score, p=p, verdict=score.verdict if p < ALPHA else "not shown"))
    return tuple(result)


def coverage(held: HeldOut, measured: Floats, units: Texts, level: float, *, log: bool) -> Coverage | None:
    """What the intervals of level `level` covered; None where they have no end.

    Rows of a group hang together, so the interval of the share is Wilson's (1927) for as many trials as there are groups.
    """
    known = np.isfinite(held.low) & np.isfinite(held.high)
    if not known.any():
        return None
    low, high, truth = held.low[known], held.high[known], measured[known]
    inside = ((low <= truth) & (truth <= high)).astype(float)
    names, group = np.unique(units[known], return_inverse=True)
    share = float(_by_group(inside, group).mean())
    width = float(np.median(high / low if log else high - low))
    return Coverage(level, share, *wilson(share, len(names)), width)


def wilson(share: float, count: int, z: float = 1.959963984540054) -> tuple[float, float]:
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _difference(smaller: Floats, folds: int, *, log: bool) -> Difference | None:
    count = len(smaller)
    if count < LEAST_GROUPS:
        return None
    average = float(smaller.mean())
    se = math.sqrt(float(smaller.var(ddof=1)) / count * (1 + folds / (folds - 1)))
    *ends, p = t_interval(average, se, count - 1) if se > 0 else (average, average, average, float(average == 0))
    value, low, high = (math.exp(max(-LARGEST_LOG, min(end, LARGEST_LOG))) for end in ends) if log else ends
    return Difference(value, low, high, p, "better" if average > 0 else "worse")


def _by_group(values: Floats, group: np.ndarray) -> Floats:
    return np.asarray(np.bincount(group, values) / np.bincount(group))


Verdict = Literal["better", "worse", "not shown"]


@dataclass(frozen=True, slots=True)
class Difference:
    """How much smaller a model's error is than the mean's, of the groups both predicted, paired, with its 95 % interval.

    Where models see logarithms `value` is how many times smaller (errors are factors, the difference is one of logarithms); else it is the
    mean's absolute error less the model's, in the response's unit. `p` is adjusted for the number of models (Holm).
    """

    value: float
    low: float
    high: float
    p: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Coverage:
    """What share of held-out values lay within intervals of level `nominal`, with its 95 % interval, and how wide they were.

    `width` is the median of high over low, as a factor, where models see logarithms; else of high minus low, in the response's unit.
    """

    nominal: float
    share: float
    low: float
    high: float
    width: float


@dataclass(frozen=True, slots=True)
class Scored:
    """One model by its held-out errors, each group counted once. `mape` is a fraction, None where something measured 0.

    `typical` is exp(mean |log(predicted/measured)|) - 1 where models see logarithms, else the mean absolute error, in the response's unit.
    What begins with `baseline_` is of the mean of the training set, of the same groups: a white box may be unable to predict some. `why`
    says why there are no intervals, or no errors at all.
    """

    model: str
    groups: int
    rows: int
    mape: float | None = None
    rmse: float | None = None
    typical: float | None = None
    baseline_mape: float | None = None
    baseline_rmse: float | None = None
    baseline_typical: float | None = None
    difference: Difference | None = None
    coverage: Coverage | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class HeldOut:
    model: str
    predicted: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """A cross-validation: `groups` were dealt into `folds`, never a row of a group on both sides."""

    response: str
    by: By
    rows: int
    groups: int
    folds: int
    log: bool
    scored: tuple[Scored, ...]
    measured: Floats
    units: Texts
    held_out: tuple[HeldOut, ...]
    extrapolated: int
