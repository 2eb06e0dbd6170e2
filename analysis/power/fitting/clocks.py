"""How a quantity rises with the clock: monotone by construction, 1 at the anchor clock, bounded outside the clocks that were measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import least_squares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.power.terms import Floats

MOST_KNOTS, MOST_STEPS = 16, 60
NOISE = 0.03  # sd of the logarithm of one row; how strictly the priors below are to be taken depends on it


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


def fit(series: Sequence[tuple[Floats, Floats]], anchor: float) -> Response:
    """Fit to several partitions, each (clocks, values) at two clocks or more; `anchor` is the clock where the ratio is 1.

    The reference value of each partition is fitted with the rest, so that a partition without a row at the anchor clock serves too.
    """
    clocks = np.concatenate([one for one, _ in series])
    logs = np.log(np.concatenate([values for _, values in series]))
    which = np.repeat(np.arange(len(series)), [len(one) for one, _ in series])
    knots = _knots(clocks, anchor)
    unit = float(np.exp(np.median([np.log(values[np.argmax(one)]) for one, values in series])))
    expected = np.diff(knots) / (knots[-1] - knots[0])
    free = len(expected)

    def parts(found: Floats) -> tuple[Floats, float, float, Floats]:
        steps = np.exp(found[:free]) * expected
        risen = np.concatenate([[0.0], np.cumsum(steps)])
        return risen / float(PchipInterpolator(knots, risen)(anchor)), float(found[free]), float(found[free + 1]), found[free + 2 :]

    def fitted(found: Floats) -> Floats:
        risen, level, slope, references = parts(found)
        floor = floor_of(level, slope, references)[which]
        ratio: Floats = np.log(floor + (1.0 - floor) * PchipInterpolator(knots, risen)(clocks)) + np.log(unit) + references[which]
        return ratio

    def off(found: Floats) -> Floats:
        return np.concatenate(
            [(fitted(found) - logs) / NOISE, found[:free] / 3.0, [np.mean(found[:free]), found[free] / 2.0, (found[free + 1] - 0.5) / 0.5]]
        )

    start = np.concatenate([np.zeros(free), [0.0, 0.5], [np.log(values[np.argmax(one)] / unit) for one, values in series]])
    lowest = np.concatenate([np.full(free, -12.0), [-8.0, 0.0], np.full(len(series), -8.0)])
    highest = np.concatenate([np.full(free, 6.0), [8.0, 2.0], np.full(len(series), 8.0)])
    found = least_squares(off, start, bounds=(lowest, highest), loss="soft_l1", max_nfev=MOST_STEPS, ftol=1e-6).x
    risen, level, slope, _ = parts(found)
    spread = fitted(found) - logs
    used = free + 2 + len(series)
    log_sd = float(np.sqrt((spread**2).sum() / max(1, len(logs) - used)))
    return Response(tuple(map(float, knots)), tuple(map(float, risen)), anchor, level, slope, unit, log_sd)


def _knots(clocks: Floats, anchor: float) -> Floats:
    """Clocks that were measured, those within 2 % of the range taken as one, and the anchor; at most 16."""
    every = np.unique(np.append(clocks, anchor))
    kept = [every[0]]
    for one in every[1:]:
        if one - kept[-1] > 0.02 * (every[-1] - every[0]):
            kept.append(one)
    kept[-1] = every[-1]
    if len(kept) > MOST_KNOTS:
        kept = list(np.interp(np.linspace(0, len(kept) - 1, MOST_KNOTS), np.arange(len(kept)), kept))
    return np.array(kept)
