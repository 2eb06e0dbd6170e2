"""Which effects of a two-level design cannot be told apart.

A point is a row of -1 and +1, and the column of an interaction is the product of its factors'
columns. Where a product of columns (a *word*) is the same at every point, effects whose product it
is are one column: aliases. All words are found from the points themselves, as solutions of linear
equations over {0, 1} (Box, Hunter & Hunter 1978, ch. 12), so what a file claims of its own
generators is never needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import NotComparable
from control.names import first_few

if TYPE_CHECKING:
    from analysis.stats.linear import Floats

    from .terms import Observed

Effect = tuple[int, ...]  # the numbers of its factors, in order; () is the mean
MOST_WORDS = 14  # bits: beyond 16,384 words the list of aliases helps nobody


def coded_points(data: Observed) -> Floats:
    """Code every planned point as -1 (a factor's first level) and +1: shape (points, factors)."""
    lows = [factor.levels[0] for factor in data.factors]
    return np.array([[-1.0 if a == b else 1.0 for a, b in zip(levels, lows, strict=True)] for levels in data.points.values()])


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

    Raises: NotComparable, where there are more than 2^14: so few points tell hardly anything apart.
    """
    points, factors = coded.shape
    differs = coded != coded[0]
    independent: dict[int, tuple[int, int]] = {}  # by their highest bit: a column's bits, and the factors whose product it is
    products = [0]
    for factor in range(factors):
        bits, word = sum(1 << at for at in range(points) if differs[at, factor]), 1 << factor
        while bits and bits.bit_length() in independent:
            other_bits, other_word = independent[bits.bit_length()]
            bits, word = bits ^ other_bits, word ^ other_word
        if bits:
            independent[bits.bit_length()] = bits, word
        elif len(products) == 1 << MOST_WORDS:
            raise NotComparable(f"{points} points for {factors} factors: a design that tells nothing apart.")
        else:
            products += [product ^ word for product in products]
    words = [tuple(at for at in range(factors) if product >> at & 1) for product in products[1:]]
    return sorted(words, key=lambda word: (len(word), word))


def aliases(effect: Effect, words: Sequence[Effect], order: int) -> list[Effect]:
    """Effects of at most so many factors that share the column of this one, up to its sign; the mean is ()."""
    same = {tuple(sorted(set(effect) ^ set(word))) for word in words}
    return sorted((other for other in same if len(other) <= order), key=lambda other: (len(other), other))


def resolution(words: Sequence[Effect]) -> int | None:
    """Length of the shortest word: III mixes main effects with interactions of two, IV those with each other; None: nothing is mixed."""
    return min(map(len, words), default=None)


def partly_mixed(coded: Floats) -> float:
    """Largest correlation, other than 0 and 1, of a main effect with an interaction of two others: what Plackett-Burman designs have."""
    largest = 0.0
    for pair in combinations(range(coded.shape[1]), 2):
        shared = np.delete(np.abs(coded.T @ column(coded, pair)) / len(coded), pair)
        largest = max(largest, float(shared[shared < 1 - 1e-9].max(initial=0.0)))
    return largest


def contradictions(data: Observed, shortest: int | None) -> Iterator[str]:
    """Say where a design's own notes claim another resolution than their `shortest` word, or generators that its points do not have."""
    claimed = data.design_notes.get("resolution")
    if claimed not in (None, shortest):
        points = "full resolution" if shortest is None else f"resolution {shortest}"
        yield f"the run's notes say resolution {claimed}; its points have {points}: the points are believed."
    generators = data.design_notes.get("generators")
    claims = [(str(name), str(word)) for name, word in generators.items()] if isinstance(generators, dict) else []
    coded, places = coded_points(data), {factor.letter: at for at, factor in enumerate(data.factors)}
    wrong = [f"{name} = {word}" for name, word in claims if not _equal(name, word, places, coded)]
    if wrong:
        yield f"the run's notes say {first_few(wrong, 3)}, which its points do not: the points are believed."


def _equal(name: str, word: str, places: Mapping[str, int], coded: Floats) -> bool:
    """Whether a factor is a product of others at every point, sign included; a letter that is no factor's makes it false."""
    letters = word.removeprefix("-")
    if name not in places or not letters or not places.keys() >= set(letters):
        return False
    sign = -1 if word.startswith("-") else 1
    return bool((coded[:, places[name]] == sign * column(coded, tuple(places[letter] for letter in letters))).all())
