"""What the board takes with no work, over the clock: never falling, from traces of the pseudo-model `static`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import PchipInterpolator
from sklearn.isotonic import isotonic_regression

if TYPE_CHECKING:
    from analysis.power.terms import Floats


@dataclass(frozen=True)
class Static:
    """Static power at clocks, ascending, PCHIP between; outside them that of the nearest. `sd_w` is the spread of rows about it."""

    clocks: tuple[float, ...]
    power_w: tuple[float, ...]
    sd_w: float

    @cached_property
    def _curve(self) -> PchipInterpolator:
        return PchipInterpolator(self.clocks, self.power_w)

    def at(self, clock: Floats) -> Floats:
        """Watts, shape of `clock`."""
        if len(self.clocks) == 1:
            return np.full(np.shape(clock), self.power_w[0])
        watts: Floats = self._curve(np.clip(clock, self.clocks[0], self.clocks[-1]))
        return watts


NONE = Static((0.0,), (0.0,), 0.0)


def fit(clocks: Floats, power_w: Floats) -> Static:
    """Mean power of each clock, made never to fall by pooling neighbours (isotonic regression)."""
    distinct, which = np.unique(clocks, return_inverse=True)
    counts = np.bincount(which).astype(float)
    means = np.bincount(which, power_w) / counts
    level = isotonic_regression(means, sample_weight=counts)
    off = power_w - level[which]
    return Static(tuple(map(float, distinct)), tuple(map(float, level)), float(np.sqrt(np.mean(off**2))))
