"""How a quantity rises with the clock, fitted: monotone by construction, 1 at the anchor clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import least_squares

from control.power.models.response import Response, floor_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from control.power.terms import Floats

MOST_KNOTS, MOST_STEPS = 16, 60
NOISE = 0.03  # sd of the logarithm of one row; how strictly the priors below are to be taken depends on it


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
