"""The trailing mean: what a noisy series does on the whole, without looking ahead."""

from __future__ import annotations

import numpy as np


def trailing_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Mean of each value and those before it, `window` together at most; what is NaN is left out and stays NaN.

    Returns: shape of `values`.
    """
    known = np.isfinite(values)
    total, count = np.cumsum(np.where(known, values, 0.0)), np.cumsum(known)
    before_total, before_count = np.zeros_like(total), np.zeros_like(count)
    before_total[window:], before_count[window:] = total[:-window], count[:-window]
    return np.where(known, (total - before_total) / np.maximum(count - before_count, 1), np.nan)
