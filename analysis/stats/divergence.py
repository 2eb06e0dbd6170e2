"""How far two samples lie apart, in the measures other change-point tools judge by; evidence beside a change, never the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from control.t_test import t_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def energy_divergence(before: Floats, after: Floats) -> float:
    """Energy divergence Q of two samples of at least two values each, in the unit of the values.

    mn/(m+n) · (2·mean|x-y| - mean|x-x'| - mean|y-y'|), the statistic of E-divisive with alpha 1.
    Source: Matteson and James, JASA 2014, arXiv 1306.4933, equation 5.
    """
    m, n = len(before), len(after)
    within = _pair_sum(before), _pair_sum(after)
    between = _pair_sum(np.concatenate([before, after])) - sum(within)
    return float(2 / (m + n) * between - m * n / (m + n) * (within[0] / (m * (m - 1) / 2) + within[1] / (n * (n - 1) / 2)))


def _pair_sum(values: Floats) -> float:
    """Sum of |x - x'| over all pairs, by ranks instead of pair by pair."""
    n = len(values)
    return float(np.sort(values) @ (2 * np.arange(n) - (n - 1)))


def student(before: Floats, after: Floats) -> tuple[float, float] | None:
    """Student's t of the second sample against the first, and its two-sided p-value; None where neither varies."""
    m, n = len(before), len(after)
    squares = ((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()
    if not squares:
        return None
    t = float((after.mean() - before.mean()) / np.sqrt(squares / (m + n - 2) * (1 / m + 1 / n)))
    return t, 2 * t_tail(abs(t), m + n - 2)
