"""What every analysis begins with: the responses on their scale, blocks and points as columns, and the pure error."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtrc

from analysis.stats.effect import ROUNDING
from analysis.terms import NotComparable
from control.t_test import LARGEST_LOG, t_quantile, t_tail

from .model import base_columns, coded_levels, fit, pure_error, rss, total
from .terms import Level, Pair, Source, Term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .model import Floats
    from .terms import Factor, Means, Observed

# Fewer degrees of freedom say too little of the error: 1 makes a 95 % interval 13 standard errors wide.
FEWEST_DF = 2
COMFORTABLE_DF = 5
FEWEST_RUNS = 3  # at either level, or of either tweak set


@dataclass(frozen=True)
class Frame:
    """Rows as arrays. `y` is on the scale of the analysis: log gain, so that more is better, or the response as it is."""

    seen: Observed
    y: Floats
    blocks: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    base: Floats
    error_ss: float
    error_df: int

    @cached_property
    def total(self) -> float:
        """Sum of squares about the mean."""
        return total(self.y)

    @property
    def replicated(self) -> bool:
        """Whether points were run often enough to know how far equal cells differ."""
        return self.error_df >= FEWEST_DF

    @property
    def error_ms(self) -> float | None:
        """Mean square of the error; None where nothing was replicated."""
        return self.error_ss / self.error_df if self.replicated else None

    @cached_property
    def of_points(self) -> Floats:
        """The points' own levels as columns: shape (rows, points - 1)."""
        return coded_levels(self.keys, list(dict.fromkeys(self.keys)))

    @cached_property
    def freed(self) -> Floats:
        """The responses with the blocks' own levels taken off."""
        blocks = self.base.shape[1] - 1
        if not blocks:
            return self.y
        done = fit(np.column_stack([self.base, self.of_points]), self.y) if self._connected() else fit(self.base, self.y)
        return self.y - self.base[:, 1:] @ done.beta[1 : blocks + 1]

    def _connected(self) -> bool:
        columns = np.column_stack([self.base, self.of_points])
        return bool(np.linalg.matrix_rank(columns) == columns.shape[1])

    def unit(self, value: float) -> float:
        """Bring a mean back to the metric's own unit."""
        if self.seen.scale == "raw":
            return value
        return math.exp(value if self.seen.better == "higher" else -value)

    def blocks_source(self) -> list[Source]:
        """The row of the blocks, where there are any."""
        df = self.base.shape[1] - 1
        if not df:
            return []
        without, _ = rss(np.column_stack([self.base[:, :1], self.of_points]), self.y)
        return [self.source("blocks", df, without - self.error_ss if self.error_df else without)]

    def source(self, name: str, df: int, ss: float, factors: tuple[str, ...] = (), *, tested: bool = False) -> Source:
        """Make a row of the analysis of variance."""
        ms = ss / df if df else None
        f = ms / self.error_ms if tested and ms is not None and self.error_ms else None
        p = None if f is None else float(fdtrc(df, self.error_df, max(0.0, f)))
        return Source(name, df, ss, ss / self.total, ms, f, p, factors)

    def closing_sources(self) -> list[Source]:
        """The rows of the error and of the total."""
        error = [self.source("error", self.error_df, self.error_ss)] if self.error_df else []
        return [*error, Source("total", len(self.y) - 1, self.total, 1.0)]

    def term(  # noqa: PLR0913  # what one term is made of
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
                low=None,
                high=None,
                gain=None,
                gain_low=None,
                gain_high=None,
                p=p,
                p_adjusted=None,
                adjustment="",
                family=0,
                share=effect**2 / variance / self.total,
                aliases=aliases,
                coefficient=coefficient,
                level=level,
            ),
            half,
            self.seen.scale == "log",
        )

    @cached_property
    def mean(self) -> float:
        """The mean of all cells, the blocks' own levels taken off."""
        return float(self.freed.mean())

    def level(self, name: tuple[str, str], n: int, mean: float, variance: float) -> Level:
        """Make the record of one level of one factor from its mean on the scale of the analysis."""
        low = high = None
        if self.error_ms is not None:
            half = t_quantile(0.975, self.error_df) * math.sqrt(variance * self.error_ms)
            low, high = sorted((self.unit(mean - half), self.unit(mean + half)))
        return Level(*name, n, self.unit(mean), mean - self.mean, low, high)

    def pairs(self) -> tuple[Pair, ...]:
        """Mean responses at every two levels of every two factors, blocks taken off; none of a pair of which a combination is missing."""
        found: list[Pair] = []
        for one, other in combinations(range(len(self.seen.factors)), 2):
            first, second = self.seen.factors[one], self.seen.factors[other]
            cells = {(a, b): [at for at, key in enumerate(self.keys) if (key[one], key[other]) == (a, b)] for a, b in _grid(first, second)}
            if all(cells.values()):
                found += [
                    Pair((first.name, second.name), at, len(rows), self.unit(float(self.freed[rows].mean()))) for at, rows in cells.items()
                ]
        return tuple(found)


def _grid(first: Factor, second: Factor) -> list[tuple[str, str]]:
    return [(a, b) for a in first.levels for b in second.levels]


def with_interval(term: Term, half: float | None, log: bool) -> Term:  # noqa: FBT001  # the scale of two
    """Put an interval of so much to either side round a term's effect, and both as gains where effects are logarithms."""
    low, high = (None, None) if half is None else (term.effect - half, term.effect + half)
    gains = [None if not log or value is None else math.expm1(min(value, LARGEST_LOG)) for value in (term.effect, low, high)]
    return replace(term, low=low, high=high, gain=gains[0], gain_low=gains[1], gain_high=gains[2])


def frame(seen: Observed) -> Frame:
    """Lay the rows out as arrays.

    Raises: NotComparable, where there is nothing to analyse: too few cells, or no scatter at all.
    """
    there = {row.levels for row in seen.rows}
    if len(seen.points) < 2:
        raise NotComparable(f"nothing was varied: there is only {next(iter(seen.points))}.")
    if len(there) < 2:
        raise NotComparable(f"cells of {len(there)} of {len(seen.points)} points were measured: nothing to set against each other.")
    sign = -1.0 if seen.better == "lower" else 1.0
    values = np.array([row.value for row in seen.rows])
    y = sign * np.log(values) if seen.scale == "log" else values
    blocks = tuple(row.block for row in seen.rows)
    base = base_columns(blocks)
    keys = tuple(row.levels for row in seen.rows)
    error_ss, error_df = pure_error(base, keys, y)
    made = Frame(seen, y, blocks, keys, base, error_ss, error_df)
    if made.total <= ROUNDING**2 * max(1.0, float((y**2).sum())):
        raise NotComparable(f"all {len(y)} values of {seen.metric} are the same: these are no measurements.")
    if error_df and math.sqrt(error_ss / error_df) <= ROUNDING * max(1.0, float(np.abs(y).max())):
        raise NotComparable(f"repeats of a point have the very same {seen.metric}: these are not independent measurements.")
    return made


def half_counts(keys: Sequence[tuple[str, ...]], at: int) -> dict[str, int]:
    """How many cells there are at each level of a factor."""
    counts: dict[str, int] = {}
    for key in keys:
        counts[key[at]] = counts.get(key[at], 0) + 1
    return counts
