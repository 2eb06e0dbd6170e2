"""Cross-validation by groups: models predict unseen groups, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.model_selection import PredefinedSplit

from analysis.stats.effect import holm
from analysis.studies.jobs.estimates import Figure
from analysis.terms import Refused
from analysis.wording import unsigned
from control.t_test import ALPHA, LARGEST_LOG, t_interval

from . import models
from .models import By, FactorTable, Floats, Texts, TooFew, Whole

if TYPE_CHECKING:
    from pandas import DataFrame as Points

    from .models import Learner

    Intervals = Callable[[Points, float], tuple[Floats, Floats]]  # low and high, by a level
    Splits = Sequence[tuple[Whole, Whole]]

LEVEL = 0.9
LEAST_GROUPS = 3  # groups, for an interval of their mean
Verdict = Literal["better", "worse", "can't tell"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A model's gain in error over the mean, paired by group, with its 95 % interval.

    `value` is a factor if models see logarithms (errors are then factors), else the mean's absolute
    error minus the model's, in the response's unit. `p` is adjusted for the number of models
    (Holm).
    """

    value: float
    low: float
    high: float
    p: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A model's predictions of held-out rows, on its own scale; `why` has the reason if none."""

    model: str
    predicted: Floats
    low: Floats
    high: Floats
    why: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """One model by its held-out errors, each group counted once.

    `typical` is exp(mean |log(predicted/measured)|) - 1 if models see logarithms, else the mean
    absolute error in the response's unit; `mean_typical` is the training mean's on the same rows.
    `mape` is a fraction, None if a measured value is 0. `covered` is the share of held-out values
    inside their intervals.
    """

    model: str
    groups: int = 0
    rows: int = 0
    mape: float | None = None
    rmse: float | None = None
    typical: float | None = None
    mean_typical: float | None = None
    difference: Difference | None = None
    covered: Figure | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """A cross-validation: `groups` were dealt into `folds`, never a row of a group on both sides.

    `scored` begins with the training mean. `held_out`: model → its prediction of each row.
    """

    response: str
    by: By
    level: float
    rows: int
    groups: int
    folds: int
    log: bool
    extrapolated: int
    scored: tuple[Scored, ...]
    measured: list[float]
    units: list[str]
    held_out: dict[str, dict[str, list[float]]]

    @property
    def best(self) -> Scored | None:
        known = [scored for scored in self.scored[1:] if scored.typical is not None]
        return min(known, key=lambda scored: scored.typical or 0.0, default=None)


def enough(groups: int, level: float) -> bool:
    """Return whether the number of groups gives a finite interval at this level."""
    return level * (groups + 1) <= groups + 1e-9


def calibrated(table: FactorTable, by: By, learner: Learner) -> Intervals:
    """Fit models that each hold a fold out, and return intervals from their errors there."""
    units = table.units(by)
    fold = models.folds(units, models.INNER)
    off = np.full(len(fold), np.nan)
    seen = table.seen()
    fitted = []
    for training, test in PredefinedSplit(fold).split():
        fitted.append(learner(table.take(training)))
        off[test] = np.abs(fitted[-1](table.points.iloc[test]) - seen[test])
    known = ~np.isnan(off)
    off, fold, weight, count = (
        off[known],
        fold[known],
        models.weights(units[known]),
        len(np.unique(units[known])),
    )

    def intervals(points: Points, level: float) -> tuple[Floats, Floats]:
        said = np.column_stack([model(points) for model in fitted])
        if not known.any():
            return np.full(len(points), -np.inf), np.full(len(points), np.inf)
        candidates, reach = said[:, fold], level * (count + 1)
        return (
            -_quantile(off - candidates, weight, reach),
            _quantile(candidates + off, weight, reach),
        )

    return intervals


def _quantile(values: Floats, weight: Floats, reach: float) -> Floats:
    order = np.argsort(values, axis=1)
    reached = np.cumsum(weight[order], axis=1) >= reach - 1e-9
    first = reached.argmax(axis=1)
    quantile = np.take_along_axis(values, np.take_along_axis(order, first[:, None], 1), 1)[:, 0]
    return np.where(reached.any(axis=1), quantile, np.inf)


def validate(
    table: FactorTable, by: By, wanted: Sequence[str] = (), level: float = LEVEL
) -> CrossValidation:
    """Hold groups out, fold by fold, and score all models, or the given ones, on them.

    Raises: TooFew, with the number of groups; Refused, for an unknown model.
    """
    units = table.units(by)
    try:
        splits = list(PredefinedSplit(models.folds(units)).split())
    except TooFew as error:
        raise TooFew(f"{table.response} by {by}: {error}.") from None
    with models.many_small_fits():
        mean = _held_out(table, by, splits, models.BASELINE, models.mean)
        named = models.learners(table, wanted)
        every = [
            mean,
            *(
                _held_out(table, by, splits, name, learner, level)
                for name, learner in named.items()
            ),
        ]
    baseline, *scores = [
        scored(held, mean.predicted, table, units, len(splits), level) for held in every
    ]
    outside = [
        models.beyond(table.points.iloc[training], table.points.iloc[test])
        for training, test in splits
    ]
    columns = ("predicted", "low", "high")
    return CrossValidation(
        response=table.response,
        by=by,
        level=level,
        rows=len(units),
        groups=len(np.unique(units)),
        folds=len(splits),
        log=table.log,
        extrapolated=sum(bool(reasons) for of_fold in outside for reasons in of_fold),
        scored=(replace(baseline, difference=None, why=""), *adjusted(scores)),
        measured=table.measured.tolist(),
        units=units.tolist(),
        held_out={
            held.model: {name: in_unit(getattr(held, name), table).tolist() for name in columns}
            for held in every
        },
    )


def _held_out(
    table: FactorTable,
    by: By,
    splits: Splits,
    name: str,
    learner: Learner,
    level: float | None = None,
) -> HeldOut:
    units = table.units(by)
    predicted, low, high = (np.full(len(units), np.nan) for _ in range(3))
    why = ""
    for training, test in splits:
        known, points = table.take(training), table.points.iloc[test]
        try:
            predicted[test] = learner(known)(points)
            if level is not None and enough(len(np.unique(units[training])), level):
                low[test], high[test] = calibrated(known, by, learner)(points, level)
        except Refused as error:
            why = str(error)
    return HeldOut(name, predicted, low, high, why)


def in_unit(seen: Floats, table: FactorTable) -> Floats:
    with np.errstate(over="ignore"):
        values = np.exp(seen) if table.log else seen
    return np.where(np.isfinite(seen) & np.isfinite(values), values, np.nan)


def scored(
    held: HeldOut, mean: Floats, table: FactorTable, units: Texts, folds: int, level: float = LEVEL
) -> Scored:
    """Score one model on the rows it could predict, beside the training mean on the same rows.

    Arrays are on the models' scale.
    """
    import pandas as pd

    truth, seen = table.measured, table.seen()
    predicted, low, high = (
        in_unit(column, table) for column in (held.predicted, held.low, held.high)
    )
    known = ~np.isnan(predicted)
    if not known.any():
        return Scored(held.model, why=held.why or "it could predict none of the rows left out")
    bounded = np.isfinite(low) & np.isfinite(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = pd.DataFrame(
            {
                "percent": np.abs(predicted / truth - 1),
                "square": (predicted - truth) ** 2,
                "own": np.abs(held.predicted - seen),
                "mean": np.abs(mean - seen),
                "inside": np.where(bounded, (low <= truth) & (truth <= high), np.nan),
            }
        )
    groups = rows[known].groupby(units[known]).mean()
    typical, mean_typical = (
        math.expm1(min(groups[name].mean(), LARGEST_LOG))
        if table.log
        else float(groups[name].mean())
        for name in ("own", "mean")
    )
    inside = groups["inside"].dropna()
    return Scored(
        held.model,
        groups=len(groups),
        rows=int(known.sum()),
        mape=float(groups["percent"].mean()) if (truth[known] > 0).all() else None,
        rmse=math.sqrt(groups["square"].mean()),
        typical=typical,
        mean_typical=mean_typical,
        difference=difference((groups["mean"] - groups["own"]).to_numpy(), folds, log=table.log),
        covered=Figure(float(inside.mean()), *wilson(float(inside.mean()), len(inside)))
        if len(inside)
        else None,
        why=held.why
        or ("" if len(inside) else f"too few groups for intervals of {unsigned(level)}"),
    )


def wilson(share: float, count: int, z: float = 1.959963984540054) -> tuple[float, float]:
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def difference(smaller: Floats, folds: int, *, log: bool) -> Difference | None:
    """Test over groups how much smaller a model's errors are than the mean's; None for too few.

    Training sets overlap, so groups are not independent: the variance is widened after Nadeau and
    Bengio (2003), by 1 + folds/(folds - 1), about 2.
    """
    count = len(smaller)
    if count < LEAST_GROUPS:
        return None
    average = float(smaller.mean())
    se = math.sqrt(float(smaller.var(ddof=1)) / count * (1 + folds / (folds - 1)))
    *ends, p = (
        t_interval(average, se, count - 1)
        if se > 0
        else (average, average, average, float(average == 0))
    )
    value, low, high = (
        (math.exp(max(-LARGEST_LOG, min(end, LARGEST_LOG))) for end in ends) if log else ends
    )
    return Difference(value, low, high, p, "better" if average > 0 else "worse")


def adjusted(scores: Sequence[Scored]) -> tuple[Scored, ...]:
    """Adjust the p-values of several models (Holm), and mark the differences shown."""
    ps = iter(holm([score.difference.p for score in scores if score.difference is not None]))
    result = []
    for score in scores:
        found = score.difference
        if found is not None:
            p = next(ps)
            found = replace(found, p=p, verdict=found.verdict if p < ALPHA else "can't tell")
        result.append(replace(score, difference=found))
    return tuple(result)
