"""The algebra of two-level designs: columns of contrasts, and which effects a design cannot tell from each other.

A two-level point is a row of -1 and +1. The column of an interaction is the product of its factors' columns. Where a product of columns
(a *word*) is the same at every point, effects whose product it is are one column and cannot be told apart: aliases. All words are found
from the points themselves, as solutions of linear equations over {0, 1} (Box, Hunter & Hunter 1978, ch. 12), so what a file claims of its
own generators is never needed.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

# An effect: the numbers of its factors, in order; () is the mean.
Effect = tuple[int, ...]
MOST_WORDS = 14  # bits: beyond 16,384 words the list of aliases helps nobody


def effects_up_to(factors: int, order: int) -> Iterator[Effect]:
    """All effects of at most so many factors, main effects first, then interactions of two, and so on."""
    for size in range(1, min(order, factors) + 1):
        yield from combinations(range(factors), size)


def column(coded: Floats, effect: Effect) -> Floats:
    """The contrast of an effect over rows of -1 and +1: shape (rows,)."""
    made: Floats = np.prod(coded[:, list(effect)], axis=1)
    return made


def words(coded: Floats) -> list[Effect]:
    """All products of factors that are constant over the points, shortest first: the defining relation, without its signs.

    Raises: ValueError, where there are more than 2^14: so few points tell hardly anything apart.
    """
    bits = (np.asarray(coded) > 0).astype(np.uint8)
    basis = _null_space(bits ^ bits[0])
    if len(basis) > MOST_WORDS:
        raise ValueError(f"{len(coded)} points for {coded.shape[1]} factors")
    found = set[Effect]()
    for picked in range(1, 2 ** len(basis)):
        word = np.zeros(bits.shape[1], np.uint8)
        for at, vector in enumerate(basis):
            if picked >> at & 1:
                word ^= vector
        found.add(tuple(int(index) for index in np.flatnonzero(word)))
    return sorted(found, key=lambda word: (len(word), word))


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
    return sorted((one for one in same if len(one) <= order), key=lambda one: (len(one), one))


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
