"""Positive random times with a given mean and squared coefficient of variation, from uniform numbers by inversion.

By inversion, so that the same numbers give longer times under a longer mean and nothing else changes: common random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaincinv, ndtri

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


_ALIKE = 1e-9  # below that a gamma cannot be told from one number, nor computed
_LEAST = 2.0**-53  # a number from 0 to 1 that was rounded to an end would be an infinite time


@dataclass(frozen=True, slots=True)
class Law:
    """Times of mean `mean_s`. `cv2` is variance over squared mean: 0 always the same, 1 exponential.

    Below 1 it is a gamma, above 1 two exponentials in balance (H2: half of the time is in each; Tijms, 2003).
    """

    mean_s: float
    cv2: float = 1.0

    def times_s(self, uniform: Floats) -> Floats:
        """Turn numbers from 0 to 1 into times, one each, in seconds."""
        if self.cv2 < _ALIKE:
            return np.full(uniform.shape, self.mean_s)
        if self.cv2 < 1:
            shape = 1 / self.cv2
            times_s: Floats = gammaincinv(shape, uniform) * self.mean_s / shape
            return times_s
        if self.cv2 == 1:
            return _exponential(uniform) * self.mean_s
        few = (1 - np.sqrt((self.cv2 - 1) / (self.cv2 + 1))) / 2
        # One number does for both: which of the two, and, what is left of it stretched to 0 … 1, how long.
        long = uniform >= 1 - few
        left = np.where(long, (uniform - (1 - few)) / few, uniform / (1 - few))
        mixed: Floats = _exponential(left) * self.mean_s / (2 * np.where(long, few, 1 - few))
        return mixed


def errors(uniform: Floats, sd_log: float) -> Floats:
    """Factors by which predictions are off: lognormal with median 1."""
    factors: Floats = np.exp(sd_log * ndtri(np.clip(uniform, _LEAST, 1 - _LEAST)))
    return factors


def _exponential(uniform: Floats) -> Floats:
    times: Floats = -np.log1p(-np.minimum(uniform, 1 - _LEAST))
    return times
