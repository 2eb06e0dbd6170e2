"""The original's formulas: utilisation at the anchor clock; throughput and power by SM clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from control.power.terms import Floats, Partition

WIDEST_PERCENT = 40.0  # the largest share of the grid, to which the SM prior refers


@dataclass(frozen=True, slots=True)
class SmSingle:
    """One process's SM utilisation, 100·tanh((lam·ln b + beta) / max(r, 1)^gamma)."""

    lam: float
    gamma: float
    beta: float


@dataclass(frozen=True, slots=True)
class SmSystem:
    """The saturation of processes' SM utilisation: L = slope·ū + offset, and curvature kappa."""

    slope: float
    offset: float
    kappa: float


@dataclass(frozen=True, slots=True)
class MemSingle:
    """One process's memory utilisation, phi·(r/100)^exponent·tanh(lam·ln b + beta)."""

    phi: float
    exponent: float
    lam: float
    beta: float


@dataclass(frozen=True, slots=True)
class MemSystem:
    """The memory utilisation that each additional process contributes, by mean batch.

    k1·b̄ + k2 up to `tau`; above it saturating by `a` at the rate `b`, with the slope `mu` that
    remains, continuous at `tau`.
    """

    k1: float
    k2: float
    a: float
    b: float
    mu: float
    tau: float


@dataclass(frozen=True, slots=True)
class Padded:
    """Partitions as arrays, shape (partitions, processes); `here` is 0 for padding."""

    shares: Floats
    batches: Floats
    here: Floats

    @property
    def processes(self) -> Floats:
        return np.asarray(self.here.sum(axis=1), dtype=np.float64)


def padded(partitions: Sequence[Partition]) -> Padded:
    """Convert partitions to padded arrays.

    A process that is not there has the share and batch 1, which no formula stumbles over.
    """
    most = max((len(partition.shares) for partition in partitions), default=0)
    shape = (len(partitions), most)
    here = np.zeros(shape)
    shares, batches = np.ones(shape), np.ones(shape)
    for row, partition in enumerate(partitions):
        count = len(partition.shares)
        here[row, :count] = 1
        shares[row, :count] = partition.shares
        batches[row, :count] = partition.batches
    return Padded(shares, batches, here)


def total(values: Floats, among: Padded) -> Floats:
    """Sum over processes in order, so that other partitions do not affect a single bit."""
    summed: Floats = np.cumsum(values * among.here, axis=1)
    return summed[:, -1] if summed.shape[1] else np.zeros(len(summed))


def mean(values: Floats, among: Padded) -> Floats:
    return total(values, among) / among.processes


def variance(values: Floats, among: Padded) -> Floats:
    """Return the population variance over processes, shape (partitions,)."""
    return total((values - mean(values, among)[:, None]) ** 2, among) / among.processes


def sm_util_percent(law: SmSingle, shares: Floats, batches: Floats) -> Floats:
    """Return each process's SM utilisation alone. Shape: that of shares and batches."""
    said: Floats = 100 * np.tanh(
        (law.lam * np.log(batches) + law.beta) / np.maximum(shares, 1.0) ** law.gamma
    )
    return said


def mem_util_percent(law: MemSingle, shares: Floats, batches: Floats) -> Floats:
    """Return each process's memory utilisation alone. Shape: that of shares and batches."""
    said: Floats = (
        law.phi * (shares / 100) ** law.exponent * np.tanh(law.lam * np.log(batches) + law.beta)
    )
    return said


def sm_prior_percent(single: SmSingle, system: SmSystem, among: Padded) -> Floats:
    """Return the SM utilisation of all processes together, shape (partitions,)."""
    alone = sm_util_percent(single, among.shares, among.batches)
    average = mean(alone, among)
    widest = sm_util_percent(single, np.full(len(alone), WIDEST_PERCENT), among.batches[:, 0])
    room = np.maximum(100 - widest, np.finfo(float).tiny)
    position = np.clip((average - widest) / room, 0, 1)
    line = system.slope * average + system.offset
    limit = line + (100 - line) * np.tanh(system.kappa * position) / np.tanh(system.kappa)
    idle = np.where(among.here > 0, 1 - np.clip(alone / limit[:, None], 0, 1), 1.0)
    together: Floats = limit * (1 - np.prod(idle, axis=1))
    return np.where(among.processes > 1, together, alone[:, 0])


def mem_prior_percent(single: MemSingle, system: MemSystem, among: Padded) -> Floats:
    """Return the memory utilisation of all processes together, shape (partitions,)."""
    alone = mem_util_percent(single, among.shares, among.batches)
    average = mean(alone, among)
    further = mem_gain(system, mean(among.batches, among))
    return average + mean(among.shares, among) * further * (among.processes - 1)


def mem_gain(system: MemSystem, batch: Floats) -> Floats:
    """Return what each additional process adds (% per % of share). Shape: that of `batch`."""
    constant = system.k1 * system.tau + system.k2 - system.a * (1 - np.exp(-system.b * system.tau))
    low = system.k1 * batch + system.k2
    high = system.a * (1 - np.exp(-system.b * batch)) + system.mu * (batch - system.tau) + constant
    return np.where(batch <= system.tau, low, high)


SLOW = 0.2  # of the throughput at the reference clock: what starts below it follows another law


@dataclass(frozen=True, slots=True)
class ThroughputCurve:
    """Images/s by clock: start + (ref − start)·x^gamma; x: 0 to 1 from `low_mhz` to `high_mhz`.

    If `start_images_per_s` is below a fifth of ref: ref·x^(gamma/2). So the curve jumps there;
    if ref < start it falls. κ(b̄) = kappa_a·ln b̄ + kappa_b is images/s per percent of memory
    utilisation, a feature of the regressor for ref.
    """

    kappa_a: float
    kappa_b: float
    gamma: float
    start_images_per_s: float
    low_mhz: float
    high_mhz: float

    def __post_init__(self) -> None:
        """Check the range of clocks. Raises: ValueError."""
        _must_be_range(self.low_mhz, self.high_mhz)


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """Watts by clock: static plus dynamic, base + (ref − base)·x^gamma.

    `static_w` is a cubic in MHz, highest power first. x runs from 0 at `low_mhz` to 1 at
    `high_mhz`.
    """

    static_w: tuple[float, float, float, float]
    base_w: float
    gamma: float
    low_mhz: float
    high_mhz: float

    def __post_init__(self) -> None:
        """Check the range of clocks. Raises: ValueError."""
        _must_be_range(self.low_mhz, self.high_mhz)


def kappa(curve: ThroughputCurve, batch: Floats) -> Floats:
    """Return images/s per percent of memory utilisation, by mean batch. Shape: that of `batch`."""
    said: Floats = curve.kappa_a * np.log(batch) + curve.kappa_b
    return said


def throughput_images_per_s(curve: ThroughputCurve, reference: Floats, sm_mhz: Floats) -> Floats:
    """Return images/s at a clock for processes that reach `reference` at `high_mhz`.

    Shape: theirs, broadcast.
    """
    x = _position(curve.low_mhz, curve.high_mhz, sm_mhz)
    start = curve.start_images_per_s
    slow = reference * x ** (curve.gamma / 2)
    return np.where(start < SLOW * reference, slow, start + (reference - start) * x**curve.gamma)


def static_w(curve: PowerCurve, sm_mhz: Floats) -> Floats:
    cubic, square, slope, constant = curve.static_w
    said: Floats = ((cubic * sm_mhz + square) * sm_mhz + slope) * sm_mhz + constant
    return said


def power_w(curve: PowerCurve, dynamic_w: Floats, sm_mhz: Floats) -> Floats:
    x = _position(curve.low_mhz, curve.high_mhz, sm_mhz)
    return static_w(curve, sm_mhz) + curve.base_w + (dynamic_w - curve.base_w) * x**curve.gamma


def power_slope_w_per_mhz(curve: PowerCurve, dynamic_w: Floats, sm_mhz: Floats) -> Floats:
    """Return the slope of power (W/MHz), extrapolated beyond `low_mhz` and `high_mhz`."""
    cubic, square, slope, _ = curve.static_w
    still = (3 * cubic * sm_mhz + 2 * square) * sm_mhz + slope
    width = curve.high_mhz - curve.low_mhz
    x = np.maximum(sm_mhz - curve.low_mhz, 0) / width
    said: Floats = still + curve.gamma * (dynamic_w - curve.base_w) * x ** (curve.gamma - 1) / width
    return said


def _must_be_range(low_mhz: float, high_mhz: float) -> None:
    if not 0 <= low_mhz < high_mhz:
        raise ValueError(f"clocks from {low_mhz:g} to {high_mhz:g} MHz are not a range")


def _position(low_mhz: float, high_mhz: float, sm_mhz: Floats) -> Floats:
    said: Floats = np.clip(
        (np.asarray(sm_mhz, dtype=np.float64) - low_mhz) / (high_mhz - low_mhz), 0, 1
    )
    return said
