"""Linear models of cells: least squares over blocks and factors, and how what a response varies divides among them.

The error is what the same point scatters by from block to block, after each block's own level is taken off (block × point): the scatter of
whole cells run again. Steps inside a cell never enter. It is *pure*: no effect that the terms leave out can inflate it. Where too little
was run again, it is what the terms of two factors, or of one, leave over.

Sums of squares are of Type II: each term adjusted for all that do not contain it. Where the design is balanced they are the textbook's;
where cells were lost they ask the question that makes sense (Langsrud 2003), and do not add up to the total.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import fdtrc

from analysis.terms import NotComparable

from .effect import ROUNDING

if TYPE_CHECKING:
    from typing import Any, Self

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Term = tuple[str, ...]  # the names of its factors

DEPENDENT = 1e-8  # a column of which less than this part is new adds nothing to those before it
FEWEST_DF = 2  # fewer degrees of freedom say too little of the error: 1 makes a 95 % interval 13 standard errors wide
FEWEST_CELLS = 3  # at a level
MOST_COLUMNS = 300  # of interactions; of more nobody reads the table
TOO_MANY = "there are more interactions of these factors than a table shows: main effects alone."
LEFT = "what interactions of {} factors and chance leave: no combination was replicated, so these count as noise"


@dataclass(frozen=True, slots=True)
class Fit:
    """Least squares: coefficients, (XᵀX)⁻¹, residual sum of squares and its degrees of freedom."""

    beta: Floats
    inverse: Floats
    rss: float
    df: int

    def contrast(self, weights: Floats) -> tuple[float, float]:
        """A weighted sum of coefficients, and its variance in units of the error's."""
        return float(weights @ self.beta), float(weights @ self.inverse @ weights)


def fit(columns: Floats, values: Floats) -> Fit:
    """Fit columns that are independent of each other, the first of them constant, by QR on values with their mean taken off."""
    level = float(values.mean())
    q, r = np.linalg.qr(columns)
    beta = np.linalg.solve(r, q.T @ (values - level))
    rest = values - level - columns @ beta
    beta[0] += level
    root = np.linalg.inv(r)
    return Fit(beta, root @ root.T, float(rest @ rest), len(values) - columns.shape[1])


def rss(columns: Sequence[Floats], values: Floats) -> tuple[float, int]:
    """Residual sum of squares and degrees of freedom of columns that may depend on each other, the first of them constant."""
    basis = Basis(columns)
    df = len(values) - basis.rank
    rest = basis.left(values - values.mean())
    return (float(rest @ rest) if df else 0.0), df


def independent(columns: Sequence[Floats]) -> bool:
    return Basis(columns).rank == sum(len(column.T) for column in columns)


class Basis:
    """Orthonormal columns that grow by what is new in each further one (Gram-Schmidt, twice for rounding)."""

    def __init__(self, columns: Sequence[Floats], most: int | None = None) -> None:
        self._columns = np.zeros((len(columns[0]), len(columns[0]) if most is None else most))
        self.rank = 0
        for column in np.column_stack(columns).T:
            self.grow(column)

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


def coded_levels(labels: Sequence[Hashable], levels: Sequence[Hashable] = ()) -> Floats:
    """Code a factor of L levels as L-1 columns that sum to zero over its levels: the first is -1 in all, each other +1 in its own.

    Shape (rows, L-1). With two levels it is the usual -1, +1; coefficients are deviations from the mean of all levels.
    """
    places = {level: at for at, level in enumerate(levels or dict.fromkeys(labels))}
    rows = np.vstack([-np.ones(len(places) - 1), np.eye(len(places) - 1)])
    return rows[[places[label] for label in labels]]


def base_columns(blocks: Sequence[Hashable]) -> Floats:
    return np.column_stack([np.ones(len(blocks)), coded_levels(blocks)])


@dataclass(frozen=True, slots=True)
class VariationSource:
    """One row of the analysis of variance; `f` and `p` are None where a row is not tested (blocks, the error, the total).

    `p_adjusted` is there for interactions that no single term can stand for (more than two levels): Benjamini-Hochberg over all of them.
    """

    name: str
    df: int
    ss: float
    share: float
    ms: float | None = None
    f: float | None = None
    p: float | None = None
    factors: tuple[str, ...] = ()
    p_adjusted: float | None = None


@dataclass(frozen=True)
class Cells:
    """Cells as arrays: their values `y` on the scale of the analysis, block and levels of each, and the error they stand on."""

    y: Floats
    blocks: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    base: Floats
    error_ss: float
    error_df: int

    @classmethod
    def of(cls, y: Floats, blocks: Sequence[str], keys: Sequence[tuple[str, ...]], planned: int, name: str, **more: Any) -> Self:
        """Lay cells out; `planned` is how many points were to be measured, `name` that of the response.

        Raises: NotComparable, where there is nothing to analyse: too few points, or no scatter at all.
        """
        if (points := len(set(keys))) < 2:
            raise NotComparable(f"cells of {points} of {planned} points were measured: nothing to set against each other.")
        base = base_columns(blocks)
        result = cls(y, tuple(blocks), tuple(keys), base, *rss([base, coded_levels(keys)], y), **more)
        if result.total <= ROUNDING**2 * max(1.0, float((y**2).sum())):
            raise NotComparable(f"all {len(y)} values of {name} are the same: these are no measurements.")
        if result.error_df and math.sqrt(result.error_ss / result.error_df) <= ROUNDING * max(1.0, float(np.abs(y).max())):
            raise NotComparable(f"repeats of a point have the very same {name}: these are not independent measurements.")
        return result

    @cached_property
    def total(self) -> float:
        rest = self.y - self.y.mean()
        rest -= rest.mean()
        return float(rest @ rest)

    @property
    def replicated(self) -> bool:
        return self.error_df >= FEWEST_DF

    @property
    def error_ms(self) -> float | None:
        return self.error_ss / self.error_df if self.replicated else None

    @property
    def blocked(self) -> bool:
        return bool(self.base.shape[1] > 1)

    @cached_property
    def freed(self) -> Floats:
        """Values with the blocks' own levels taken off."""
        if not self.blocked:
            return self.y
        columns = np.column_stack([self.base, coded_levels(self.keys)])
        fitted = fit(columns if np.linalg.matrix_rank(columns) == columns.shape[1] else self.base, self.y)
        return self.y - self.base[:, 1:] @ fitted.beta[1 : self.base.shape[1]]

    @property
    def balanced(self) -> bool:
        """Whether every combination of levels, and every block, holds equally many cells."""
        counts = Counter((block, *key) for block, key in zip(self.blocks, self.keys, strict=True))
        whole = math.prod(len(set(labels)) for labels in (self.blocks, *zip(*self.keys, strict=True)))
        return len(counts) == whole and len({*counts.values()}) == 1

    def count(self, at: int) -> Counter[str]:
        """How many cells stood at each level of a factor, by its place."""
        return Counter(key[at] for key in self.keys)

    def source(self, name: str, df: int, ss: float, factors: tuple[str, ...] = (), *, tested: bool = False) -> VariationSource:
        ms = ss / df if df else None
        f = ms / self.error_ms if tested and ms is not None and self.error_ms else None
        p = None if f is None else float(fdtrc(df, self.error_df, max(0.0, f)))
        return VariationSource(name, df, ss, ss / self.total, ms, f, p, factors)

    def blocks_source(self, columns: Sequence[Floats]) -> list[VariationSource]:
        """What blocks add to the columns of a model."""
        if not self.blocked:
            return []
        without, left = (rss([base, *columns], self.y)[0] for base in (self.base[:, :1], self.base))
        return [self.source("blocks", self.base.shape[1] - 1, without - left)]

    def closing_sources(self) -> list[VariationSource]:
        error = [self.source("error", self.error_df, self.error_ss)] if self.error_df else []
        return [*error, VariationSource("total", len(self.y) - 1, self.total, 1.0)]


class LevelMean(NamedTuple):
    """A factor at a level, over all other levels alike; `n` of the `cells` stood there, `n_first` at its `first` level.

    `mean` and `change` (from the first level) are each an estimate and its variance, in units of the error's.
    """

    factor: str
    first: str
    level: str
    n: int
    n_first: int
    mean: tuple[float, float]
    change: tuple[float, float]


@dataclass(frozen=True)
class FactorModel:
    """Main effects and interactions of two, each with its columns; `cells` have the error that they stand on, `error` says which it is."""

    cells: Cells
    levels: Mapping[str, Sequence[str]]
    columns: Mapping[Term, Floats]
    error: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, cells: Cells, levels: Mapping[str, Sequence[str]]) -> FactorModel:
        """Choose the terms, and their error: that of replicates where there are enough, else what the terms leave.

        `levels` are those that were measured, by factor, in the order of the cells' keys.

        Raises: NotComparable, where neither is there, or nothing was varied.
        """
        labels = dict(zip(levels, zip(*cells.keys, strict=True), strict=True))
        mains: dict[Term, Floats] = {(name,): coded_levels(labels[name], each) for name, each in levels.items() if len(each) > 1}
        if not mains:
            raise NotComparable("no factor stood at more than one level.")
        many = sum(a.shape[1] * b.shape[1] for a, b in combinations(mains.values(), 2)) > MOST_COLUMNS
        pairs = {} if many else {(*a, *b): _product(mains[a], mains[b]) for a, b in combinations(mains, 2)}
        notes = (TOO_MANY,) if many else ()
        if cells.replicated:
            for (name,) in mains:
                if sum(count >= FEWEST_CELLS for count in Counter(labels[name]).values()) < 2:
                    raise NotComparable(f"fewer than {FEWEST_CELLS} cells at the levels of {name}.")
            return cls(cells, levels, mains | pairs, pure_error(cells), notes)
        for columns, size in ((mains | pairs, "three"), (mains, "two")):
            ss, df = rss([cells.base, *columns.values()], cells.y)
            if len(mains) > 1 and df >= FEWEST_DF:
                return cls(replace(cells, error_ss=ss, error_df=df), levels, columns, LEFT.format(size), notes)
        raise NotComparable("no point was run twice, and too few are left over to see how far equal cells differ: run more blocks.")

    def _rss(self, terms: Iterable[Term]) -> tuple[float, int]:
        return rss([self.cells.base, *(self.columns[term] for term in terms)], self.cells.y)

    @cached_property
    def terms(self) -> dict[Term, VariationSource]:
        """Each term's row of the analysis of variance; without degrees of freedom where the cells cannot tell it."""
        result = {}
        for term in self.columns:
            others = [other for other in self.columns if other != term and not set(term) <= set(other)]
            (without, df), (with_it, df_with) = self._rss(others), self._rss([*others, term])
            used = df - df_with
            result[term] = self.cells.source(":".join(term), used, max(0.0, without - with_it) if used else 0.0, term, tested=True)
        return result

    @property
    def unestimable(self) -> list[str]:
        return [source.name for source in self.terms.values() if not source.df]

    def sources(self) -> list[VariationSource]:
        """The table: blocks, terms, what these leave, the error, the total."""
        cells, (ss, df) = self.cells, self._rss(self.columns)
        left = df - cells.error_df
        return [
            *cells.blocks_source([*self.columns.values()]),
            *(source for source in self.terms.values() if source.df),
            *([cells.source("what these leave", left, max(0.0, ss - cells.error_ss), tested=True)] if left > 0 else []),
            *cells.closing_sources(),
        ]

    def means(self) -> Iterator[LevelMean]:
        """Means at levels by least squares: adjusted for blocks and what was lost.

        Raises: NotComparable, where some factors never varied without others.
        """
        mains = [term for term in self.columns if len(term) == 1]
        for terms in ([*self.columns], mains):
            used = [self.cells.base, *(self.columns[term] for term in terms)]
            if independent(used):
                break
        else:
            raise NotComparable("the factors' levels cannot be told apart: some never varied without others.")
        fitted = fit(np.column_stack(used), self.cells.y)
        ends = np.cumsum([columns.shape[1] for columns in used])
        for term, begin, end in zip(terms, ends, ends[1:], strict=False):
            if len(term) > 1:
                continue
            names, counts = self.levels[term[0]], self.cells.count([*self.levels].index(term[0]))
            for level, code in zip(names, coded_levels(names), strict=True):
                weights, change = np.eye(1, len(fitted.beta))[0], np.zeros(len(fitted.beta))
                weights[begin:end], change[begin:end] = code, code - coded_levels(names)[0]
                yield LevelMean(
                    term[0], names[0], level, counts[level], counts[names[0]], fitted.contrast(weights), fitted.contrast(change)
                )


def pure_error(cells: Cells) -> str:
    return "block × point: how far the same point scatters from block to block" if cells.blocked else "cells of the same point"


def _product(first: Floats, second: Floats) -> Floats:
    """Return the columns of an interaction: every column of the one times every column of the other."""
    return np.column_stack([a * b for a in first.T for b in second.T])


def why_lost(points: Iterable[str]) -> str:
    """Say why cells cannot tell a term, `points` being those of which some are missing."""
    gone = ", ".join(sorted(set(points)))
    return f"cells of {gone} are missing" if gone else "there are combinations of levels that were never run"
