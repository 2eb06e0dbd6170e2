"""One estimate: what blocks or runs say of a quantity, or of a change in it, by Student's t; and why there is none.

Values come on the scale on which they are compared: logarithms of rates and times, percentages and shares as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from analysis.terms import Effect, NotComparable
from control.t_test import ALPHA, LARGEST_LOG, t_interval

from .adjust import holm
from .effect import ROUNDING, interval, moments

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What `n` units (blocks, or runs) say: the value and its 95 % interval.

    Of a change (a fraction of rates, a difference of others) `p` is two-sided for there being none, `p_adjusted` that of Holm over
    all that was asked with it. What cannot be had is None, and `missing` says why.
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
    """One that has a value; an interval only of two units or more."""

    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Mean):
    """One that has all there is to an estimate."""

    low: float
    high: float
    p: float


def mean_of(values: Sequence[float], *, log: bool = False, within: tuple[float, float] | None = None) -> Mean | None:
    """Mean with its interval, which ends where the quantity can be (`within`); of logarithms, their geometric mean. None of no values."""
    if not values:
        return None
    figures = interval(values) if len(values) > 1 else values
    value, *ends = (math.exp(min(end, LARGEST_LOG)) if log else end for end in figures)
    if within is not None:  # the mean itself stays as it was measured
        least, most = min(within[0], value), max(within[1], value)
        ends = [min(max(end, least), most) for end in ends]
    low, high = ends or (None, None)
    return Mean(len(values), value=value, low=low, high=high)


def change_of(changes: Sequence[float], *, log: bool, among: int = 1) -> Change:
    """One-sample t on what changed in each block; of one `among` several, so wide that all intervals hold together (Bonferroni).

    Raises: NotComparable, where all blocks changed by the very same.
    """
    mean, sd = moments(changes)
    if sd < ROUNDING:
        raise NotComparable("every block has the very same change: these are no measurements")
    test = t_interval(mean, sd / math.sqrt(len(changes)), len(changes) - 1, ALPHA / among)
    value, low, high = (math.expm1(min(end, LARGEST_LOG)) if log else end for end in test[:3])
    return Change(len(changes), value=value, low=low, high=high, p=test.p)


def contrast(weights: Mapping[Key, float], blocks: Iterable[Mapping[Key, float]]) -> list[float]:
    """Take a contrast inside each block that holds all of its cells; the other blocks do not count for it."""
    return [math.fsum(weight * block[key] for key, weight in weights.items()) for block in blocks if block.keys() >= weights.keys()]


def cost_of(effect: Effect) -> Change:
    """Turn a gain into what is paid more: to do 1/1.25 of the work a second is to pay 25 % more, and a gain of -1 costs without end."""
    value, low, high = (1 / (1 + gain) - 1 if gain > -1 else math.inf for gain in (effect.gain, effect.high, effect.low))
    return Change(effect.n_baseline, value=value, low=low, high=high, p=effect.p)


OneEstimate = TypeVar("OneEstimate", bound=Estimate)


def adjusted(result: Iterable[OneEstimate]) -> list[OneEstimate]:
    """Give changes that were asked together Holm's p."""
    result = list(result)
    ps = iter(holm([estimate.p for estimate in result if estimate.p is not None]))
    return [estimate if estimate.p is None else replace(estimate, p_adjusted=next(ps)) for estimate in result]
