"""What every analysis of a design begins with: responses on their scale, and the algebra of two-level points.

A two-level point is a row of -1 and +1. The column of an interaction is the product of its factors' columns. Where a product of columns
(a *word*) is the same at every point, effects whose product it is are one column and cannot be told apart: aliases. All words are found
from the points themselves, as solutions of linear equations over {0, 1} (Box, Hunter & Hunter 1978, ch. 12), so what a file claims of its
own generators is never needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.linear import Cells
from analysis.terms import NotComparable
from control.t_test import LARGEST_LOG, t_interval

from .terms import Level, Means, Observed, Pair, Term

if TYPE_CHECKING:
    import numpy.typing as npt

    from analysis.stats.linear import Floats


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


@dataclass(frozen=True)
class Frame(Cells):
    """The cells of a design. `y` is on the scale of the analysis: log gain, so that more is better, or the response as it is."""

    data: Observed

    def unit(self, value: float) -> float:
        if self.data.scale == "raw":
            return value
        return math.exp(value if self.data.better == "higher" else -value)

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
        test = t_interval(effect, se, df) if se else None
        half = test and test.high - effect
        low, high = (None, None) if half is None else (effect - half, effect + half)
        log = self.data.scale == "log"
        gains = [None if not log or value is None else math.expm1(min(value, LARGEST_LOG)) for value in (effect, low, high)]
        return Term(
            label=label,
            factors=factors,
            means=means,
            effect=effect,
            se=se,
            df=None if se is None else float(df),
            low=low,
            high=high,
            gain=gains[0],
            gain_low=gains[1],
            gain_high=gains[2],
            p=test and test.p,
            share=effect**2 / variance / self.total,
            aliases=aliases,
            coefficient=coefficient,
            level=level,
        )

    @property
    def mean(self) -> float:
        return float(self.freed.mean())

    def level(self, name: tuple[str, str], n: int, mean: float, variance: float) -> Level:
        low = high = None
        if self.error_ms is not None:
            test = t_interval(mean, math.sqrt(variance * self.error_ms), self.error_df)
            low, high = sorted((self.unit(test.low), self.unit(test.high)))
        return Level(*name, n, self.unit(mean), mean - self.mean, low, high)

    def pairs(self) -> tuple[Pair, ...]:
        """Mean responses at every two levels of every two factors, blocks taken off; none of a pair of which a combination is missing."""
        result: list[Pair] = []
        for number, second_number in combinations(range(len(self.data.factors)), 2):
            first, second = self.data.factors[number], self.data.factors[second_number]
            cells = {
                (a, b): [at for at, key in enumerate(self.keys) if (key[number], key[second_number]) == (a, b)]
                for a, b in product(first.levels, second.levels)
            }
            if all(cells.values()):
                result += [
                    Pair((first.name, second.name), at, len(rows), self.unit(float(self.freed[rows].mean()))) for at, rows in cells.items()
                ]
        return tuple(result)


def frame_of(data: Observed) -> Frame:
    """Lay the rows out as arrays. Raises: NotComparable, where there is nothing to analyse: too few cells, or no scatter at all."""
    if len(data.points) < 2:
        raise NotComparable(f"nothing was varied: there is only {next(iter(data.points))}.")
    sign = -1.0 if data.better == "lower" else 1.0
    values = np.array([row.value for row in data.rows])
    y = sign * np.log(values) if data.scale == "log" else values
    blocks, keys = [row.block for row in data.rows], [row.levels for row in data.rows]
    return Frame.of(y, blocks, keys, len(data.points), data.metric, data=data)
