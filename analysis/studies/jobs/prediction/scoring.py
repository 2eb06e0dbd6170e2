"""Held-out errors, each group counted once; a model against the mean of the training set, paired by group; what intervals covered."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.adjust import holm
from control.t_test import LARGEST_LOG, t_quantile, t_tail

from .terms import Coverage, Difference, Scored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Floats, HeldOut, Texts

LEVEL = 0.95
LEAST = 3  # groups, for an interval of their mean


@dataclass(frozen=True, slots=True)
class Truth:
    """What was measured, in which groups, dealt into how many folds, and whether errors are those of logarithms."""

    measured: Floats
    units: Texts
    folds: int
    log: bool


def scored(found: HeldOut, baseline: Floats, of: Truth) -> Scored:
    """Score one model on the rows it could predict, beside the mean of the training set on the same rows.

    The difference is a t-test over groups of what models are fitted by: errors of logarithms, which one configuration that the mean misses
    tenfold does not rule, or else absolute ones. Training sets overlap, so that groups are not independent: its variance is widened after
    Nadeau and Bengio (2003), by 1 + folds/(folds - 1), about 2.
    """
    known = ~np.isnan(found.predicted)
    names, group = np.unique(of.units[known], return_inverse=True)
    if not len(names):
        return Scored(found.model, 0, 0, why="it could predict none of the rows left out")
    truth = of.measured[known]
    own, mean = (_Errors(one[known], truth, group, log=of.log) for one in (found.predicted, baseline))
    return Scored(
        found.model,
        len(names),
        int(known.sum()),
        own.mape,
        own.rmse,
        own.typical,
        mean.mape,
        mean.rmse,
        mean.typical,
        _difference(mean.absolute - own.absolute, of.folds, log=of.log),
    )


class _Errors:
    """Errors of one model, each group counted once. `absolute`: shape (groups,), of logarithms where models see these."""

    def __init__(self, said: Floats, truth: Floats, group: np.ndarray, *, log: bool) -> None:
        self.rmse = math.sqrt(_by_group((said - truth) ** 2, group).mean())
        self.mape = float(_by_group(np.abs(said / truth - 1), group).mean()) if (truth > 0).all() else None
        self.absolute = _by_group(np.abs(np.log(said / truth)) if log else np.abs(said - truth), group)
        self.typical = math.expm1(min(self.absolute.mean(), LARGEST_LOG)) if log else float(self.absolute.mean())


def adjusted(found: Sequence[Scored]) -> tuple[Scored, ...]:
    """Adjust the p-values of several models for their number (Holm), and say which differences are shown."""
    held = [(at, one.difference) for at, one in enumerate(found) if one.difference is not None]
    made = list(found)
    for (at, one), p in zip(held, holm([one.p for _, one in held]), strict=True):
        made[at] = replace(made[at], difference=replace(one, p=p, verdict=one.verdict if p < 1 - LEVEL else "not shown"))
    return tuple(made)


def coverage(found: HeldOut, measured: Floats, units: Texts, level: float, *, log: bool) -> Coverage | None:
    """What the intervals of level `level` covered; None where they have no end.

    Rows of a group hang together, so the interval of the share is Wilson's (1927) for as many trials as there are groups.
    """
    known = np.isfinite(found.low) & np.isfinite(found.high)
    if not known.any():
        return None
    low, high, truth = found.low[known], found.high[known], measured[known]
    inside = ((low <= truth) & (truth <= high)).astype(float)
    names, group = np.unique(units[known], return_inverse=True)
    share = float(_by_group(inside, group).mean())
    width = float(np.median(high / low if log else high - low))
    return Coverage(level, share, *wilson(share, len(names)), width)


def wilson(share: float, count: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The 95 % interval of a share out of `count` trials."""
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _difference(smaller: Floats, folds: int, *, log: bool) -> Difference | None:
    """Test by how much errors are smaller, shape (groups,); the verdict is what it is if p stands."""
    count = len(smaller)
    if count < LEAST:
        return None
    average = float(smaller.mean())
    se = math.sqrt(float(smaller.var(ddof=1)) / count * (1 + folds / (folds - 1)))
    half = t_quantile((1 + LEVEL) / 2, count - 1) * se
    p = 2 * t_tail(abs(average) / se, count - 1) if se > 0 else float(average == 0)
    ends = [average, average - half, average + half]
    value, low, high = (math.exp(max(-LARGEST_LOG, min(one, LARGEST_LOG))) for one in ends) if log else ends
    return Difference(value, low, high, p, "better" if average > 0 else "worse")


def _by_group(values: Floats, group: np.ndarray) -> Floats:
    return np.asarray(np.bincount(group, values) / np.bincount(group))
