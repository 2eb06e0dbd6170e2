"""Whether the data refuse Poisson arrivals and exponential service times, each by tests that look at another side of it.

That nothing is refused is no proof: few jobs refuse little. Over the tests of one series p-values are adjusted after Holm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from analysis.stats.adjust import holm

if TYPE_CHECKING:
    from collections.abc import Sequence


ALPHA = 0.05
FEWEST = 8
DRAWS, SIZE = 100_000, 40
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ShapeTest:
    """One test: what it asks, its statistic (a distance, a correlation, a distance) and p, as it is and adjusted."""

    asks: str
    statistic: float
    p: float
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class Shape:
    """What `count` values of a series say about a hypothesis; `refused` are the sides on which they refuse it."""

    count: int
    tests: tuple[ShapeTest, ...]

    @property
    def refused(self) -> tuple[ShapeTest, ...]:
        """Tests whose adjusted p lies below 5 %."""
        return tuple(test for test in self.tests if test.p_adjusted < ALPHA)


def arrivals(submits: Sequence[np.ndarray]) -> Shape | None:
    """Test Poisson arrivals of one rate: exponential gaps, gaps without memory, a rate that stays. None of too few.

    `submits`: of each stream the times of submission, rising, seconds.
    """
    gaps = [np.diff(submit) for submit in submits]
    every = np.concatenate([np.zeros(0), *gaps])
    if len(every) < FEWEST:
        return None
    # Given when the last one came, those before it are uniform between the first and it.
    places = [(submit[1:-1] - submit[0]) / (submit[-1] - submit[0]) for submit in submits if len(submit) > 2 and submit[-1] > submit[0]]
    tests = [("gaps are exponential", *_exponential(every)), ("gaps do not hang together", *_memory(gaps))]
    if places:
        constant = scipy.stats.kstest(np.concatenate(places), "uniform")
        tests.append(("the rate stays", float(constant.statistic), float(constant.pvalue)))
    return _shape(len(every), tests)


def services(times: Sequence[np.ndarray]) -> Shape | None:
    """Test exponential service times, each as if alone. None of too few. `times`: of each stream, in the order of submission, seconds."""
    every = np.concatenate([np.zeros(0), *times])
    if len(every) < FEWEST:
        return None
    return _shape(len(every), [("times are exponential", *_exponential(every)), ("times do not hang together", *_memory(times))])


def _shape(count: int, tests: list[tuple[str, float, float]]) -> Shape:
    adjusted = holm([p for _, _, p in tests])
    return Shape(count, tuple(ShapeTest(*test, p_adjusted) for test, p_adjusted in zip(tests, adjusted, strict=True)))


def _exponential(values: np.ndarray) -> tuple[float, float]:
    """Largest distance from the exponential distribution of the same mean, and its p (Lilliefors 1969).

    The mean is that of the values, so that tables of Kolmogorov and Smirnov would accept too much. In Stephens's form (1974) the statistic
    has one distribution for all counts; that is drawn, always the same.
    """
    mean = float(values.mean())
    if mean <= 0:
        return 1.0, 1 / (DRAWS + 1)
    distance = _distance(np.sort(values)[None, :] / mean)[0]
    larger = int((_null() >= _of_stephens(distance, len(values))).sum())
    return float(distance), (larger + 1) / (DRAWS + 1)


def _distance(ordered: np.ndarray) -> np.ndarray:
    """Distances for rows of ordered values of mean 1: shape (rows, values) → (rows,)."""
    count = ordered.shape[1]
    below = -np.expm1(-ordered)
    steps = np.arange(count + 1) / count
    return np.asarray(np.maximum((steps[1:] - below).max(axis=1), (below - steps[:-1]).max(axis=1)))


def _of_stephens(distance: np.ndarray | float, count: int) -> np.ndarray:
    return np.asarray((distance - 0.2 / count) * (math.sqrt(count) + 0.26 + 0.5 / math.sqrt(count)))


@lru_cache(maxsize=1)
def _null() -> np.ndarray:
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(10):
        drawn = np.sort(rng.standard_exponential((DRAWS // 10, SIZE)), axis=1)
        parts.append(_of_stephens(_distance(drawn / drawn.mean(axis=1, keepdims=True)), SIZE))
    return np.concatenate(parts)


def _memory(series: Sequence[np.ndarray]) -> tuple[float, float]:
    """Rank correlation of neighbours, and its two-sided p; ranks because a few long gaps would else decide."""
    before = np.concatenate([times[:-1] for times in series if len(times)])
    after = np.concatenate([times[1:] for times in series if len(times)])
    # What differs by less than a clock's rounding is the same.
    if len(before) < 3 or min(np.ptp(before), np.ptp(after)) <= ROUNDING * np.abs(before).max():
        return 0.0, 1.0
    correlation = scipy.stats.spearmanr(before, after)
    return float(correlation.statistic), float(correlation.pvalue)
