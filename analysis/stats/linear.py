"""Linear models of cells: least squares over blocks and factors, and how what a response varies divides among them.

The error is what the same point scatters by from block to block, after each block's own level is
taken off (block × point): the scatter of whole cells run again. Steps inside a cell never enter. It
is *pure*: no effect that the terms leave out can inflate it. Where too little was run again, it is
what the terms of two factors, or of one, leave over.

Sums of squares are of Type II: each term adjusted for all that do not contain it. Where the design
is balanced they are the textbook's; where cells were lost they ask the question that makes sense
(Langsrud 2003), and do not add up to the total. Each is the difference of two fits.
`anova_lm(typ=2)` of statsmodels agrees (a test) until a combination of levels is lost: then its
sums and degrees of freedom are wrong, and it has none for a design that was run once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtrc

from analysis.terms import NotComparable

from .effect import ROUNDING

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Terms = Mapping[tuple[str, ...], Floats]  # the columns of each effect

Factors = tuple[str, ...]  # of an effect, by name
DEPENDENT = 1e-8  # a column of which less than this part is new adds nothing to those before it
FEWEST_DF = 2  # fewer degrees of freedom say too little of the error: 1 makes a 95 % interval 13 standard errors wide
FEWEST_CELLS = 3  # at a level
MOST_COLUMNS = 300  # of interactions; of more nobody reads the table
LEFT = "what interactions of {} factors and chance leave: no combination was replicated, so these count as noise"


def coded_levels(labels: Sequence[Hashable], levels: Sequence[Hashable] = ()) -> Floats:
    """Code a factor of L levels as L-1 columns that sum to zero over its levels: the first is -1 in all, each other +1 in its own.

    Shape (rows, L-1). With two levels it is the usual -1, +1; coefficients are deviations from the
    mean of all levels.
    """
    places = {level: at for at, level in enumerate(levels or dict.fromkeys(labels))}
    rows = np.vstack([-np.ones(len(places) - 1), np.eye(len(places) - 1)])
    return rows[[places[label] for label in labels]]


def base_columns(blocks: Sequence[Hashable]) -> Floats:
    return np.column_stack([np.ones(len(blocks)), coded_levels(blocks)])


def _basis(columns: Sequence[Floats]) -> Floats:
    """Orthonormal columns that span what columns do which may depend on each other."""
    left, sizes, _ = np.linalg.svd(np.column_stack(columns), full_matrices=False)
    basis: Floats = left[:, sizes > DEPENDENT * sizes[0]]
    return basis


def rss(columns: Sequence[Floats], values: Floats) -> tuple[float, int]:
    """Residual sum of squares and degrees of freedom of columns that may depend on each other, the first of them constant."""
    basis, rest = _basis(columns), values - values.mean()
    rest = rest - basis @ (basis.T @ rest)
    df = len(values) - basis.shape[1]
    return (float(rest @ rest) if df else 0.0), df


@dataclass(frozen=True, slots=True)
class VariationRow:
    """One row of the analysis of variance; `f` and `p` are None where a row is not tested (blocks, the error, the total).

    `p_adjusted` is there for interactions that no single term can stand for (more than two levels):
    Benjamini-Hochberg over all of them.
    """

    name: str
    df: int
    ss: float
    share: float
    ms: float | None = None
    f: float | None = None
    p: float | None = None
    factors: Factors = ()
    p_adjusted: float | None = None


class LinearModel:
    """Cells as blocks and terms; `y` are their values less `grand`, the mean of all.

    `labels` are each factor's levels by cell, `levels` those that were measured, in order. `error`
    says in words what effects are judged by. `terms` are those that `use` has chosen, `notes` what
    to know of the choice.
    """

    def __init__(
        self,
        values: Floats,
        blocks: Sequence[Hashable],
        labels: Mapping[str, Sequence[str]],
        levels: Mapping[str, Sequence[str]],
        points: Sequence[Hashable],
        planned: int,
        name: str,
    ) -> None:
        """Take the `values` of a response by `name`, measured at `points`, of which so many were planned.

        Raises: NotComparable, where there is nothing to analyse: too few points, or no scatter at
        all.
        """
        if (measured := len(set(points))) < 2:
            raise NotComparable(f"cells of {measured} of {planned} points were measured: there is nothing to compare.")
        self.grand, self.y = float(values.mean()), values - values.mean()
        self.blocks, self.labels = list(blocks), labels
        self.counts = {factor: Counter(own) for factor, own in labels.items()}
        self.levels = {factor: [level for level in own if self.counts[factor][level]] for factor, own in levels.items()}
        self.base, self.points = base_columns(blocks), coded_levels(points)
        self.total = float(self.y @ self.y)
        self.error_ss, self.error_df = rss([self.base, self.points], self.y)
        self.error = "block × point: how far the same point scatters from block to block" if self.blocked else "cells of the same point"
        self.terms: Terms = {}
        self.notes: tuple[str, ...] = ()
        if self.total <= ROUNDING**2 * max(1.0, float(values @ values)):
            raise NotComparable(f"all {len(values)} values of {name} are the same: these are no measurements.")
        if self.error_df and math.sqrt(self.error_ss / self.error_df) <= ROUNDING * max(1.0, float(np.abs(values).max())):
            raise NotComparable(f"repeats of a point have the very same {name}: these are not independent measurements.")

    @property
    def blocked(self) -> bool:
        return bool(self.base.shape[1] > 1)

    @property
    def replicated(self) -> bool:
        return self.error_df >= FEWEST_DF

    @property
    def error_ms(self) -> float | None:
        return self.error_ss / self.error_df if self.replicated else None

    def columns(self, factors: Factors) -> Floats:
        """Return the columns of an effect: of one factor those of its levels, of several the products of theirs."""
        columns = np.ones((len(self.y), 1))
        for name in factors:
            coded = coded_levels(self.labels[name], self.levels[name])
            columns = (columns[:, :, None] * coded[:, None, :]).reshape(len(self.y), -1)
        return columns

    def use(self, terms: Terms) -> None:
        """Choose the terms; means are taken of all of them, or where these cannot be told apart of main effects alone.

        Raises: NotComparable, where not even main effects can be told apart.
        """
        mains = {factors: columns for factors, columns in terms.items() if len(factors) == 1}
        apart = next((used for used in (terms, mains) if self.independent(used.values())), None)
        if apart is None:
            raise NotComparable("the factors' levels cannot be distinguished: some never varied without others.")
        self.terms = terms
        ends = np.cumsum([self.base.shape[1], *(columns.shape[1] for columns in apart.values())])
        self._places = dict(zip(apart, map(slice, ends[:-1], ends[1:]), strict=True))
        self._beta, self._inverse = self._fit(apart.values())

    def cross(self) -> None:
        """Use main effects and interactions of two; the error is that of replicates where there are enough, else what the terms leave.

        Raises: NotComparable, where there is no error, or nothing was varied.
        """
        mains: Terms = {(name,): self.columns((name,)) for name, levels in self.levels.items() if len(levels) > 1}
        if not mains:
            raise NotComparable("no factor stood at more than one level.")
        self.must_repeat(name for (name,) in mains)
        pairs: Terms = {(*a, *b): self.columns((*a, *b)) for a, b in combinations(mains, 2)}
        if sum(columns.shape[1] for columns in pairs.values()) > MOST_COLUMNS:
            pairs, self.notes = {}, ("there are more interactions of these factors than a table shows: main effects alone.",)
        for terms, size in (({**mains, **pairs}, "three"), (mains, "two")):
            ss, df = rss([self.base, *terms.values()], self.y)
            if not self.replicated and len(mains) > 1 and df >= FEWEST_DF:
                self.error_ss, self.error_df, self.error = ss, df, LEFT.format(size)
            if self.replicated:
                self.use(terms)
                return
        raise NotComparable("no point was run twice, and too few are left over to see how far equal cells differ: run more blocks.")

    def must_repeat(self, factors: Iterable[str]) -> None:
        """Raises: NotComparable, where a factor has too few cells at its levels to stand on the error."""
        for name in factors if self.replicated else ():
            if sum(count >= FEWEST_CELLS for count in self.counts[name].values()) < 2:
                raise NotComparable(f"fewer than {FEWEST_CELLS} cells at the levels of {name}.")

    def independent(self, columns: Iterable[Floats]) -> bool:
        every = [self.base, *columns]
        return bool(_basis(every).shape[1] == sum(each.shape[1] for each in every))

    def _fit(self, columns: Iterable[Floats]) -> tuple[Floats, Floats]:
        """Coefficients of columns that do not depend on each other, and (XᵀX)⁻¹, by QR."""
        q, r = np.linalg.qr(np.column_stack([self.base, *columns]))
        root = np.linalg.inv(r)
        return root @ (q.T @ self.y), root @ root.T

    def contrast(self, factors: Factors, weights: Floats | Sequence[float], *, mean: bool = False) -> tuple[float, float]:
        """Weigh the coefficients of a term, with or without the mean: the estimate, and its variance in units of the error's."""
        every = np.zeros(len(self._beta))
        every[0], every[self._places[factors]] = mean, weights
        return float(every @ self._beta), float(every @ self._inverse @ every)

    def level_means(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Means by factor and level, each with its variance: adjusted for blocks, the other factors and what was lost."""
        means = {}
        for factors in (factors for factors in self._places if len(factors) == 1):
            levels = self.levels[factors[0]]
            for level, code in zip(levels, coded_levels(levels), strict=True):
                value, variance = self.contrast(factors, code, mean=True)
                means[factors[0], level] = self.grand + value, variance
        return means

    @cached_property
    def mean(self) -> float:
        """Mean of all cells, blocks taken off."""
        beta, _ = self._fit([self.points] if self.independent([self.points]) else [])
        return self.grand + float((self.y - self.base[:, 1:] @ beta[1 : self.base.shape[1]]).mean())

    def row(self, name: str, df: int, ss: float, factors: Factors = (), *, tested: bool = True) -> VariationRow:
        ms = ss / df if df else None
        f = ms / self.error_ms if tested and ms is not None and self.error_ms else None
        p = None if f is None else float(fdtrc(df, self.error_df, max(0.0, f)))
        return VariationRow(name, df, ss, ss / self.total, ms, f, p, factors)

    @cached_property
    def tests(self) -> list[VariationRow]:
        """Each term's row; without degrees of freedom where the cells cannot tell it."""
        rows = []
        for term in self.terms:
            others = [self.base, *(self.terms[other] for other in self.terms if other != term and not set(term) <= set(other))]
            (without, df), (with_it, df_with) = rss(others, self.y), rss([*others, self.terms[term]], self.y)
            rows.append(self.row(":".join(term), df - df_with, max(0.0, without - with_it) if df > df_with else 0.0, term))
        return rows

    def variation(self, rows: Iterable[VariationRow], beside: Iterable[Floats]) -> tuple[VariationRow, ...]:
        """The table: blocks, as they add to the columns `beside`; terms; what these leave; the error; the total."""
        beside, (left_ss, left_df) = [*beside], rss([self.base, *self.terms.values()], self.y)
        without, with_blocks = (rss([base, *beside], self.y)[0] for base in (self.base[:, :1], self.base))
        blocks = [self.row("blocks", self.base.shape[1] - 1, without - with_blocks, tested=False)] if self.blocked else []
        left = left_df - self.error_df
        name = "what these leave" if self.replicated else "not told apart"
        return (
            *blocks,
            *(row for row in rows if row.df),
            *([self.row(name, left, max(0.0, left_ss - self.error_ss))] if left > 0 else []),
            *([self.row("error", self.error_df, self.error_ss, tested=False)] if self.error_df else []),
            VariationRow("total", len(self.y) - 1, self.total, 1.0),
        )


def add_up(rows: Sequence[VariationRow]) -> bool:
    """Whether the rows of a table add up to the total, its last: effects are then independent of each other."""
    *parts, total = rows
    return math.isclose(math.fsum(row.ss for row in parts), total.ss, rel_tol=1e-9)


def why_lost(points: Iterable[str], otherwise: str = "there are combinations of levels that were never run") -> str:
    """Say why cells cannot tell a term, `points` being those of which some are missing."""
    gone = ", ".join(sorted(set(points)))
    return f"cells of {gone} are missing" if gone else otherwise
