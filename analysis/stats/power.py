"""How many blocks it takes: a pilot's spread and the effect to be found in, blocks out."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri

from control.t_test import ALPHA, POWER, detectable_errors

from .linear import base_columns, coded_levels, rss

LEVEL = 0.95
FEWEST = 3  # blocks, below which nothing is compared
MOST = 100_000  # blocks, beyond which no number helps


def blocks_needed(log_sd: float, gain: float, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """Fewest blocks with which a two-sided paired t-test finds the gain (a fraction) with the given power; None beyond 100,000.

    Exact, by the noncentral t: with few blocks the z of texts promises too much. `log_sd` is the spread of the log ratio of a block.
    """
    log_gain = math.log1p(gain)
    result = FEWEST + bisect_left(
        range(FEWEST, MOST + 1), x=True, key=lambda n: detectable_errors(n - 1, alpha, power) * log_sd / math.sqrt(n) <= log_gain
    )
    return result if result <= MOST else None


def pair_spread(cells: Sequence[tuple[int, str, float]]) -> tuple[float, int]:
    """Standard deviation of the log ratio of two arms in one block, and its degrees of freedom, from (block, arm, log value) of all cells.

    What is left after each arm's and each block's own level are taken off, times √2: every pair of arms has its say, not only those
    with the baseline, and all are taken to scatter alike. With a arms in b complete blocks there are (a - 1)(b - 1) degrees of freedom.

    Raises: ValueError, where none is left.
    """
    blocks, arms, values = zip(*cells, strict=True)
    left, df = rss([base_columns(blocks), coded_levels(arms)], np.array(values))
    if not df:
        raise ValueError("one cell an arm and block: nothing is left to see a spread in")
    return math.sqrt(2 * left / df), df


def spread_interval(log_sd: float, df: int) -> tuple[float, float]:
    """95 % interval of a standard deviation estimated with `df` degrees of freedom (chi-square)."""
    low, high = chdtri(df, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return log_sd * math.sqrt(df / low), log_sd * math.sqrt(df / high)
