"""The linear model of a design: effects as terms, in gains or the response's unit; means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.linear import Factors, LinearModel
from analysis.terms import NotComparable
from control.t_test import LARGEST_LOG, t_interval

from .terms import DesignData, Level, Means, Term

if TYPE_CHECKING:
    from typing import Any


class DesignModel(LinearModel):
    """Cells on the scale of the analysis: log gains (more is better), or the raw response."""

    def __init__(self, data: DesignData, whole: str = "") -> None:
        """Lay out the cells of a design; with `whole`, the tweak set is the only factor.

        Raises: NotComparable, if there is nothing to analyse.
        """
        if len(data.points) < 2:
            raise NotComparable(f"nothing was varied: the only point is {next(iter(data.points))}.")
        self.data = data
        values = np.array([row.value for row in data.rows])
        if data.scale == "log":
            values = np.log(values) * (-1.0 if data.better == "lower" else 1.0)
        labels = {
            factor.name: [row.levels[at] for row in data.rows]
            for at, factor in enumerate(data.factors)
        }
        levels = {factor.name: factor.levels for factor in data.factors}
        if whole:
            labels, levels = {whole: [row.name for row in data.rows]}, {whole: tuple(data.points)}
        points = [row.levels for row in data.rows]
        super().__init__(
            values,
            [row.block for row in data.rows],
            labels,
            levels,
            points,
            len(data.points),
            data.metric,
        )

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
        """Make an unadjusted term from an effect and its variance, in units of the error's.

        It uses the common error, or its `own` standard error and degrees of freedom.
        """
        effect, variance = estimate
        se, df = own or (
            None if self.error_ms is None else math.sqrt(variance * self.error_ms),
            self.error_df,
        )
        test = t_interval(effect, se, df) if se else None
        low, high, p = (test.low, test.high, test.p) if test else (None, None, None)
        gain, gain_low, gain_high = (
            math.expm1(min(end, LARGEST_LOG))
            if end is not None and self.data.scale == "log"
            else None
            for end in (effect, low, high)
        )
        ends = {
            "gain": gain,
            "gain_low": gain_low,
            "gain_high": gain_high,
            "p": p,
            "share": effect**2 / variance / self.total,
        }
        more |= ends | {"se": se, "df": float(df) if se else None, "low": low, "high": high}
        return Term(label, factors, means, effect, **more)

    def unit(self, value: float) -> float:
        """Convert a value of the analysis to the response's unit."""
        if self.data.scale == "raw":
            return value
        return math.exp(value if self.data.better == "higher" else -value)

    def means(self) -> Iterator[Level]:
        """Yield the means at the levels of each factor, in the response's unit."""
        for (name, level), (value, variance) in self.level_means().items():
            low = high = None
            if self.error_ms is not None:
                ends = t_interval(value, math.sqrt(variance * self.error_ms), self.error_df)
                low, high = sorted((self.unit(ends.low), self.unit(ends.high)))
            yield Level(
                name,
                level,
                self.counts[name][level],
                self.unit(value),
                value - self.mean,
                low,
                high,
            )
