"""How throughput and power follow the SM clock, from what a partition gives at the reference clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from control.power.terms import Floats

SLOW = 0.2  # of the throughput at the reference clock: what starts below it follows another law


@dataclass(frozen=True, slots=True)
class ThroughputCurve:
    """Images/s over the clock: start + (ref − start)·x^gamma, with x from 0 at `low_mhz` to 1 at `high_mhz`.

    Where `start_images_per_s` is below a fifth of ref: ref·x^(gamma/2). So the curve jumps there; where ref < start it falls.
    κ(b̄) = kappa_a·ln b̄ + kappa_b is images/s per percent of memory utilisation, a feature of the regressor for ref.
    """

    kappa_a: float
    kappa_b: float
    gamma: float
    start_images_per_s: float
    low_mhz: float
    high_mhz: float

    def __post_init__(self) -> None:
        """Refuse a range that is none. Raises: ValueError."""
        _must_be_range(self.low_mhz, self.high_mhz)


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """Watts over the clock: static, a cubic in MHz (`static_w`, highest power first), and dynamic, base + (ref − base)·x^gamma.

    x runs from 0 at `low_mhz` to 1 at `high_mhz`.
    """

    static_w: tuple[float, float, float, float]
    base_w: float
    gamma: float
    low_mhz: float
    high_mhz: float

    def __post_init__(self) -> None:
        """Refuse a range that is none. Raises: ValueError."""
        _must_be_range(self.low_mhz, self.high_mhz)


def kappa(curve: ThroughputCurve, batch: Floats) -> Floats:
    """Images/s per percent of memory utilisation at a mean batch. Shape: that of `batch`."""
    said: Floats = curve.kappa_a * np.log(batch) + curve.kappa_b
    return said


def throughput_images_per_s(curve: ThroughputCurve, reference: Floats, sm_mhz: Floats) -> Floats:
    """Images/s at a clock, of what gives `reference` images/s at `high_mhz`. Shape: theirs, broadcast."""
    x = _position(curve.low_mhz, curve.high_mhz, sm_mhz)
    start = curve.start_images_per_s
    slow = reference * x ** (curve.gamma / 2)
    return np.where(start < SLOW * reference, slow, start + (reference - start) * x**curve.gamma)


def static_w(curve: PowerCurve, sm_mhz: Floats) -> Floats:
    """Watts of a GPU that does nothing at this clock."""
    cubic, square, slope, constant = curve.static_w
    said: Floats = ((cubic * sm_mhz + square) * sm_mhz + slope) * sm_mhz + constant
    return said


def power_w(curve: PowerCurve, dynamic_w: Floats, sm_mhz: Floats) -> Floats:
    """Watts at a clock, of what adds `dynamic_w` at `high_mhz`. Shape: theirs, broadcast."""
    x = _position(curve.low_mhz, curve.high_mhz, sm_mhz)
    return static_w(curve, sm_mhz) + curve.base_w + (dynamic_w - curve.base_w) * x**curve.gamma


def power_slope_w_per_mhz(curve: PowerCurve, dynamic_w: Floats, sm_mhz: Floats) -> Floats:
    """What one MHz more costs; beyond `low_mhz` and `high_mhz` the formula goes on. Shape: theirs, broadcast."""
    cubic, square, slope, _ = curve.static_w
    still = (3 * cubic * sm_mhz + 2 * square) * sm_mhz + slope
    width = curve.high_mhz - curve.low_mhz
    x = np.maximum(sm_mhz - curve.low_mhz, 0) / width
    said: Floats = still + curve.gamma * (dynamic_w - curve.base_w) * x ** (curve.gamma - 1) / width
    return said


def _must_be_range(low_mhz: float, high_mhz: float) -> None:
    if not 0 <= low_mhz < high_mhz:
        raise ValueError(f"clocks from {low_mhz:g} to {high_mhz:g} MHz are no range")


def _position(low_mhz: float, high_mhz: float, sm_mhz: Floats) -> Floats:
    said: Floats = np.clip((np.asarray(sm_mhz, dtype=np.float64) - low_mhz) / (high_mhz - low_mhz), 0, 1)
    return said
