"""Two arms of runs at different times: the step between them beyond drift, memory and outliers.

Values are modelled as a step between the arms, a steady drift, and AR(1) noise; the estimate is the
mean over strengths of memory and drift, weighted by how well each explains the values (Bayesian
model averaging). An outlying run counts only as far as the others of its arm scatter (Huber's
clipping), and one that is very far off does not count; three in a row are a level and stay.

Priors and caution are chosen for at most 5 % false alarms on real equal runs (docs/verdicts.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

# Correlation between neighbours; weaker memory is likelier.
MEMORIES = np.arange(10) / 10
FORGETTING = 5.0
# Drift over all runs, in standard deviations of the noise: the prior's SD, and the weight of each.
DRIFTS = ((1.0, 0.2), (4.0, 0.3), (16.0, 0.5))
# A scale from a few heavy-tailed values is too small: widen the error, more if an arm has no scale
# of its own.
CAUTION, CAUTION_WHERE_FEW = 1.05, 1.12
FEW = 3
# A few consecutive runs beside many others share a state of the machine, which the many cannot
# show.
CAUTION_WHERE_UNEQUAL, UNEQUAL = 1.2, 3
CLIP = 3.0  # robust standard deviations from the arm's median
ODD = 8.0  # from here on, a run is named in a note
RARE = 1 / 9  # share of an arm that may be excluded; if more are outlying, the machine scatters so
FEWEST_TO_CLIP = 4
LEVEL = 3  # this many in a row are a level
MAD_TO_SD = 1.4826  # for normal noise
LEAST_LEFT = 1e-13  # a perfect fit has an infinite likelihood


def step_in_time(
    series: Floats, candidate: Sequence[int], times: Sequence[float] | Floats
) -> tuple[Floats, Floats, Floats]:
    """Estimate how far the candidate's values lie above the baseline's.

    Takes: shape (…, runs), at least four, in order of their `times`; `candidate` is 1 or 0 per run.
    Returns: the step, its standard error and their degrees of freedom, each of shape (…).
    """
    tame, off = clipped(series, candidate, CLIP)
    runs, odd = series.shape[-1], (off != 0).sum(axis=-1)
    step, error = _averaged(tame, candidate, np.asarray(times, float))
    smaller = min(sum(candidate), runs - sum(candidate))
    caution = _caution(smaller, runs - smaller)
    # Clipped runs carry no information on the scatter.
    return step, error * caution * runs / (runs - odd), np.maximum(runs - 3.0 - odd, 1.0)


def _caution(smaller: int, larger: int) -> float:
    if smaller < FEW:
        return CAUTION_WHERE_FEW
    return CAUTION_WHERE_UNEQUAL if larger >= UNEQUAL * smaller else CAUTION


def clipped(series: Floats, candidate: Sequence[int], limit: float) -> tuple[Floats, Floats]:
    """Pull outlying runs in to `limit` robust standard deviations from the median of their arm.

    Returns: the series, and each run's distance from that median, 0 unless it is outlying.
    """
    arms = np.asarray(candidate)
    own = [np.flatnonzero(arms == arm) for arm in (0, 1)]
    large = [places for places in own if len(places) >= FEWEST_TO_CLIP]
    off = np.zeros_like(series)
    if not large:
        return series, off
    middles = [np.median(series[..., places], axis=-1, keepdims=True) for places in large]
    every = np.concatenate(
        [series[..., places] - middle for places, middle in zip(large, middles, strict=True)],
        axis=-1,
    )
    scale = MAD_TO_SD * np.median(np.abs(every), axis=-1, keepdims=True) * (1 + 1 / every.shape[-1])
    tame = series.copy()
    for places, middle in zip(large, middles, strict=True):
        beyond = np.arange(series.shape[-1])
        after = beyond[(arms != arms[places[0]]) & ((beyond > places[-1]) | (beyond < places[0]))]
        order = np.sort(np.concatenate([places, after]))
        apart = series[..., order] - middle
        odd = (np.abs(apart) > limit * scale) & (scale > 0)
        odd &= ~_of_a_level(np.sign(apart) * odd)
        odd &= np.isin(order, places)
        off[..., order] = np.where(odd, apart, off[..., order])
        few = odd.sum(axis=-1, keepdims=True) <= len(places) * RARE
        left = np.where((np.abs(apart) > ODD * scale) & few, 0.0, np.sign(apart) * limit * scale)
        tame[..., order] = np.where(odd, middle + left, tame[..., order])
    return tame, off


def odd_runs(series: Floats, candidate: Sequence[int]) -> list[tuple[int, float]]:
    """Return place and distance of each outlying run, in a series as for `step_in_time`."""
    _, off = clipped(series, candidate, CLIP)
    far = clipped(series, candidate, ODD)[1] != 0
    return [(int(place), float(off[place])) for place in np.flatnonzero(far & (off != 0))]


def _of_a_level(signs: Floats) -> Flags:
    runs = signs.shape[-1]
    inside = np.zeros(signs.shape, bool)
    for start in range(runs - LEVEL + 1):
        window = slice(start, start + LEVEL)
        same = np.abs(signs[..., window].sum(axis=-1, keepdims=True)) == LEVEL
        inside[..., window] |= same
    return inside


def _averaged(series: Floats, candidate: Sequence[int], clock: Floats) -> tuple[Floats, Floats]:
    runs = series.shape[-1]
    gaps = np.diff(clock) / np.median(np.diff(clock))
    causes = np.stack(
        [np.ones(runs), np.asarray(candidate, float), (clock - clock.mean()) / np.ptp(clock)]
    )
    least = series.var(axis=-1) * runs * LEAST_LEFT
    steps, variances, likelihoods = [], [], []
    for memory in MEMORIES:
        passed = memory**gaps
        fresh = np.sqrt(1 - passed**2)
        white, known = (_whitened(one, passed, fresh) for one in (series, causes))
        along, squares = white @ known.T, (white**2).sum(axis=-1)
        for size, weight in DRIFTS:
            inverse = np.linalg.inv(known @ known.T + np.diag([0, 0, size**-2]))
            fitted = along @ inverse
            left = np.maximum(squares - (along * fitted).sum(axis=-1), least)
            steps.append(fitted[..., 1])
            variances.append(left / (runs - 3) * inverse[1, 1])
            prior = math.log(weight / size) - FORGETTING * memory
            spread = np.linalg.slogdet(inverse)[1] / 2 - np.log(fresh).sum()
            likelihoods.append(prior + spread - (runs - 2) / 2 * np.log(left))
    weights = np.exp(np.array(likelihoods) - np.max(likelihoods, axis=0))
    weights /= weights.sum(axis=0)
    step = (weights * steps).sum(axis=0)
    variance = (weights * (np.array(variances) + (np.array(steps) - step) ** 2)).sum(axis=0)
    return step, np.sqrt(variance)


def _whitened(series: Floats, passed: Floats, fresh: Floats) -> Floats:
    """Whiten AR(1) noise along the last axis: `passed` on to the next value, `fresh` in size."""
    return np.concatenate(
        [series[..., :1], (series[..., 1:] - passed * series[..., :-1]) / fresh], axis=-1
    )
