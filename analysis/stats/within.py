"""Inside one run: how its steps hang together, whether it settled, and what can be said of it, and of it alone.

Steps are not replicates of a configuration. What is found here describes runs; with one run an arm no arithmetic over its steps can
tell a setting's effect from whatever else made this run different (Hurlbert 1984).

Levels of repetition: how much of the noise lies between runs and how much inside them, and what to repeat more often.

Steps repeat inside a cell, cells in blocks: level 1 is the lowest. Whatever is repeated only at a lower level is not averaged away,
however often. Source: Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, with the authors' erratum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from .ranks import mann_whitney

if TYPE_CHECKING:
    Values = Sequence[float] | np.ndarray

LEVEL = 0.95
DRAWS = 5_000
INDICES = 2_000_000  # of drawn blocks that are held at once
BATCHES = 20
MSER_BATCH = 5
STALLED = 3.0  # times the median, where steps are alike; where they are not, nine in ten decide
Z_POWER = 2.8016  # z.975 + z.80, as printed in texts


@dataclass(frozen=True, slots=True)
class Welch:
    """Difference of two means (first minus second), its 95 % interval and two-sided p, in the unit of the values.

    `t` is None where neither sample varies: the means are then the same (p = 1) or not (p = 0).
    """

    difference: float
    low: float
    high: float
    t: float | None
    p: float


@dataclass(frozen=True, slots=True)
class Distance:
    d: float
    p: float


@dataclass(frozen=True, slots=True)
class Halves:
    """Two-sided p of "the first half of this run is like its second", by three tests; small where the run changed under way."""

    ks_p: float
    mann_whitney_p: float
    welch_p: float


@dataclass(frozen=True, slots=True)
class Stall:
    """Neighbouring steps that took many times as long as steps do: `steps` of them from step `first` (1 is the first), in all `took`.

    `times` is how many times as long as the median step they are on average.
    """

    first: int
    steps: int
    took: float
    times: float


@dataclass(frozen=True, slots=True)
class Omnibus:
    """Do several runs differ at all? By their means (one-way ANOVA, F) and by ranks (Kruskal-Wallis, H), each with its p."""

    f: float
    f_p: float
    h: float
    h_p: float


@dataclass(frozen=True, slots=True)
class Rank:
    chi2: float
    p: float
    blocks: int
    arms: int


def autocorrelation(values: Values) -> np.ndarray:
    """Correlation of a series with itself 0, 1, 2, … steps later: the biased estimator, Σ(x_t - x̄)(x_{t+k} - x̄)/Σ(x_t - x̄)².

    A constant series has none: 1 at lag 0, then 0.
    """
    x = np.asarray(values, float) - np.mean(values)
    n = len(x)
    if not x.any():
        return np.equal(np.arange(n), 0).astype(float)
    padded = np.fft.rfft(x, 1 << (2 * n - 1).bit_length())
    products = np.fft.irfft(np.abs(padded) ** 2)[:n]
    return np.asarray(products / products[0])


def effective_size(values: Values) -> float:
    """How many independent steps these are worth for their mean: n/τ, by Geyer's initial monotone sequence (1992).

    τ = -1 + 2ΣΓ_m, Γ_m = r_2m + r_2m+1 of the autocorrelation, summed while positive, each at most the one before. It exceeds n
    where neighbours alternate.
    """
    r = autocorrelation(values)
    pairs = r[: len(r) // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    positive = np.minimum.accumulate(pairs[: ends[0]] if len(ends) else pairs)
    # At least one: a series that alternates perfectly would be worth infinitely many.
    return float(len(r) / max(-1 + 2 * positive.sum(), 1 / len(r)))


def block_length(n: int) -> int:
    """Steps a block of the bootstrap: n^(1/3), long enough for what neighbouring steps share."""
    return max(1, round(math.cbrt(n)))


def block_bootstrap(x: Values, y: Values, length: int, draws: int = DRAWS) -> tuple[float, float]:
    """95 % interval of mean(x) - mean(y): percentiles of circular block bootstraps of each (Politis & Romano 1992).

    Blocks of `length` neighbouring steps are drawn, running over the end into the beginning; always the same draws.
    """
    rng = np.random.default_rng(0)
    means = _circular_means(np.asarray(x, float), length, draws, rng) - _circular_means(np.asarray(y, float), length, draws, rng)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def batch_half_width(values: Values, batches: int = BATCHES) -> float | None:
    """Half the 95 % interval of the mean from the means of 20 equal stretches; None of a run shorter than two steps a stretch."""
    x = np.asarray(values, float)
    size = len(x) // batches
    if size < 2:
        return None
    means = x[: size * batches].reshape(batches, size).mean(axis=1)
    return float(scipy.stats.t.ppf((1 + LEVEL) / 2, batches - 1) * means.std(ddof=1) / math.sqrt(batches))


def median_interval(values: Values) -> tuple[float, float]:
    """95 % interval of the median from order statistics: binomial, no shape assumed. Of fewer than 6 values, the extremes."""
    x = np.sort(np.asarray(values, float))
    below = max(0, int(scipy.stats.binom.ppf((1 - LEVEL) / 2, len(x), 0.5)) - 1)
    return float(x[below]), float(x[len(x) - 1 - below])


def warmup_steps(values: Values) -> int:
    """How many steps at the start to leave out so that the rest estimates its mean best: MSER-5 (White 1997).

    Batches of 5; the cut d within the first half that makes Σ(ȳ_j - ȳ)²/(n - d)² over the rest smallest.
    """
    x = np.asarray(values, float)
    means = x[: len(x) // MSER_BATCH * MSER_BATCH].reshape(-1, MSER_BATCH).mean(axis=1)
    n = len(means)
    scores = [means[cut:].var() / (n - cut) for cut in range(n // 2 + 1)] if n > 1 else [0.0]
    return int(np.argmin(scores)) * MSER_BATCH


def halves(values: Values) -> Halves:
    """Compare a run with itself: steps up to ⌊n/2⌋ against those after, by Kolmogorov-Smirnov, Mann-Whitney and Welch."""
    x = np.asarray(values, float)
    first, second = x[: len(x) // 2], x[len(x) // 2 :]
    return Halves(kolmogorov_smirnov(first, second).p, mann_whitney(first, second).p, welch(first, second).p)


def stalls(values: Values) -> list[Stall]:
    """Find where a run stood still: stretches of steps 3 times as long as the median and twice as long as nine in ten are.

    Of such steps, a share s of n, chance would make n·s^k stretches of k; one is a stall where that is below .05. So a single long step is
    none, and a series of unlike steps has none.
    """
    x = np.asarray(values, float)
    usual = float(np.median(x))
    is_long = x > max(STALLED * usual, 2 * float(np.quantile(x, 0.9)))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_long, [False]])))
    runs = [(int(start), int(end - start)) for start, end in edges.reshape(-1, 2)]
    return [
        Stall(start + 1, count, float(x[start : start + count].sum()), float(x[start : start + count].mean() / usual))
        for start, count in runs
        if usual > 0 and len(x) * float(is_long.mean()) ** count < 1 - LEVEL
    ]


def kolmogorov_smirnov(x: Values, y: Values) -> Distance:
    """Compare two distributions wherever they differ, not only in their middle; p is exact up to 10,000 steps."""
    d, p = scipy.stats.ks_2samp(x, y)
    return Distance(float(d), float(p))


def welch(x: Values, y: Values) -> Welch:
    x, y = np.asarray(x, float), np.asarray(y, float)
    difference = float(x.mean() - y.mean())
    if not (np.ptp(x) or np.ptp(y)):
        return Welch(difference, difference, difference, None, float(not difference))
    tested = scipy.stats.ttest_ind(x, y, equal_var=False)
    interval = tested.confidence_interval(LEVEL)
    return Welch(difference, float(interval.low), float(interval.high), float(tested.statistic), float(tested.pvalue))


def omnibus(samples: Sequence[Values]) -> Omnibus | None:
    if not any(np.ptp(sample) for sample in samples):
        return None
    means, ranks = scipy.stats.f_oneway(*samples), scipy.stats.kruskal(*samples)
    return Omnibus(float(means.statistic), float(means.pvalue), float(ranks.statistic), float(ranks.pvalue))


def friedman(table: Sequence[Sequence[float]]) -> Rank | None:
    """Test whether any arm differs from the others by its ranks within blocks (Friedman 1937); shape (blocks, arms), none missing.

    None for fewer than three arms or two blocks, and where all are equal in all blocks. p is by χ², which is near from ten blocks on.
    """
    x = np.asarray(table, float)
    if x.ndim != 2 or x.shape[0] < 2 or x.shape[1] < 3 or not np.ptp(x, axis=1).any():
        return None
    result = scipy.stats.friedmanchisquare(*x.T)
    return Rank(float(result.statistic), float(result.pvalue), *x.shape)


def detectable_within(values: Values) -> float:
    """Smallest difference between two such runs that their steps' scatter alone would let a test find 4 times in 5, a fraction.

    (z.975 + z.80)·√(2s²/n)/mean. It takes runs of one configuration to be equal: a lower bound, whatever runs do.
    """
    x = np.asarray(values, float)
    return float(Z_POWER * math.sqrt(2 * x.var(ddof=1) / len(x)) / x.mean())


def _circular_means(x: np.ndarray, length: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Means of as many series of len(x) steps, each put together from blocks; the last block is cut to fit."""
    n = len(x)
    length = min(length, n)
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([x, x]))])
    whole, rest = divmod(n, length)
    means = []
    # A long series is put together a few draws at a time: indices of all of them would fill the memory.
    for done in range(0, draws, chunk := max(1, INDICES // (whole + 1))):
        starts = rng.integers(0, n, (min(chunk, draws - done), whole + 1))
        blocks = sums[starts[:, :whole] + length] - sums[starts[:, :whole]]
        means.append((blocks.sum(axis=1) + sums[starts[:, whole] + rest] - sums[starts[:, whole]]) / n)
    return np.concatenate(means)


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
