"""Two arms of runs as one series in time: the step between them, beside steady drift and noise that remembers its past.

Where all runs of one arm came before all of the other, whatever else changed with time looks like the tweak, and runs that resemble their
neighbours are fewer than they seem: Welch's t calls 23 % of equal arms of 8 real runs different (docs/between_runs.md). So three things may
explain the series: a straight line in time, AR(1) noise, whose correlation falls with the time between, and the step that is asked for.
Over a long gap between the arms the line may go anywhere, and the interval says so. For each correlation the line and the step are fitted
by generalised least squares; the fits are weighted by their restricted likelihoods (no correlation preferred), and the step's variance is
that inside the fits and between them.

Sources: Harville 1974 (restricted likelihood); Kass & Steffey 1989 (variance inside and between, the correlation being unknown).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .step_evidence import LEAST_LEFT, PHI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .simulate import Floats


def step_in_time(series: Floats, candidate: Sequence[int], times: Sequence[float] | Floats) -> tuple[Floats, Floats, float]:
    """Estimate by how much the candidate's values lie above the baseline's.

    Takes: shape (…, runs), at least four, in order of their `times`; `candidate` is 1 for each run of the candidate's, else 0.
    Returns: the step and its standard error, each of shape (…), and their degrees of freedom.
    """
    runs = series.shape[-1]
    clock = np.asarray(times, float)
    gaps = np.diff(clock) / np.median(np.diff(clock))
    causes = np.stack([np.ones(runs), np.asarray(candidate, float), (clock - clock.mean()) / np.ptp(clock)])
    df = runs - len(causes)
    steps, variances, likelihoods = [], [], []
    least = series.var(axis=-1) * runs * LEAST_LEFT  # a perfect fit is a fit, but its likelihood is no number
    for phi in PHI:
        passed = phi**gaps
        fresh = np.sqrt(1 - passed**2)
        white, known = (_whitened(one, passed, fresh) for one in (series, causes))
        inverse = np.linalg.inv(known @ known.T)
        fitted = white @ known.T @ inverse
        left = np.maximum(((white - fitted @ known) ** 2).sum(axis=-1), least)
        steps.append(fitted[..., 1])
        variances.append(left / df * inverse[1, 1])
        likelihoods.append((np.linalg.slogdet(inverse)[1] - df * np.log(left)) / 2 - np.log(fresh).sum())
    weights = np.exp(np.array(likelihoods) - np.max(likelihoods, axis=0))
    weights /= weights.sum(axis=0)
    step = (weights * steps).sum(axis=0)
    variance = (weights * (np.array(variances) + (np.array(steps) - step) ** 2)).sum(axis=0)
    return step, np.sqrt(variance), float(df)


def _whitened(series: Floats, passed: Floats, fresh: Floats) -> Floats:
    """Filter AR(1) noise white along the last axis: what is new in each value beyond the share `passed` on, by the size of the `fresh`."""
    return np.concatenate([series[..., :1], (series[..., 1:] - passed * series[..., :-1]) / fresh], axis=-1)
