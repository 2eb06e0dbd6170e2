"""Prediction intervals by CV+ over groups: what a model was off by where it was left out is what it may be off by next.

Barber, Candès, Ramdas and Tibshirani 2021 (CV+); for rows that come in groups, of which the next is a new one, Lee, Barber and Willett
2023: every group counts once, and one more, of which nothing is known, counts as infinitely far. Nothing is assumed of the errors but that
groups could have come in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from . import folds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .models import Fitted, Learner
    from .terms import By, Floats, Points, Table, Whole

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


def calibrated(table: Table, by: By, learner: Learner, most: int = folds.INNER) -> Calibrated:
    """Fit a model to all but each fold, and note its errors there. Raises: TooFew, Refused."""
    units = table.units(by)
    fold = folds.folds(units, most)
    off = np.full(len(fold), np.nan)
    seen = table.seen()
    models = []
    for training, test in folds.each(fold):
        model = learner(table.take(training), units[training])
        models.append(model)
        off[test] = np.abs(model(table.points.take(test)) - seen[test])
    known = ~np.isnan(off)
    return Calibrated(models, fold[known], off[known], folds.weights(units[known]), len(np.unique(units[known])))


def intervals(found: Calibrated, points: Points, level: float) -> tuple[Floats, Floats]:
    """Answer low and high, shape (points,) each, as models see values; infinite where there are too few groups."""
    said = np.column_stack([model(points) for model in found.models])
    low, high = np.empty(points.count), np.empty(points.count)
    for begin in range(0, points.count, AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        candidates = said[part][:, found.fold]
        high[part] = _quantile(candidates + found.off, found.weight, level, found.groups)
        low[part] = -_quantile(found.off - candidates, found.weight, level, found.groups)
    return low, high


def _quantile(values: Floats, weight: Floats, level: float, groups: int) -> Floats:
    """The smallest value of each line, shape (points, rows), up to which `level` of all groups and one infinite group lies."""
    order = np.argsort(values, axis=1)
    reached = np.cumsum(weight[order], axis=1) >= level * (groups + 1) - 1e-9
    first = reached.argmax(axis=1)
    found = np.take_along_axis(values, np.take_along_axis(order, first[:, None], 1), 1)[:, 0]
    return np.where(reached.any(axis=1), found, np.inf)
