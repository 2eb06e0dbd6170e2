"""Wilcoxon's signed-rank test without a library: whether paired differences lie around 0, however wild some of them are.

Source: Wilcoxon, Biometrics Bulletin 1 (1945) 80; the exact distribution by counting, as in Hollander & Wolfe, 3.1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

EXACT = 25  # differences, up to which sign patterns are counted out; above, the normal distribution agrees to two digits


def signed_rank_p(differences: Sequence[float]) -> float:
    """Two-sided p. Zeros are left out; equal sizes share ranks, and the p is then the normal distribution's. 1 where nothing is left."""
    left = sorted((value for value in differences if value != 0), key=abs)
    n = len(left)
    if n == 0:
        return 1.0
    ranks, ties = _ranks([abs(value) for value in left])
    above = math.fsum(rank for rank, value in zip(ranks, left, strict=True) if value > 0)
    low = min(above, n * (n + 1) / 2 - above)
    if n <= EXACT and not ties:
        return min(1.0, 2 * _at_most(n, round(low)))
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    z = max(0.0, n * (n + 1) / 4 - low - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def _ranks(sizes: Sequence[float]) -> tuple[list[float], int]:
    """Rank sorted sizes from 1, and answer the sum of t³ - t over groups of t equal ones."""
    ranks: list[float] = []
    ties = 0
    while len(ranks) < len(sizes):
        first = len(ranks)
        count = sum(1 for size in sizes[first:] if size == sizes[first])
        ranks += [first + (count + 1) / 2] * count
        ties += count**3 - count
    return ranks, ties


@lru_cache(maxsize=4096)
def _at_most(n: int, most: int) -> float:
    """The share of the 2^n sign patterns whose positive ranks sum to at most so much."""
    counts = [1] + [0] * most
    for rank in range(1, n + 1):
        for at in range(most, rank - 1, -1):
            counts[at] += counts[at - rank]
    return float(sum(counts) / 2**n)
