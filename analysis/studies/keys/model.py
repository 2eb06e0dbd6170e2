"""One linear model of the cells of a design, blocks and terms, by least squares.

The error is what the same point scatters by from block to block, after each block's own level is
taken off (block × point): the scatter of whole cells run again. Steps inside a cell never enter. It
is *pure*: no effect that the terms leave out can inflate it.

Sums of squares are of Type II: each term adjusted for all that do not contain it. Where the design
is balanced they are the textbook's; where cells were lost they ask the question that makes sense
(Langsrud 2003), and do not add up to the total. Each is the difference of two fits.
statsmodels' `anova_lm(typ=2)` agrees (a test) until a combination of levels is lost: then its sums
and degrees of freedom are wrong, and of a design run once it has none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtrc

from analysis.stats.effect import ROUNDING
from analysis.stats.linear import base_columns, coded_levels, fit, independent, rss
from analysis.terms import NotComparable
from control.t_test import LARGEST_LOG, t_interval

from .terms import Level, Means, Observed, Term, VariationRow

if TYPE_CHECKING:
    from typing import Any

    from analysis.stats.linear import Floats

    Terms = Mapping[tuple[str, ...], Floats]  # the columns of each effect

Factors = tuple[str, ...]  # of an effect, by name
FEWEST_DF = 2  # fewer degrees of freedom say too little of the error: 1 makes a 95 % interval 13 standard errors wide
FEWEST_CELLS = 3  # at a level


class Model:
    """The cells of a design; `y` are log gains, more is better, or the response, less their mean.

    `labels` and `levels` are each factor's, by cell and in order; `whole` makes the tweak sets the
    only factor, of that name. `terms` hold the columns of each effect, once `use` has chosen them.
    """

    def __init__(self, data: Observed, whole: str = "") -> None:
        rows, planned, measured = data.rows, len(data.points), len({row.levels for row in data.rows})
        if planned < 2:
            raise NotComparable(f"nothing was varied: there is only {next(iter(data.points))}.")
        if measured < 2:
            raise NotComparable(f"cells of {measured} of {planned} points were measured: nothing to set against each other.")
        values = np.array([row.value for row in rows])
        if data.scale == "log":
            values = np.log(values) * (-1.0 if data.better == "lower" else 1.0)
        self.data, self.grand, self.y = data, float(values.mean()), values - values.mean()
        self.blocks = [row.block for row in rows]
        self.base, self.points = base_columns(self.blocks), coded_levels([row.levels for row in rows])
        if whole:
            self.labels = {whole: [row.name for row in rows]}
            order = {whole: tuple(data.points)}
        else:
            self.labels = {factor.name: [row.levels[at] for row in rows] for at, factor in enumerate(data.factors)}
            order = {factor.name: factor.levels for factor in data.factors}
        self.counts = {name: Counter(labels) for name, labels in self.labels.items()}
        self.levels = {name: [level for level in levels if self.counts[name][level]] for name, levels in order.items()}
        self.total = float(self.y @ self.y)
        self.error_ss, self.error_df = rss([self.base, self.points], self.y)
        self.error = "block × point: how far the same point scatters from block to block" if self.blocked else "cells of the same point"
        self.terms: Terms = {}
        if self.total <= ROUNDING**2 * max(1.0, float(values @ values)):
            raise NotComparable(f"all {len(rows)} values of {data.metric} are the same: these are no measurements.")
        if self.error_df and math.sqrt(self.error_ss / self.error_df) <= ROUNDING * max(1.0, float(np.abs(values).max())):
            raise NotComparable(f"repeats of a point have the very same {data.metric}: these are not independent measurements.")

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
        result = np.ones((len(self.y), 1))
        for name in factors:
            coded = coded_levels(self.labels[name], self.levels[name])
            result = (result[:, :, None] * coded[:, None, :]).reshape(len(self.y), -1)
        return result

    def rss(self, terms: Iterable[Factors]) -> tuple[float, int]:
        return rss([self.base, *(self.terms[term] for term in terms)], self.y)

    def use(self, terms: Terms) -> None:
        """Choose the terms; means are taken of all of them, or where these cannot be told apart of main effects alone.

        Raises: NotComparable, where not even main effects can be told apart.
        """
        mains = {factors: columns for factors, columns in terms.items() if len(factors) == 1}
        apart = next((used for used in (terms, mains) if independent([self.base, *used.values()])), None)
        if apart is None:
            raise NotComparable("the factors' levels cannot be told apart: some never varied without others.")
        self.terms = terms
        ends = np.cumsum([self.base.shape[1], *(columns.shape[1] for columns in apart.values())])
        self._places = dict(zip(apart, map(slice, ends[:-1], ends[1:]), strict=True))
        self._fit = fit(np.column_stack([self.base, *apart.values()]), self.y)

    def must_repeat(self, factors: Iterable[str]) -> None:
        """Raises: NotComparable, where a factor has too few cells at its levels to stand on an error."""
        for name in factors if self.replicated else ():
            if sum(count >= FEWEST_CELLS for count in self.counts[name].values()) < 2:
                raise NotComparable(f"fewer than {FEWEST_CELLS} cells at the levels of {name}.")

    def contrast(self, factors: Factors, weights: Floats | Sequence[float], *, mean: bool = False) -> tuple[float, float]:
        """Weigh the coefficients of a term, with or without the mean: the estimate, and its variance in units of the error's."""
        every = np.zeros(len(self._fit.beta))
        every[0], every[self._places[factors]] = mean, weights
        return self._fit.contrast(every)

    def term(
        self,
        label: str,
        factors: Factors,
        means: Means,
        estimate: tuple[float, float],
        *,
        own: tuple[float, int] | None = None,
        **more: Any,
    ) -> Term:
        """Make a term that is not yet adjusted for the others of an effect and its variance, in units of the error's.

        It stands on the common error, or on its `own` standard error and degrees of freedom.
        """
        effect, variance = estimate
        se, df = own or (None if self.error_ms is None else math.sqrt(variance * self.error_ms), self.error_df)
        test = t_interval(effect, se, df) if se else None
        ends = (effect, test and test.low, test and test.high)
        gain, gain_low, gain_high = (
            math.expm1(min(end, LARGEST_LOG)) if end is not None and self.data.scale == "log" else None for end in ends
        )
        return Term(
            label,
            factors,
            means,
            effect,
            se=se,
            df=None if se is None else float(df),
            low=ends[1],
            high=ends[2],
            gain=gain,
            gain_low=gain_low,
            gain_high=gain_high,
            p=test and test.p,
            share=effect**2 / variance / self.total,
            **more,
        )

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
            others = [other for other in self.terms if other != term and not set(term) <= set(other)]
            (without, df), (with_it, df_with) = self.rss(others), self.rss([*others, term])
            used = df - df_with
            rows.append(self.row(":".join(term), used, max(0.0, without - with_it) if used else 0.0, term))
        return rows

    def variation(self, rows: Iterable[VariationRow], beside: Iterable[Floats]) -> tuple[VariationRow, ...]:
        """The table: blocks, as they add to the columns `beside`; terms; what these leave; the error; the total."""
        beside, (left_ss, left_df) = [*beside], self.rss(self.terms)
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

    @cached_property
    def mean(self) -> float:
        """Mean of all cells, blocks taken off, on the scale of the analysis."""
        columns = [self.base, self.points]
        fitted = fit(np.column_stack(columns) if independent(columns) else self.base, self.y)
        return self.grand + float((self.y - self.base[:, 1:] @ fitted.beta[1 : self.base.shape[1]]).mean())

    def unit(self, value: float) -> float:
        """Turn a value of the analysis into the response's unit."""
        if self.data.scale == "raw":
            return value
        return math.exp(value if self.data.better == "higher" else -value)

    def means(self) -> Iterator[Level]:
        """Means at the levels of each factor: adjusted for blocks, for the other factors and for what was lost."""
        for factors in (factors for factors in self._places if len(factors) == 1):
            (name,) = factors
            for level, code in zip(self.levels[name], coded_levels(self.levels[name]), strict=True):
                value, variance = self.contrast(factors, code, mean=True)
                value, low, high = value + self.grand, None, None
                if self.error_ms is not None:
                    ends = t_interval(value, math.sqrt(variance * self.error_ms), self.error_df)
                    low, high = sorted((self.unit(ends.low), self.unit(ends.high)))
                yield Level(name, level, self.counts[name][level], self.unit(value), value - self.mean, low, high)
