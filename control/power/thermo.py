"""The study's clock controller: a jump to where the model has the cap, then Newton steps on the model's slope, then single states.

It has no dead band: near the cap it goes up and down by a state for ever. Source: PctoDL's code, as its study describes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, log
from typing import TYPE_CHECKING

import numpy as np

from control.power.models.curves import power_slope_w_per_mhz
from control.power.models.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from .terms import Anchor, Model

PART_OF_STEP = 0.8
LEAST_SLOPE = 1e-6
SAME_CAP = 1e-3
PROBE = 1e-3  # of the range: how far apart a slope is taken where the model has none of its own


@dataclass(frozen=True, slots=True)
class Draw:
    """Power over the clock for one partition: both ends of the range, the exponent in between, and the slope (W/MHz) anywhere."""

    low_mhz: float
    high_mhz: float
    low_w: float
    high_w: float
    exponent: float
    slope: Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Steps:
    """Least and largest step, in MHz, and how near the cap only the least one is taken, in W."""

    least: float = 15.0
    most: float = 300.0
    near: float = 7.0


def draw_of(model: Model, anchor: Anchor) -> Draw:
    """The power of one partition as the model has it; exponent and slope are read off its curve where it has no such parameters."""
    low, high = model.sm_range_mhz

    def power_w(mhz: float) -> float:
        return float(model.power_w(anchor, np.array([mhz]))[0])

    low_w, high_w = power_w(low), power_w(high)
    if isinstance(model, Reference):
        curve, dynamic_w = model.power, anchor.dynamic_power_w
        slope = lambda mhz: float(power_slope_w_per_mhz(curve, dynamic_w, np.array([mhz]))[0])  # noqa: E731  # it closes over the curve
        return Draw(low, high, low_w, high_w, curve.gamma, slope)
    apart = PROBE * (high - low) or PROBE  # where one clock alone was measured, the slope is 0
    half = (power_w((low + high) / 2) - low_w) / max(high_w - low_w, LEAST_SLOPE)
    exponent = log(min(max(half, 0.05), 0.95)) / log(0.5)
    return Draw(low, high, low_w, high_w, exponent, lambda mhz: (power_w(mhz + apart) - power_w(mhz - apart)) / (2 * apart))


class Thermo:
    """The controller at work on one partition; `cap` is None until it was first asked."""

    def __init__(self, draw: Draw, steps: Steps) -> None:
        self.draw, self.steps = draw, steps
        self.cap: float | None = None

    def next_mhz(self, mhz: float, power_max_w: float, cap_w: float) -> float:
        """The clock after one at which `power_max_w` was read; no supported state, and within the model's range."""
        draw = self.draw
        if self.cap is None or abs(cap_w - self.cap) > SAME_CAP:
            self.cap = cap_w
            part = (cap_w - draw.low_w) / max(draw.high_w - draw.low_w, LEAST_SLOPE)
            return float(draw.low_mhz + (draw.high_mhz - draw.low_mhz) * min(max(part, 0.0), 1.0) ** (1 / draw.exponent))
        below_w = cap_w - power_max_w
        if abs(below_w) > self.steps.near:
            newton = PART_OF_STEP * below_w / max(draw.slope(mhz), LEAST_SLOPE)
            step = copysign(min(max(abs(newton), self.steps.least), self.steps.most), below_w)
        else:
            step = copysign(self.steps.least, below_w) if below_w else 0.0
        return min(max(mhz + step, draw.low_mhz), draw.high_mhz)
