"""Linear models of cells: least squares over blocks and factors, and the analysis of variance.

The error is the scatter of the same point from block to block (block × point), a *pure* error. If
too few points were repeated, it is the residual of the terms of two factors, or of one.

Sums of squares are Type II, each the difference of two fits; if cells were lost they test the
sensible hypothesis (Langsrud 2003), where `anova_lm(typ=2)` of statsmodels is wrong.
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

Factors = tuple[str, ...]  # names of an effect's factors
DEPENDENT = 1e-8  # a column with a smaller new part depends on those before it
FEWEST_DF = 2  # d.f. of the error: with 1, a 95 % interval is ±13 standard errors
FEWEST_CELLS = 3  # per level
MOST_COLUMNS = 300  # of interactions: larger tables are unreadable
LEFT = (
    "interactions of {} factors and chance: no combination was replicated, so these count as noise"
)


def coded_levels(labels: Sequence[Hashable], levels: Sequence[Hashable] = ()) -> Floats:
    """Code a factor of L levels as L-1 columns that sum to zero over its levels.

    The first level is -1 in all columns, each other level +1 in its own. Shape (rows, L-1). With
    two levels it is the usual -1, +1; coefficients are deviations from the mean of all levels.
    """
    places = {level: at for at, level in enumerate(levels or dict.fromkeys(labels))}
    rows = np.vstack([-np.ones(len(places) - 1), np.eye(len(places) - 1)])
    return rows[[places[label] for label in labels]]


def base_columns(blocks: Sequence[Hashable]) -> Floats:
    return np.column_stack([np.ones(len(blocks)), coded_levels(blocks)])


def _basis(columns: Sequence[Floats]) -> Floats:
    left, sizes, _ = np.linalg.svd(np.column_stack(columns), full_matrices=False)
    basis: Floats = left[:, sizes > DEPENDENT * sizes[0]]
    return basis


def rss(columns: Sequence[Floats], values: Floats) -> tuple[float, int]:
    """Return the residual sum of squares and its d.f. for columns that may be dependent.

    The first column is constant.
    """
    basis, rest = _basis(columns), values - values.mean()
    rest = rest - basis @ (basis.T @ rest)
    df = len(values) - basis.shape[1]
    return (float(rest @ rest) if df else 0.0), df


@dataclass(frozen=True, slots=True)
class VariationRow:
    """A row of the analysis of variance; `f` and `p` are None for blocks, the error and the total.

    `p_adjusted`, by Benjamini-Hochberg, is set for interactions of factors with more than two
    levels.
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

    `labels` are each factor's levels by cell, `levels` the measured ones, in order. `error`
    describes the error that effects are judged by, `notes` the choice of terms.
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
        """Take the `values` of a response by `name`, measured at some of the `planned` points.

        Raises: NotComparable, if there is nothing to analyse: too few points, or no scatter at all.
        """
        if (measured := len(set(points))) < 2:
            raise NotComparable(
                f"cells of {measured} of {planned} points were measured: there is nothing to "
                "compare."
            )
        self.grand, self.y = float(values.mean()), values - values.mean()
        self.blocks, self.labels = list(blocks), labels
        self.counts = {factor: Counter(own) for factor, own in labels.items()}
        self.levels = {
            factor: [level for level in own if self.counts[factor][level]]
            for factor, own in levels.items()
        }
        self.base, self.points = base_columns(blocks), coded_levels(points)
        self.total = float(self.y @ self.y)
        self.error_ss, self.error_df = rss([self.base, self.points], self.y)
        self.error = (
            "block × point: the scatter of a point from block to block"
            if self.blocked
            else "cells of the same point"
        )
        self.terms: Terms = {}
        self.notes: tuple[str, ...] = ()
        if self.total <= ROUNDING**2 * max(1.0, float(values @ values)):
            raise NotComparable(
                f"all {len(values)} values of {name} are the same: these are not measurements."
            )
        if self.error_df and math.sqrt(self.error_ss / self.error_df) <= ROUNDING * max(
            1.0, float(np.abs(values).max())
        ):
            raise NotComparable(
                f"repeats of a point have exactly the same {name}: these are not independent "
                "measurements."
            )

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
        """Return an effect's columns: a factor's own, or products of several factors' columns."""
        columns = np.ones((len(self.y), 1))
        for name in factors:
            coded = coded_levels(self.labels[name], self.levels[name])
            columns = (columns[:, :, None] * coded[:, None, :]).reshape(len(self.y), -1)
        return columns

    def use(self, terms: Terms) -> None:
        """Choose the terms; means use all or, if these are not estimable, main effects only.

        Raises: NotComparable, if not even main effects are estimable.
        """
        mains = {factors: columns for factors, columns in terms.items() if len(factors) == 1}
        apart = next((used for used in (terms, mains) if self.independent(used.values())), None)
        if apart is None:
            raise NotComparable(
                "the factors' levels cannot be distinguished: some never varied without others."
            )
        self.terms = terms
        ends = np.cumsum([self.base.shape[1], *(columns.shape[1] for columns in apart.values())])
        self._places = dict(zip(apart, map(slice, ends[:-1], ends[1:]), strict=True))
        self._beta, self._inverse = self._fit(apart.values())

    def cross(self) -> None:
        """Use main effects and two-factor interactions; error: from replicates, else residual.

        Raises: NotComparable, if there is no error, or nothing was varied.
        """
        mains: Terms = {
            (name,): self.columns((name,))
            for name, levels in self.levels.items()
            if len(levels) > 1
        }
        if not mains:
            raise NotComparable("no factor had more than one level.")
        self.must_repeat(name for (name,) in mains)
        pairs: Terms = {(*a, *b): self.columns((*a, *b)) for a, b in combinations(mains, 2)}
        if sum(columns.shape[1] for columns in pairs.values()) > MOST_COLUMNS:
            pairs, self.notes = (
                {},
                ("these factors have more interactions than a table can show: main effects only.",),
            )
        for terms, size in (({**mains, **pairs}, "three"), (mains, "two")):
            ss, df = rss([self.base, *terms.values()], self.y)
            if not self.replicated and len(mains) > 1 and df >= FEWEST_DF:
                self.error_ss, self.error_df, self.error = ss, df, LEFT.format(size)
            if self.replicated:
                self.use(terms)
                return
        raise NotComparable(
            "no point was run twice, and too few d.f. remain to estimate how far equal cells "
            "differ: run more blocks."
        )

    def must_repeat(self, factors: Iterable[str]) -> None:
        """Check that each level has enough cells. Raises: NotComparable, naming the factor."""
        for name in factors if self.replicated else ():
            if sum(count >= FEWEST_CELLS for count in self.counts[name].values()) < 2:
                raise NotComparable(f"fewer than {FEWEST_CELLS} cells at the levels of {name}.")

    def independent(self, columns: Iterable[Floats]) -> bool:
        every = [self.base, *columns]
        return bool(_basis(every).shape[1] == sum(each.shape[1] for each in every))

    def _fit(self, columns: Iterable[Floats]) -> tuple[Floats, Floats]:
        q, r = np.linalg.qr(np.column_stack([self.base, *columns]))
        root = np.linalg.inv(r)
        return root @ (q.T @ self.y), root @ root.T

    def contrast(
        self, factors: Factors, weights: Floats | Sequence[float], *, mean: bool = False
    ) -> tuple[float, float]:
        """Return a contrast of a term's coefficients, and its variance in units of the error's."""
        every = np.zeros(len(self._beta))
        every[0], every[self._places[factors]] = mean, weights
        return float(every @ self._beta), float(every @ self._inverse @ every)

    def level_means(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Return means by factor and level with variances, adjusted for blocks and factors."""
        means = {}
        for factors in (factors for factors in self._places if len(factors) == 1):
            levels = self.levels[factors[0]]
            for level, code in zip(levels, coded_levels(levels), strict=True):
                value, variance = self.contrast(factors, code, mean=True)
                means[factors[0], level] = self.grand + value, variance
        return means

    @cached_property
    def mean(self) -> float:
        """Return the mean of all cells, adjusted for blocks."""
        beta, _ = self._fit([self.points] if self.independent([self.points]) else [])
        return self.grand + float((self.y - self.base[:, 1:] @ beta[1 : self.base.shape[1]]).mean())

    def row(
        self, name: str, df: int, ss: float, factors: Factors = (), *, tested: bool = True
    ) -> VariationRow:
        ms = ss / df if df else None
        f = ms / self.error_ms if tested and ms is not None and self.error_ms else None
        p = None if f is None else float(fdtrc(df, self.error_df, max(0.0, f)))
        return VariationRow(name, df, ss, ss / self.total, ms, f, p, factors)

    @cached_property
    def tests(self) -> list[VariationRow]:
        """Return each term's row, without degrees of freedom if the term is not estimable."""
        rows = []
        for term in self.terms:
            others = [
                self.base,
                *(
                    self.terms[other]
                    for other in self.terms
                    if other != term and not set(term) <= set(other)
                ),
            ]
            (without, df), (with_it, df_with) = (
                rss(others, self.y),
                rss([*others, self.terms[term]], self.y),
            )
            rows.append(
                self.row(
                    ":".join(term),
                    df - df_with,
                    max(0.0, without - with_it) if df > df_with else 0.0,
                    term,
                )
            )
        return rows

    def variation(
        self, rows: Iterable[VariationRow], beside: Iterable[Floats]
    ) -> tuple[VariationRow, ...]:
        """Return the table: blocks (adjusted for `beside`), terms, residual, error, total."""
        beside, (left_ss, left_df) = [*beside], rss([self.base, *self.terms.values()], self.y)
        without, with_blocks = (
            rss([base, *beside], self.y)[0] for base in (self.base[:, :1], self.base)
        )
        blocks = (
            [self.row("blocks", self.base.shape[1] - 1, without - with_blocks, tested=False)]
            if self.blocked
            else []
        )
        left = left_df - self.error_df
        name = "residual" if self.replicated else "not distinguished"
        return (
            *blocks,
            *(row for row in rows if row.df),
            *([self.row(name, left, max(0.0, left_ss - self.error_ss))] if left > 0 else []),
            *(
                [self.row("error", self.error_df, self.error_ss, tested=False)]
                if self.error_df
                else []
            ),
            VariationRow("total", len(self.y) - 1, self.total, 1.0),
        )


def add_up(rows: Sequence[VariationRow]) -> bool:
    """Return whether the rows add up to the total, the last row: effects are then independent."""
    *parts, total = rows
    return math.isclose(math.fsum(row.ss for row in parts), total.ss, rel_tol=1e-9)


def why_lost(
    points: Iterable[str], otherwise: str = "there are combinations of levels that were never run"
) -> str:
    """Return why cells cannot estimate a term; `points` are those with missing cells."""
    gone = ", ".join(sorted(set(points)))
    return f"cells of {gone} are missing" if gone else otherwise
