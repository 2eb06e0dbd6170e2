"""Batch × power limit: which of them is fastest under a cap on mean power, found from a few measured points.

A limit throttles a GPU until it draws no more; what it does then rises with the limit and levels off where nothing needs throttling.
Logarithms of speed and of power are each a law of few parameters and what it leaves over as a Gaussian process over ln batch and ln limit.
`search` begins at corners and middle, measures where the model expects the best and where it may be wrong, and ends when nothing is
promised to be better than what was measured: what it answers was measured, so its power is not a promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import least_squares

from control.power.models.surface import matern

from .likely import most_likely

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from control.power.terms import Floats

SCALES = np.array([1.5, 0.5])  # expected length scales of ln batch and ln limit
# How far from what is expected ln of these may be: speed (or power) at full draw, half batch, steepness below it, limit that throttles no
# more, its growth with batch, sharpness of the knee.
LOOSE = np.array([2.0, 1.5, 0.5, 0.7, 0.3, 0.7])
NOISE = 0.05
WORTH = 0.005  # a gain below this is not looked for
# sds: how much better than expected a point may be, and how much less power it may draw. With 1.6, 2 of 97 searches in Zeus' tables ended
# more than 1 % below the best; with 2.5 none, and 15 points were measured in place of 13.
SURE = 2.5


@dataclass(frozen=True, slots=True)
class At:
    """A batch (images) under a power limit (W)."""

    batch: int
    limit_w: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one of them gave: speed in any unit (larger is better), mean power in W."""

    at: At
    speed: float
    power_w: float


@dataclass(frozen=True, slots=True)
class Predicted:
    """Speed and mean power, with the sds of their logarithms; shape (points,)."""

    speed: Floats
    power_w: Floats
    speed_log_sd: Floats
    power_log_sd: Floats


@dataclass(frozen=True, slots=True)
class Found:
    """The fastest measured point within the cap, None where none is; and all that was measured to find it, in order."""

    best: Measured | None
    measured: tuple[Measured, ...]


def predict(measured: Sequence[Measured], points: Sequence[At]) -> Predicted:
    """What points give, after what was measured (three or more)."""
    known, asked = _columns([one.at for one in measured]), _columns(points)
    speed, speed_sd = _surface(known, np.log([one.speed for one in measured]), asked)
    power, power_sd = _surface(known, np.log([one.power_w for one in measured]), asked)
    return Predicted(np.exp(speed), np.exp(power), speed_sd, power_sd)


def search(grid: Sequence[At], measure: Callable[[At], Measured], cap_w: float) -> Found:
    """Look for the fastest point of the grid whose mean power is within the cap, measuring as few as it takes."""
    order = first(grid)
    measured = {at: measure(at) for at in order}
    while True:
        within = [one for one in measured.values() if one.power_w <= cap_w]
        best = max(within, key=lambda one: one.speed, default=None)
        left = [at for at in grid if at not in measured]
        following = _following(list(measured.values()), left, cap_w, best) if left else None
        if following is None:
            return Found(best, tuple(measured.values()))
        measured[following] = measure(following)


def first(grid: Sequence[At]) -> list[At]:
    """Where to begin: lowest, middle and highest batch at lowest, middle and highest limit, as far as the grid has them."""
    batches, limits = sorted({at.batch for at in grid}), sorted({at.limit_w for at in grid})
    there = set(grid)
    corners = [At(int(batch), limit) for batch in _three(batches) for limit in _three(limits)]
    return [at for at in corners if at in there] or list(grid[:3])


def _following(measured: Sequence[Measured], left: Sequence[At], cap_w: float, best: Measured | None) -> At | None:
    """The point most worth measuring: that may be within the cap, and faster than the best by what is worth it. None, if there is none."""
    said = predict(measured, left)
    least = said.power_w * np.exp(-SURE * said.power_log_sd)
    hoped = np.where(least <= cap_w, said.speed * np.exp(SURE * said.speed_log_sd), 0.0)
    place = int(np.argmax(hoped))
    enough = 0.0 if best is None else best.speed * (1.0 + WORTH)
    return left[place] if hoped[place] > enough else None


def _three(values: Sequence[float]) -> list[float]:
    return list(dict.fromkeys([values[0], values[len(values) // 2], values[-1]]))


def _columns(points: Sequence[At]) -> Floats:
    return np.log([[float(at.batch), at.limit_w] for at in points])


def _surface(known: Floats, logs: Floats, asked: Floats) -> tuple[Floats, Floats]:
    """Value and sd of a logarithm at `asked`, shape (points,)."""
    before = np.array([logs.max(), np.median(known[:, 0]) - 2.0, 0.0, known[:, 1].max() - 0.3, 0.0, np.log(4.0)])

    def off(law: Floats) -> Floats:
        return np.concatenate([(_law(law, known) - logs) / NOISE, (law - before) / LOOSE])

    law = least_squares(off, before, loss="soft_l1").x
    left = logs - _law(law, known)
    hyper = np.exp(most_likely(known, left, SCALES))
    scales, amplitude, noise = hyper[:2], hyper[2], hyper[3]
    factor = cho_factor(amplitude**2 * matern(known, known, scales) + noise**2 * np.eye(len(known)), lower=True)
    cross = amplitude**2 * matern(asked, known, scales)
    variance = amplitude**2 + noise**2 - np.einsum("ij,ji->i", cross, cho_solve(factor, cross.T))
    return _law(law, asked) + cross @ cho_solve(factor, left), np.sqrt(np.clip(variance, 0.0, None))


def _law(law: Floats, columns: Floats) -> Floats:
    full, half, steep, knee, growth, sharp = law
    batch, limit = columns.T
    q = np.exp(sharp)
    throttled = -np.exp(steep) * np.logaddexp(0.0, -q * (limit - knee - growth * (batch - half))) / q
    value: Floats = full - np.logaddexp(0.0, half - batch) + throttled
    return value
