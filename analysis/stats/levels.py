"""Levels of repetition: how much of the noise lies between runs and how much inside them, and what to repeat more often.

Steps repeat inside a cell, cells in blocks: level 1 is the lowest. Whatever is repeated only at a lower level is not averaged away,
however often. Source: Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, with the authors' erratum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Levels:
    """What repetition at each level says; index 0 is level 1, the lowest.

    `repetitions`: how often each level was repeated inside the next. `s2`: variance of the means at a level around their parent's;
    `t2`: what of it the level itself adds, the level below taken off (never below 0). Both in the square of the values' unit.
    """

    mean: float
    repetitions: tuple[int, ...]
    s2: tuple[float, ...]
    t2: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    ratio: float
    low: float
    high: float


def levels(values: np.ndarray) -> Levels:
    """Take a nested, equally repeated measurement apart; axis 0 is the highest level, the last axis level 1 (steps).

    S_i² = Σ (mean at level i - its parent's mean)² / (∏ r_k over k > i · (r_i - 1)); T_1² = S_1², T_i² = S_i² - S_{i-1}²/r_{i-1}
    (as printed in 2013 the correction has T_{i-1}; the erratum says S). Every axis needs two repetitions.
    """
    s2, means = [], np.asarray(values, float)
    while means.ndim:
        s2.append(float(means.var(axis=-1, ddof=1).mean()))
        means = means.mean(axis=-1)
    repetitions = tuple(reversed(np.shape(values)))
    below = [0.0, *(variance / r for variance, r in zip(s2, repetitions, strict=True))]
    t2 = tuple(max(0.0, variance - lower) for variance, lower in zip(s2, below, strict=False))
    return Levels(float(means), repetitions, tuple(s2), t2)


def icc(result: Levels) -> float:
    """Share of the variance that two steps of one cell have in common (intraclass correlation), of two levels: T_2²/(T_1² + T_2²)."""
    within, between = result.t2
    return between / (within + between) if within + between else 0.0


def design_effect(steps: int, correlation: float) -> float:
    """How many times larger the variance of a mean is than n independent steps would give: 1 + (n - 1)·ICC."""
    return 1 + (steps - 1) * correlation


def naive_alarms(steps: int, correlation: float) -> float:
    """How often a 5 % test that takes steps for replicates calls two equal runs different: 2Φ(-1.96/√(design effect))."""
    return 2 * float(scipy.stats.norm.cdf(-scipy.stats.norm.ppf(0.975) / math.sqrt(design_effect(steps, correlation))))


def between_f(result: Levels) -> tuple[float, float] | None:
    """F and p of "the cells of an arm do not differ beyond their steps", of two levels: r_1·S_2²/S_1². None where steps do not vary."""
    (steps, cells), (within, between) = result.repetitions, result.s2
    if not within:
        return None
    f = steps * between / within
    return f, float(scipy.stats.f.sf(f, cells - 1, cells * (steps - 1)))


def half_width(result: Levels) -> float:
    """Half the 95 % interval of the mean, from the highest level alone: t with r_n - 1 degrees of freedom · √(S_n²/r_n)."""
    return _t(result.repetitions[-1] - 1) * math.sqrt(result.s2[-1] / result.repetitions[-1])


def naive_half_width(values: np.ndarray) -> float:
    """Half the interval that takes all steps of all cells for independent; shown beside the right one, never used."""
    return _t(np.size(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(np.size(values))


def best_repetitions(t2: Sequence[float], costs: Sequence[float]) -> list[float]:
    """How often to repeat each level but the highest so that a given time gives the narrowest interval; round up.

    t2: variance each level adds, lowest first. costs: of one repetition at each level, the levels inside it not counted (a step; a
    cell's start), in any unit. r_i = √(c_{i+1}/c_i · T_i²/T_{i+1}²): infinite where the higher level adds nothing of its own.
    """
    return [math.sqrt(costs[i + 1] / costs[i] * t2[i] / t2[i + 1]) if t2[i + 1] else math.inf for i in range(len(t2) - 1)]


def ratio_interval(old: Levels, new: Levels) -> Ratio | None:
    """How many times as large the new mean is, with Fieller's interval from each arm's own.

    [XY ± √((XY)² - (X² - g²)(Y² - h²))]/(X² - g²), X ± g the old mean and Y ± h the new. None where X is not above g:
    no ratio is bounded then.
    """
    g, h = half_width(old), half_width(new)
    product, rest = old.mean * new.mean, old.mean**2 - g**2
    if rest <= 0:
        return None
    root = math.sqrt((g * new.mean) ** 2 + h**2 * rest)  # the same difference of products, which rounding cannot turn negative
    return Ratio(new.mean / old.mean, (product - root) / rest, (product + root) / rest)


def _t(df: int) -> float:
    return float(scipy.stats.t.ppf((1 + LEVEL) / 2, df))
