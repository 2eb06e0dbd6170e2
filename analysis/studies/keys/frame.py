"""What every analysis of a design begins with: responses on their scale, blocks and points as columns, contrasts, and the pure error.

The error is what the same point scatters by from block to block, after each block's own level is taken off (block × point): the
scatter of whole cells run again. Steps inside a cell never enter. It is *pure*: no effect that the terms leave out can inflate it.
Least squares are those of statsmodels, by QR on columns with the mean taken off the response.

A two-level point is a row of -1 and +1. The column of an interaction is the product of its factors' columns. Where a product of columns
(a *word*) is the same at every point, effects whose product it is are one column and cannot be told apart: aliases. All words are found
from the points themselves, as solutions of linear equations over {0, 1} (Box, Hunter & Hunter 1978, ch. 12), so what a file claims of its
own generators is never needed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtrc

from analysis.stats.effect import ROUNDING
from analysis.terms import NotComparable
from control.t_test import LARGEST_LOG, t_quantile, t_tail

from .terms import DesignFactor, Level, Means, Observed, Pair, Term, VariationSource

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


# A column of which less than this part is new adds nothing to those before it.
DEPENDENT = 1e-8


@dataclass(frozen=True, slots=True)
class FrameFit:
    """Least squares: coefficients, (XᵀX)⁻¹, residual sum of squares and its degrees of freedom."""

    beta: Floats
    inverse: Floats
    rss: float
    df: int

    def contrast(self, weights: Floats) -> tuple[float, float]:
        """A weighted sum of coefficients, and its variance in units of the error's."""
        return float(weights @ self.beta), float(weights @ self.inverse @ weights)


def fit(columns: Floats, values: Floats) -> FrameFit:
    """Fit columns that are independent of each other, the first of them constant; `values` as they were measured."""
    from statsmodels.regression.linear_model import OLS

    level = float(values.mean())
    fitted = OLS(values - level, columns).fit(method="qr")
    beta = np.array(fitted.params, float)
    beta[0] += level
    residual = values - level - columns @ np.asarray(fitted.params)
    return FrameFit(beta, np.asarray(fitted.normalized_cov_params), float(residual @ residual), len(values) - columns.shape[1])


def rss(columns: Floats, values: Floats) -> tuple[float, int]:
    """Residual sum of squares and degrees of freedom of columns that may depend on each other, the first of them constant."""
    basis = Basis(len(columns), columns.shape[1])
    for column in columns.T:
        basis.grow(column)
    df = len(values) - basis.rank
    rest = basis.left(values - values.mean())
    return (float(rest @ rest) if df else 0.0), df


def independent(columns: Floats) -> list[int]:
    """Which columns, from the left, add something to those before them."""
    basis = Basis(len(columns), columns.shape[1])
    return [index for index in range(columns.shape[1]) if basis.grow(columns[:, index])]


class Basis:
    """Orthonormal columns that grow by what is new in each further one (Gram-Schmidt, twice for rounding)."""

    def __init__(self, rows: int, most: int) -> None:
        self._columns = np.zeros((rows, min(rows, most)))
        self.rank = 0

    def grow(self, column: Floats) -> bool:
        """Add a column's new part; False where it has none."""
        size = float(np.linalg.norm(column))
        if size == 0 or self.rank == self._columns.shape[1]:
            return False
        rest = self.left(column.astype(float))
        left = float(np.linalg.norm(rest))
        if left < DEPENDENT * size:
            return False
        self._columns[:, self.rank] = rest / left
        self.rank += 1
        return True

    def left(self, column: Floats) -> Floats:
        basis = self._columns[:, : self.rank]
        for _ in range(2):
            column = column - basis @ (basis.T @ column)
        return column


def coded_levels(labels: Sequence[Hashable], levels: Sequence[Hashable]) -> Floats:
    """Code a factor of L levels as L-1 columns that sum to zero over its levels: the first is -1 in all, each other +1 in its own.

    Shape (rows, L-1). With two levels it is the usual -1, +1; coefficients are deviations from the mean of all levels.
    """
    result = np.zeros((len(labels), max(0, len(levels) - 1)))
    place = {level: at for at, level in enumerate(levels)}
    for row, label in enumerate(labels):
        at = place[label]
        if at == 0:
            result[row] = -1
        else:
            result[row, at - 1] = 1
    return result


def base_columns(blocks: Sequence[str]) -> Floats:
    return np.column_stack([np.ones(len(blocks)), coded_levels(blocks, list(dict.fromkeys(blocks)))])


def pure_error(base: Floats, points: Sequence[Hashable], values: Floats) -> tuple[float, int]:
    return rss(np.column_stack([base, coded_levels(points, list(dict.fromkeys(points)))]), values)


def total(values: Floats) -> float:
    rest = values - values.mean()
    rest -= rest.mean()
    return float(rest @ rest)


# An effect: the numbers of its factors, in order; () is the mean.
Effect = tuple[int, ...]
MOST_WORDS = 14  # bits: beyond 16,384 words the list of aliases helps nobody


def effects_up_to(factors: int, order: int) -> Iterator[Effect]:
    """All effects of at most so many factors, main effects first, then interactions of two, and so on."""
    for size in range(1, min(order, factors) + 1):
        yield from combinations(range(factors), size)


def column(coded: Floats, effect: Effect) -> Floats:
    """The contrast of an effect over rows of -1 and +1: shape (rows,)."""
    result: Floats = np.prod(coded[:, list(effect)], axis=1)
    return result


def defining_words(coded: Floats) -> list[Effect]:
    """All products of factors that are constant over the points, shortest first: the defining relation, without its signs.

    Raises: ValueError, where there are more than 2^14: so few points tell hardly anything apart.
    """
    bits = (np.asarray(coded) > 0).astype(np.uint8)
    basis = _null_space(bits ^ bits[0])
    if len(basis) > MOST_WORDS:
        raise ValueError(f"{len(coded)} points for {coded.shape[1]} factors")
    result = set[Effect]()
    for picked in range(1, 2 ** len(basis)):
        word = np.zeros(bits.shape[1], np.uint8)
        for at, vector in enumerate(basis):
            if picked >> at & 1:
                word ^= vector
        result.add(tuple(int(index) for index in np.flatnonzero(word)))
    return sorted(result, key=lambda word: (len(word), word))


def _null_space(rows: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.uint8]]:
    """Vectors v with rows · v = 0 modulo 2, a basis of them."""
    reduced = rows.copy()
    pivots: list[int] = []
    for index in range(reduced.shape[1]):
        top = len(pivots)
        hits = np.flatnonzero(reduced[top:, index])
        if not len(hits):
            continue
        reduced[[top, top + int(hits[0])]] = reduced[[top + int(hits[0]), top]]
        for row in map(int, np.flatnonzero(reduced[:, index])):
            if row != top:
                reduced[row] ^= reduced[top]
        pivots.append(index)
    basis = []
    for free in (index for index in range(reduced.shape[1]) if index not in pivots):
        vector = np.zeros(reduced.shape[1], np.uint8)
        vector[free] = 1
        for row, pivot in enumerate(pivots):
            vector[pivot] = reduced[row, free]
        basis.append(vector)
    return basis


def aliases(effect: Effect, defining: Sequence[Effect], order: int) -> list[Effect]:
    """Effects of at most so many factors that share the column of this one, up to its sign; the mean is ()."""
    same = {tuple(sorted(set(effect) ^ set(word))) for word in defining}
    return sorted((entry for entry in same if len(entry) <= order), key=lambda entry: (len(entry), entry))


def resolution(defining: Sequence[Effect]) -> int | None:
    """Length of the shortest word: III mixes main effects with interactions of two, IV those with each other; None: nothing is mixed."""
    return min(map(len, defining), default=None)


def partly_mixed(coded: Floats) -> float:
    """Largest correlation, other than 0 and 1, of a main effect with an interaction of two others: what Plackett-Burman designs have."""
    mains = coded.T
    count = coded.shape[1]
    largest = 0.0
    for pair in combinations(range(count), 2):
        shared = np.abs(mains @ column(coded, pair)) / len(coded)
        shared[list(pair)] = 0
        largest = max(largest, float(shared[shared < 1 - 1e-9].max(initial=0.0)))
    return largest


# Fewer degrees of freedom say too little of the error: 1 makes a 95 % interval 13 standard errors wide.
FEWEST_DF = 2
COMFORTABLE_DF = 5
FEWEST_RUNS = 3  # at either level, or of either tweak set


@dataclass(frozen=True)
class Frame:
    """Rows as arrays. `y` is on the scale of the analysis: log gain, so that more is better, or the response as it is."""

    data: Observed
    y: Floats
    blocks: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    base: Floats
    error_ss: float
    error_df: int

    @cached_property
    def total(self) -> float:
        return total(self.y)

    @property
    def replicated(self) -> bool:
        return self.error_df >= FEWEST_DF

    @property
    def error_ms(self) -> float | None:
        return self.error_ss / self.error_df if self.replicated else None

    @cached_property
    def of_points(self) -> Floats:
        return coded_levels(self.keys, list(dict.fromkeys(self.keys)))

    @cached_property
    def freed(self) -> Floats:
        blocks = self.base.shape[1] - 1
        if not blocks:
            return self.y
        fitted = fit(np.column_stack([self.base, self.of_points]), self.y) if self._connected() else fit(self.base, self.y)
        return self.y - self.base[:, 1:] @ fitted.beta[1 : blocks + 1]

    def _connected(self) -> bool:
        columns = np.column_stack([self.base, self.of_points])
        return bool(np.linalg.matrix_rank(columns) == columns.shape[1])

    def unit(self, value: float) -> float:
        if self.data.scale == "raw":
            return value
        return math.exp(value if self.data.better == "higher" else -value)

    def blocks_source(self) -> list[VariationSource]:
        df = self.base.shape[1] - 1
        if not df:
            return []
        without, _ = rss(np.column_stack([self.base[:, :1], self.of_points]), self.y)
        return [self.source("blocks", df, without - self.error_ss if self.error_df else without)]

    def source(self, name: str, df: int, ss: float, factors: tuple[str, ...] = (), *, tested: bool = False) -> VariationSource:
        ms = ss / df if df else None
        f = ms / self.error_ms if tested and ms is not None and self.error_ms else None
        p = None if f is None else float(fdtrc(df, self.error_df, max(0.0, f)))
        return VariationSource(name, df, ss, ss / self.total, ms, f, p, factors)

    def closing_sources(self) -> list[VariationSource]:
        error = [self.source("error", self.error_df, self.error_ss)] if self.error_df else []
        return [*error, VariationSource("total", len(self.y) - 1, self.total, 1.0)]

    def term(
        self,
        label: str,
        factors: tuple[str, ...],
        means: Means,
        effect: float,
        variance: float,
        *,
        aliases: tuple[str, ...] = (),
        coefficient: float | None = None,
        level: str | None = None,
        own: tuple[float, int] | None = None,
    ) -> Term:
        """Make a term that is not yet adjusted for the others; `variance` is the effect's, in units of the error's.

        It stands on the common error, or on its `own` standard error and degrees of freedom.
        """
        se, df = own or (None if self.error_ms is None else math.sqrt(variance * self.error_ms), self.error_df)
        half = None if se is None else t_quantile(0.975, df) * se
        p = None if not se else min(1.0, 2 * t_tail(abs(effect) / se, df))
        return with_interval(
            Term(
                label=label,
                factors=factors,
                means=means,
                effect=effect,
                se=se,
                df=None if se is None else float(df),
                p=p,
                share=effect**2 / variance / self.total,
                aliases=aliases,
                coefficient=coefficient,
                level=level,
            ),
            half,
            self.data.scale == "log",
        )

    @cached_property
    def mean(self) -> float:
        return float(self.freed.mean())

    def level(self, name: tuple[str, str], n: int, mean: float, variance: float) -> Level:
        low = high = None
        if self.error_ms is not None:
            half = t_quantile(0.975, self.error_df) * math.sqrt(variance * self.error_ms)
            low, high = sorted((self.unit(mean - half), self.unit(mean + half)))
        return Level(*name, n, self.unit(mean), mean - self.mean, low, high)

    def pairs(self) -> tuple[Pair, ...]:
        """Mean responses at every two levels of every two factors, blocks taken off; none of a pair of which a combination is missing."""
        result: list[Pair] = []
        for number, second_number in combinations(range(len(self.data.factors)), 2):
            first, second = self.data.factors[number], self.data.factors[second_number]
            cells = {
                (a, b): [at for at, key in enumerate(self.keys) if (key[number], key[second_number]) == (a, b)]
                for a, b in _grid(first, second)
            }
            if all(cells.values()):
                result += [
                    Pair((first.name, second.name), at, len(rows), self.unit(float(self.freed[rows].mean()))) for at, rows in cells.items()
                ]
        return tuple(result)


def _grid(first: DesignFactor, second: DesignFactor) -> list[tuple[str, str]]:
    return [(a, b) for a in first.levels for b in second.levels]


def with_interval(term: Term, half: float | None, log: bool) -> Term:  # noqa: FBT001  # the scale of two
    low, high = (None, None) if half is None else (term.effect - half, term.effect + half)
    gains = [None if not log or value is None else math.expm1(min(value, LARGEST_LOG)) for value in (term.effect, low, high)]
    return replace(term, low=low, high=high, gain=gains[0], gain_low=gains[1], gain_high=gains[2])


def frame_of(data: Observed) -> Frame:
    """Lay the rows out as arrays.

    Raises: NotComparable, where there is nothing to analyse: too few cells, or no scatter at all.
    """
    levels = {row.levels for row in data.rows}
    if len(data.points) < 2:
        raise NotComparable(f"nothing was varied: there is only {next(iter(data.points))}.")
    if len(levels) < 2:
        raise NotComparable(f"cells of {len(levels)} of {len(data.points)} points were measured: nothing to set against each other.")
    sign = -1.0 if data.better == "lower" else 1.0
    values = np.array([row.value for row in data.rows])
    y = sign * np.log(values) if data.scale == "log" else values
    blocks = tuple(row.block for row in data.rows)
    base = base_columns(blocks)
    keys = tuple(row.levels for row in data.rows)
    error_ss, error_df = pure_error(base, keys, y)
    result = Frame(data, y, blocks, keys, base, error_ss, error_df)
    if result.total <= ROUNDING**2 * max(1.0, float((y**2).sum())):
        raise NotComparable(f"all {len(y)} values of {data.metric} are the same: these are no measurements.")
    if error_df and math.sqrt(error_ss / error_df) <= ROUNDING * max(1.0, float(np.abs(y).max())):
        raise NotComparable(f"repeats of a point have the very same {data.metric}: these are not independent measurements.")
    return result


def half_counts(keys: Sequence[tuple[str, ...]], at: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key in keys:
        counts[key[at]] = counts.get(key[at], 0) + 1
    return counts
