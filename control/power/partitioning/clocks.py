"""The largest clock under a cap, as the original finds it: by bisection on the predicted power, for many partitions at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from control.power.terms import Anchor, Floats, Model

HALVINGS = 12
CLOSE_W = 1.0
NARROW_MHZ = 100.0
NARROW_SHARE = 0.2


def largest(model: Model, anchor: Anchor, cap_w: float, between_mhz: tuple[float, float], *, narrow: bool) -> Floats:
    """Answer the clock of each partition, MHz, NaN where even the lower of `between_mhz` takes more than the cap. Shape (partitions,).

    It stops within 1 W of the cap, on either side of it, and is not rounded to a supported clock. `narrow` is the original's slow way: the
    range is first cut down around a linear estimate, and a power of exactly the cap at the upper end does not yet do.
    Source: PctoDL's code, as its study describes it.
    """
    low, high = (np.full(anchor.throughput_images_per_s.shape, one) for one in between_mhz)
    at_low, at_high = model.power_w(anchor, low), model.power_w(anchor, high)
    fits = at_high < cap_w if narrow else at_high <= cap_w
    clock = np.where(at_low > cap_w, np.nan, high)
    sought = ~((at_low > cap_w) | fits)
    if narrow:
        low, high = _narrowed(model, anchor, cap_w, (low, at_low), (high, at_high))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        power_w = model.power_w(anchor, middle)
        close = sought & (np.abs(power_w - cap_w) <= CLOSE_W)
        clock[close] = middle[close]
        sought &= ~close
        under = power_w < cap_w
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    clock[sought] = low[sought]
    return clock


def _narrowed(
    model: Model, anchor: Anchor, cap_w: float, lower: tuple[Floats, Floats], upper: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Cut (clock, power) ranges down around where a straight line meets the cap, if the narrower one still holds it."""
    (low, at_low), (high, at_high) = lower, upper
    rise = at_high - at_low
    part = np.clip(np.divide(cap_w - at_low, rise, out=np.zeros_like(rise), where=rise != 0), 0, 1)
    estimate = low + part * (high - low)
    width = np.maximum(NARROW_MHZ, NARROW_SHARE * (high - low))
    near_low, near_high = np.maximum(low, estimate - width), np.minimum(high, estimate + width)
    holds = (model.power_w(anchor, near_low) <= cap_w) & (model.power_w(anchor, near_high) >= cap_w)
    return np.where(holds, near_low, low), np.where(holds, near_high, high)
