"""Aliases: effects of a two-level design that cannot be distinguished.

A point is a row of -1 and +1, and the column of an interaction is the product of its factors'
columns. If a product of columns (a *word*) is the same at every point, effects whose product it is
share one column: they are aliases. All words are found from the points, as solutions of linear
equations over {0, 1} (Box, Hunter & Hunter 1978, ch. 12), so a file's own claims on its generators
are not needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import NotComparable

if TYPE_CHECKING:
    from analysis.stats.linear import Floats

    from .terms import DesignData

Effect = tuple[int, ...]  # the indices of its factors, in order; () is the mean
MOST_WORDS = 14  # bits: more than 16,384 words make the list of aliases useless


def coded_points(data: DesignData) -> Floats:
    """Code every planned point as -1 (a factor's first level) and +1: shape (points, factors)."""
    lows = [factor.levels[0] for factor in data.factors]
    return np.array(
        [
            [-1.0 if a == b else 1.0 for a, b in zip(levels, lows, strict=True)]
            for levels in data.points.values()
        ]
    )


def effects_up_to(factors: int, order: int) -> Iterator[Effect]:
    """Yield all effects of at most `order` factors: main effects, then interactions by size."""
    for size in range(1, min(order, factors) + 1):
        yield from combinations(range(factors), size)


def column(coded: Floats, effect: Effect) -> Floats:
    """Return the contrast of an effect over rows of -1 and +1: shape (rows,)."""
    result: Floats = np.prod(coded[:, list(effect)], axis=1)
    return result


def defining_words(coded: Floats) -> list[Effect]:
    """Return all products of factors that are constant over the points, shortest first.

    This is the defining relation, without its signs.

    Raises: NotComparable, for more than 2^14: so few points distinguish hardly any effects.
    """
    points, factors = coded.shape
    differs = coded != coded[0]
    independent: dict[int, tuple[int, int]] = {}  # by highest bit: a column's bits, and its factors
    products = [0]
    for factor in range(factors):
        bits, word = sum(1 << at for at in range(points) if differs[at, factor]), 1 << factor
        while bits and bits.bit_length() in independent:
            other_bits, other_word = independent[bits.bit_length()]
            bits, word = bits ^ other_bits, word ^ other_word
        if bits:
            independent[bits.bit_length()] = bits, word
        elif len(products) == 1 << MOST_WORDS:
            raise NotComparable(
                f"{points} points for {factors} factors: the design cannot distinguish any effects."
            )
        else:
            products += [product ^ word for product in products]
    words = [tuple(at for at in range(factors) if product >> at & 1) for product in products[1:]]
    return sorted(words, key=lambda word: (len(word), word))


def aliases(effect: Effect, words: Sequence[Effect], order: int) -> list[Effect]:
    """Return effects of at most `order` factors that have the same column, up to its sign."""
    same = {tuple(sorted(set(effect) ^ set(word))) for word in words}
    return sorted(
        (other for other in same if len(other) <= order), key=lambda other: (len(other), other)
    )


def resolution(words: Sequence[Effect]) -> int | None:
    """Return the length of the shortest word, or None if there is no aliasing.

    Resolution III aliases main effects with two-factor interactions, IV the latter with each other.
    """
    return min(map(len, words), default=None)


def partly_mixed(coded: Floats) -> float:
    """Return the largest partial correlation of a main effect with others' interaction.

    Plackett-Burman designs have such correlations, other than 0 and 1.
    """
    largest = 0.0
    for pair in combinations(range(coded.shape[1]), 2):
        shared = np.delete(np.abs(coded.T @ column(coded, pair)) / len(coded), pair)
        largest = max(largest, float(shared[shared < 1 - 1e-9].max(initial=0.0)))
    return largest
