"""Comparing by rank and by sign: what holds when the spread is no bell curve and one odd value must not decide.

Two samples: Mann-Whitney, the Hodges-Lehmann shift and how often one exceeds the other. Paired blocks: the exact sign-flip test and
the median of Walsh averages. Their intervals are order statistics, exact where the samples are small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from analysis.terms import Effect

from .effect import log_gains

if TYPE_CHECKING:
    Values = Sequence[float] | np.ndarray

LEVEL = 0.95
EXACT = 50  # values a sample, up to which the distribution of ranks is counted out; above, the normal one agrees to 3 digits
ALL_FLIPS = 16  # blocks, up to which all 2^b sign patterns are tried
DRAWS = 9_999  # of them above that
HALVINGS = 60  # of the range of all differences: what is left is less than their rounding
ROUNDING = 1e-12  # relative: sums of the same numbers in another order differ by less


@dataclass(frozen=True, slots=True)
class RankTest:
    """Whether values of one sample tend to exceed those of the other.

    `u` counts the pairs in which x is larger, a tie as half; `a12` is their share (Vargha & Delaney's Â12: 0.5 is no tendency). `p`
    is two-sided, exact where there are few values and no ties, else from the normal distribution with corrections for both.
    """

    u: float
    a12: float
    p: float


@dataclass(frozen=True, slots=True)
class Shift:
    """A typical difference, in the unit of the values, with its interval.

    `confidence` is what the interval really has: order statistics come in steps, and this is the narrowest that has the level asked
    for. Of very few values none has it; the widest is given then, with the confidence it has.
    """

    estimate: float
    low: float
    high: float
    confidence: float


def mann_whitney(x: Values, y: Values) -> RankTest:
    x, y = np.asarray(x, float), np.asarray(y, float)
    both = np.concatenate([x, y])
    distinct = len(np.unique(both))
    exact = distinct == len(both) and max(len(x), len(y)) <= EXACT
    u, p = scipy.stats.mannwhitneyu(x, y, method="exact" if exact else "asymptotic")
    # Where all values are one, ranks say nothing; scipy divides by their spread.
    return RankTest(float(u), float(u) / (len(x) * len(y)), float(p) if distinct > 1 else 1.0)


def shift(x: Values, y: Values, level: float = LEVEL) -> Shift:
    """By how much x exceeds y: the median of all differences x_i - y_j (Hodges & Lehmann 1963), and its interval.

    The interval ends at the k-th smallest and k-th largest difference, k from the distribution of U: exact up to 50 values a
    sample, normal above. No difference is stored: 10,000 steps against 10,000 are no burden.
    """
    x, y = np.sort(np.asarray(x, float)), np.sort(np.asarray(y, float))
    m, n = len(x), len(y)
    if max(m, n) <= EXACT:
        k, confidence = _rank(_mann_whitney_counts(m, n), level)
    else:
        k, confidence = _normal_rank(m * n / 2, m * n * (m + n + 1) / 12, level)
    middle = (_difference(x, y, (m * n + 1) // 2) + _difference(x, y, m * n // 2 + 1)) / 2
    return Shift(middle, _difference(x, y, k), _difference(x, y, m * n + 1 - k), confidence)


def centre(differences: Values, level: float = LEVEL) -> Shift:
    """Where paired differences lie: the median of their Walsh averages (d_i + d_j)/2, i ≤ j, and its interval.

    One wild block moves it little. The interval is Wilcoxon's signed-rank test turned round: exact up to 50 pairs, normal above.
    """
    d = np.asarray(differences, float)
    n = len(d)
    first, second = np.triu_indices(n)
    walsh = np.sort((d[first] + d[second]) / 2)
    if n <= EXACT:
        k, confidence = _rank(_signed_rank_counts(n), level)
    else:
        k, confidence = _normal_rank(len(walsh) / 2, n * (n + 1) * (2 * n + 1) / 24, level)
    return Shift(float(np.median(walsh)), float(walsh[k - 1]), float(walsh[-k]), confidence)


def sign_flip_p(differences: Values) -> float:
    """Two-sided p of paired differences, from nothing but that without an effect each could as well have had the other sign.

    All 2^b patterns of signs up to 16 blocks: the share whose sum is at least as far from 0 as the one seen. Above that 9,999 patterns
    are drawn (always the same ones) and the one seen is counted among them. The smallest p is 2/2^b: below 6 blocks never under 0.05.
    """
    d = np.asarray(differences, float)
    seen = abs(d.sum()) - ROUNDING * np.abs(d).sum()
    if len(d) <= ALL_FLIPS:
        sums = np.zeros(1)
        for value in d:
            sums = np.concatenate([sums + value, sums - value])
        return float((np.abs(sums) >= seen).mean())
    signs = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (DRAWS, len(d)))
    return float((1 + (np.abs(signs @ d) >= seen).sum()) / (1 + DRAWS))


@dataclass(frozen=True, slots=True)
class Opinion:
    """The same contrast by ranks. `gain` is the Hodges-Lehmann estimate, a fraction; `p` is two-sided and not adjusted.

    `confidence` is what the interval really has: with few units order statistics do not reach 95 %. `flip_p` is the exact sign-flip
    test of paired blocks, which asks for the mean as t does, but assumes no distribution; None where there are no pairs.
    """

    test: str
    gain: float
    low: float
    high: float
    confidence: float
    p: float
    flip_p: float | None = None


def opinion(effect: Effect) -> Opinion:
    """Return a second opinion on a contrast that assumes no distribution: is the verdict owed to one odd block?"""
    flip_p = None
    if effect.design != "two-sample":
        gains = log_gains(effect.metric, effect.values_baseline, effect.values_candidate)
        result, p, test = centre(gains), float(scipy.stats.wilcoxon(gains).pvalue), "signed-rank"
        flip_p = sign_flip_p(gains)
    else:
        sign = 1.0 if effect.metric.better == "higher" else -1.0
        base, after = ([sign * math.log(value) for value in arm] for arm in (effect.values_baseline, effect.values_candidate))
        result, p, test = shift(after, base), mann_whitney(after, base).p, "Mann-Whitney"
    gain, low, high = (math.expm1(value) for value in (result.estimate, result.low, result.high))
    return Opinion(test, gain, low, high, result.confidence, p, flip_p)


def _difference(x: np.ndarray, y: np.ndarray, k: int) -> float:
    """Find the k-th smallest of all differences x_i - y_j of two sorted samples by halving: guess one, count those that are no larger."""

    def reach(difference: float) -> np.ndarray:
        return np.searchsorted(x, y + difference, side="right")

    rounding = ROUNDING * float(np.abs(x).max() + np.abs(y).max())
    low, high = float(x[0] - y[-1]), float(x[-1] - y[0]) + rounding
    for _ in range(HALVINGS):
        guess = (low + high) / 2
        if reach(guess).sum() >= k:
            high = guess
        else:
            low = guess
    below = reach(high)
    return float((x[below - 1] - y)[below > 0].max())


@lru_cache(maxsize=64)
def _mann_whitney_counts(m: int, n: int) -> tuple[int, ...]:
    """Count the orders of m + n values by their U = 0 … mn: the coefficients of the Gaussian binomial."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for at in range(m * n, n + i - 1, -1):  # times 1 - q^(n+i)
            counts[at] -= counts[at - n - i]
        for at in range(i, m * n + 1):  # over 1 - q^i
            counts[at] += counts[at - i]
    return tuple(counts)


@lru_cache(maxsize=64)
def _signed_rank_counts(n: int) -> tuple[int, ...]:
    """Count the sign patterns of n ranked values by their sum of positive ranks, 0 … n(n+1)/2."""
    counts = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for at in range(len(counts) - 1, rank - 1, -1):
            counts[at] += counts[at - rank]
    return tuple(counts)


def _rank(counts: Sequence[int], level: float) -> tuple[int, float]:
    """Largest k whose k-th smallest and k-th largest value enclose the level, and the confidence they have; at least 1."""
    total = sum(counts)
    below = [2 * count / total for count in accumulate(counts[: len(counts) // 2 + 1])]
    k = max(1, sum(tail <= 1 - level for tail in below))
    return k, max(0.0, 1 - below[k - 1])


def _normal_rank(mean: float, variance: float, level: float) -> tuple[int, float]:
    z = float(scipy.stats.norm.ppf((1 + level) / 2))
    return max(1, round(mean - z * variance**0.5)), level
