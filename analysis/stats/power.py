"""Plan the number of blocks from a pilot's spread and the effect to be found."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri

from control.t_test import ALPHA, POWER, detectable_errors

from .linear import base_columns, coded_levels, rss

LEVEL = 0.95
FEWEST = 3  # blocks; with fewer, nothing is compared
MOST = 100_000  # blocks; beyond, no number is practical


def blocks_needed(
    log_sd: float, gain: float, alpha: float = ALPHA, power: float = POWER
) -> int | None:
    """Return the fewest blocks with which a two-sided paired t-test detects a gain (a fraction).

    None beyond 100,000. Exact, by the noncentral t: the textbook z is too optimistic for few
    blocks. `log_sd` is the spread of the log ratio per block.
    """
    log_gain = math.log1p(gain)
    result = FEWEST + bisect_left(
        range(FEWEST, MOST + 1),
        x=True,
        key=lambda n: detectable_errors(n - 1, alpha, power) * log_sd / math.sqrt(n) <= log_gain,
    )
    return result if result <= MOST else None


def pair_spread(cells: Sequence[tuple[int, str, float]]) -> tuple[float, int]:
    """Return the SD of two arms' log ratio within a block, and its degrees of freedom.

    `cells` are (block, arm, log value). Raises: ValueError, if no degree of freedom is left.
    """
    blocks, arms, values = zip(*cells, strict=True)
    left, df = rss([base_columns(blocks), coded_levels(arms)], np.array(values))
    if not df:
        raise ValueError("one cell per arm and block: nothing is left to estimate a spread")
    return math.sqrt(2 * left / df), df


def spread_interval(log_sd: float, df: int) -> tuple[float, float]:
    """Return the 95 % interval of a standard deviation with `df` d.f. (chi-square)."""
    low, high = chdtri(df, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return log_sd * math.sqrt(df / low), log_sd * math.sqrt(df / high)
