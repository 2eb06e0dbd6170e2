"""Estimate a quantity, or a change in it, from blocks or runs by Student's t, or explain why not.

Values come on the scale of comparison: logarithms of rates and times, percentages and shares as
they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from analysis.terms import Effect, NotComparable
from control.t_test import ALPHA, LARGEST_LOG, t_interval

from .effect import ROUNDING, holm, interval, moments

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate from `n` units (blocks or runs): the value and its 95 % interval.

    For a change, `p` is two-sided for no change, and `p_adjusted` by Holm over all changes tested
    together. What is unavailable is None, and `missing` has the reason.
    """

    n: int = 0
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    missing: str | None = None

    @property
    def shown(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted < ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Estimate):
    """An estimate with a value; it has an interval if there are two units or more."""

    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Mean):
    """An estimate with a value, interval and p."""

    low: float
    high: float
    p: float


def mean_of(
    values: Sequence[float], *, log: bool = False, within: tuple[float, float] | None = None
) -> Mean | None:
    """Return the mean, geometric for logs, and its interval within limits; None without values."""
    if not values:
        return None
    figures = interval(values) if len(values) > 1 else values
    value, *ends = (math.exp(min(end, LARGEST_LOG)) if log else end for end in figures)
    if within is not None:  # the mean itself stays as measured
        least, most = min(within[0], value), max(within[1], value)
        ends = [min(max(end, least), most) for end in ends]
    low, high = ends or (None, None)
    return Mean(len(values), value=value, low=low, high=high)


def change_of(changes: Sequence[float], *, log: bool, among: int = 1) -> Change:
    """Test the change per block by a one-sample t, with a Bonferroni interval `among` several.

    Raises: NotComparable, if all blocks changed by exactly the same.
    """
    mean, sd = moments(changes)
    if sd < ROUNDING:
        raise NotComparable("every block has exactly the same change: these are not measurements")
    test = t_interval(mean, sd / math.sqrt(len(changes)), len(changes) - 1, ALPHA / among)
    value, low, high = (math.expm1(min(end, LARGEST_LOG)) if log else end for end in test[:3])
    return Change(len(changes), value=value, low=low, high=high, p=test.p)


def contrast(weights: Mapping[Key, float], blocks: Iterable[Mapping[Key, float]]) -> list[float]:
    return [
        math.fsum(weight * block[key] for key, weight in weights.items())
        for block in blocks
        if block.keys() >= weights.keys()
    ]


def cost_of(effect: Effect) -> Change:
    """Turn a gain into a cost: 1/1.25 of the work per second costs 25 % more; -1 costs infinity."""
    value, low, high = (
        1 / (1 + gain) - 1 if gain > -1 else math.inf
        for gain in (effect.gain, effect.high, effect.low)
    )
    return Change(effect.n_baseline, value=value, low=low, high=high, p=effect.p)


OneEstimate = TypeVar("OneEstimate", bound=Estimate)


def adjusted(result: Iterable[OneEstimate]) -> list[OneEstimate]:
    result = list(result)
    ps = iter(holm([estimate.p for estimate in result if estimate.p is not None]))
    return [
        estimate if estimate.p is None else replace(estimate, p_adjusted=next(ps))
        for estimate in result
    ]
