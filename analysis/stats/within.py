"""Within one run: where it stalled, and whether it drifted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats

LEVEL = 0.05
STALLED = 3.0  # times the median; unlike steps are judged by their 90th percentile


class Stall(NamedTuple):
    """Steps from `first` (1-based) that `took` seconds, in the mean `times` the median step."""

    first: int
    steps: int
    took: float
    times: float


def stalls(values: Sequence[float]) -> list[Stall]:
    """Find stalls: stretches of steps 3 times as long as the median and twice the 90th percentile.

    If such steps are a share s of n, chance would make n·s^k stretches of k; a stretch is a stall
    if that is below .05. So a single long step is not one, and a series of unlike steps has none.
    """
    x = np.asarray(values, float)
    usual = float(np.median(x))
    is_long = x > max(STALLED * usual, 2 * float(np.quantile(x, 0.9)))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_long, [False]])))
    runs = [(int(start), int(end - start)) for start, end in edges.reshape(-1, 2)]
    return [
        Stall(
            start + 1,
            count,
            float(x[start : start + count].sum()),
            float(x[start : start + count].mean() / usual),
        )
        for start, count in runs
        if usual > 0 and len(x) * float(is_long.mean()) ** count < LEVEL
    ]


def drift(values: Sequence[float]) -> tuple[float, float]:
    """Return the ratio of the halves' median steps, and p for no difference (two-sample KS)."""
    x = np.asarray(values, float)
    first, second = x[: len(x) // 2], x[len(x) // 2 :]
    return float(np.median(second) / np.median(first)), float(
        scipy.stats.ks_2samp(first, second).pvalue
    )
