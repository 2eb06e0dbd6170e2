"""What changed in each block, as one number: the mean over blocks with its t interval, and how sure it is not none at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.terms import NotComparable
from control.t_test import ALPHA, LARGEST_LOG, t_quantile, t_tail

from .effect import ROUNDING, moments

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean over blocks, as a gain (rates) or in the response's own unit, with its 95 % interval and the p of being none at all."""

    effect: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over blocks with its 95 % interval by Student's t; a single block has none."""

    value: float
    low: float | None
    high: float | None
    n: int


def mean_of(values: Sequence[float]) -> Mean | None:
    """Mean of one value a block with its interval; None of no values."""
    if len(values) < 2:
        return Mean(values[0], None, None, 1) if values else None
    return Mean(*interval(values), len(values))


def paired(changes: Sequence[float], *, log: bool, among: int = 1) -> Paired:
    """One-sample t on what changed in each block; the interval as `interval` has it.

    Raises: NotComparable, where all blocks changed by the very same.
    """
    mean, sd = moments(changes)
    if sd < ROUNDING:
        raise NotComparable("every block has the very same change: these are no measurements")
    p = min(1.0, 2 * t_tail(abs(mean) * math.sqrt(len(changes)) / sd, len(changes) - 1))
    effect, low, high = (math.expm1(min(end, LARGEST_LOG)) if log else end for end in interval(changes, among))
    return Paired(effect, low, high, p)


def interval(values: Sequence[float], among: int = 1) -> tuple[float, float, float]:
    """Mean and 95 % interval by Student's t; of one `among` several, so wide that all of them hold together (Bonferroni)."""
    mean, sd = moments(values)
    half = t_quantile(1 - ALPHA / (2 * among), len(values) - 1) * sd / math.sqrt(len(values))
    return mean, mean - half, mean + half
