"""Groups dealt into folds: what belongs together is never on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .terms import TooFew

if TYPE_CHECKING:
    from .terms import Texts, Whole

FOLDS, INNER = 10, 5
LEAST = 5  # groups: with fewer, an error of groups left out is an anecdote
SEED = 1


def folds(groups: Texts, most: int = FOLDS, seed: int = SEED) -> Whole:
    """Deal groups into folds, in an order drawn by the seed; answers the fold of each row, shape (rows,).

    Raises: TooFew.
    """
    names, group = np.unique(groups, return_inverse=True)
    if len(names) < LEAST:
        raise TooFew(f"{len(names)} group{'s' if len(names) != 1 else ''}; leaving groups out takes {LEAST} at least")
    dealt = np.empty(len(names), dtype=np.int64)
    dealt[np.random.default_rng(seed).permutation(len(names))] = np.arange(len(names)) % min(most, len(names))
    return np.asarray(dealt[group])


def each(fold: Whole) -> list[tuple[Whole, Whole]]:
    """Answer training and test rows of every fold, as places."""
    return [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in np.unique(fold)]


def weights(groups: Texts) -> np.ndarray:
    """Let each group count once, however many rows it has: 1/rows of its group, shape (rows,)."""
    _, group, count = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / count[group])
