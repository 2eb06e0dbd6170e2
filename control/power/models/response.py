"""How quantities rise with the clock: monotone by construction, bounded outside the clocks that were measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import PchipInterpolator

if TYPE_CHECKING:
    from control.power.terms import Floats


@dataclass(frozen=True)
class Response:
    """Ratio to the value at the anchor clock: floor + (1 - floor) · rise(clock).

    `rise` runs from 0 at the lowest of `clocks` through 1 at `anchor` and never falls, PCHIP between. A partition's floor, its ratio at the
    lowest clock, is logistic(`level` - `slope` · ln(reference value / `unit`)): what does more at the anchor clock loses more below it. One
    clock alone has rise (1,). `log_sd` is the sd of the logarithm between rows and this curve.
    """

    clocks: tuple[float, ...]
    rise: tuple[float, ...]
    anchor: float
    level: float
    slope: float
    unit: float
    log_sd: float

    @cached_property
    def _curve(self) -> PchipInterpolator:
        return PchipInterpolator(self.clocks, self.rise)

    def ratio(self, reference: Floats, clock: Floats) -> Floats:
        """Ratio at `clock`; outside the measured clocks that of the nearest. Shape: that of both, broadcast."""
        if len(self.clocks) == 1:
            return np.ones(np.broadcast_shapes(np.shape(reference), np.shape(clock)))
        floor = floor_of(self.level, self.slope, np.log(np.clip(reference, 1e-9, None) / self.unit))
        risen: Floats = self._curve(np.clip(clock, self.clocks[0], self.clocks[-1]))
        return floor + (1.0 - floor) * risen


def floor_of(level: float, slope: float, log_reference: Floats) -> Floats:
    """Ratio at the lowest clock, between 0 and 1."""
    return 1.0 / (1.0 + np.exp(np.clip(slope * log_reference - level, -30.0, 30.0)))


def one_clock(anchor: float) -> Response:
    """What is known where only one clock was measured: nothing of others."""
    return Response((anchor,), (1.0,), anchor, 0.0, 0.0, 1.0, 0.0)


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
