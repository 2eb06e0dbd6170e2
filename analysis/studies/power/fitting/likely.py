"""Gaussian processes over a few columns: their most likely scales, and what they say elsewhere. Matérn 5/2, mild priors on the scales.

Source: Rasmussen & Williams 2006, ch. 2, 4 and 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from control.power.models.surface import distance

if TYPE_CHECKING:
    from control.power.terms import Floats

AMPLITUDE, NOISE = 0.15, 0.03  # expected sds of logarithms
LENGTH_SD, SD_SD = 0.7, 1.0  # how far the logarithms of scales and of sds may be from what is expected
SCALE_BOUNDS, AMPLITUDE_BOUNDS, NOISE_BOUNDS = (0.1, 20.0), (1e-3, 2.0), (2e-3, 0.5)


def most_likely(columns: Floats, values: Floats, scales: Floats, fixed: int = 0, start: Floats | None = None) -> Floats:
    """Logarithms of the scales, of the amplitude and of the noise, most probable after seeing values, shape (rows,), of mean 0.

    `scales` are those expected; the last `fixed` of them stay as they are, and are not among those returned.
    """
    free = len(scales) - fixed
    prior = np.log([*scales[:free], AMPLITUDE, NOISE])
    prior_sd = np.array([LENGTH_SD] * free + [SD_SD, SD_SD])
    bounds = [tuple(np.log(one)) for one in [SCALE_BOUNDS] * free + [AMPLITUDE_BOUNDS, NOISE_BOUNDS]]
    gaps = [(columns[:, None, one] - columns[None, :, one]) ** 2 for one in range(free)]
    size = len(values)

    def unlikely(hyper: Floats) -> tuple[float, Floats]:
        """Minus the logarithm of the posterior, and its gradient."""
        found = np.exp(hyper[:free])
        amplitude2, noise2 = np.exp(2.0 * hyper[free:])
        far = distance(columns, columns, np.concatenate([found, scales[free:]]))
        tail = np.exp(-far)
        correlation = (1.0 + far + far**2 / 3.0) * tail
        factor = cho_factor(amplitude2 * correlation + noise2 * np.eye(size), lower=True)
        weights = cho_solve(factor, values)
        pull = np.outer(weights, weights) - cho_solve(factor, np.eye(size))
        slope = pull * (amplitude2 * (5.0 / 3.0) * (1.0 + far) * tail)
        gradient = [-0.5 * np.sum(slope * gap) / scale**2 for gap, scale in zip(gaps, found, strict=True)]
        gradient += [-np.sum(pull * correlation) * amplitude2, -np.trace(pull) * noise2]
        off = (hyper - prior) / prior_sd
        value = 0.5 * values @ weights + np.log(np.diag(factor[0])).sum() + 0.5 * off @ off
        return float(value), np.array(gradient) + off / prior_sd

    best: Floats = minimize(unlikely, prior if start is None else start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return best
