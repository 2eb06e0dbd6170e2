"""One quantity over all partitions: a saturating law of few parameters, and what the law leaves over as a Gaussian process.

The law: a tenant alone gives what its share allows, share^a · b/(b+h), or what starting a batch allows, in proportion to b, whichever is
less (smoothly); tenants add up to D = (their sum)^c, until the GPU is full at F = b̄/(b̄+g) of the mean batch; both together give
(D^-q + F^-q)^(-1/q), always below either. So it is bounded for any mix and any batch.
The process is over logarithms of share, number of tenants and batch; it knows how far a partition is from all that were measured, and mixes
are further than anything alike. Far away it says nothing and its uncertainty is the law's own.
Source: Rasmussen & Williams 2006, ch. 2 and 4 (Matérn 5/2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

if TYPE_CHECKING:
    from control.power.terms import Floats

    from .features import Seen


@dataclass(frozen=True)
class Surface:
    """A fitted quantity. `law`: see `law_of`. `scales` are one a column of `Seen.columns`; `amplitude` and `noise` are sds of logs.

    `at` (points, columns) and `left` (points,) are where it was measured and what the law left over there, as logs; `rows` say which of the
    model's partitions these points are. `inflation` makes the uncertainty that of rows held out. `limits` bound what the process may add.
    """

    law: tuple[float, ...]
    scales: tuple[float, ...]
    amplitude: float
    noise: float
    inflation: float
    limits: tuple[float, float]
    rows: tuple[int, ...]
    at: Floats
    left: Floats

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        covariance = self.amplitude**2 * matern(self.at, self.at, np.array(self.scales))
        covariance[np.diag_indices_from(covariance)] += self.noise**2
        factor: tuple[Floats, bool] = cho_factor(covariance, lower=True)
        return factor

    @cached_property
    def _weights(self) -> Floats:
        weights: Floats = cho_solve(self._factor, self.left)
        return weights

    def predict(self, seen: Seen) -> tuple[Floats, Floats]:
        """Value, and the sd of its logarithm. Shapes (partitions,)."""
        cross = self.amplitude**2 * matern(seen.columns, self.at, np.array(self.scales))
        added = np.clip(cross @ self._weights, *self.limits)
        explained = solve_triangular(self._factor[0], cross.T, lower=True)
        variance = self.amplitude**2 - np.einsum("ij,ij->j", explained, explained)
        sd = self.inflation * np.sqrt(np.clip(variance, 0.0, None) + self.noise**2)
        return np.exp(law_of(np.array(self.law), seen) + added), sd


def law_of(law: Floats, seen: Seen) -> Floats:
    """Logarithm of the law. Shape (partitions,).

    `law`: ln of the unit of D, a itself, ln of what one image of a batch that starts allows, of the sharpness between the two, of h, c, the
    unit of F, g and q.
    """
    unit, share_power, start, corner, half, shrink, full_unit, full_half, sharpness = law
    share = share_power * np.log(seen.shares / 100.0) + np.log(seen.batches / (seen.batches + np.exp(half)))
    alone = least(share, start - unit + np.log(seen.batches), np.exp(corner))
    demand = unit + np.exp(shrink) * np.log(seen.total(np.exp(alone)))
    batch = np.exp(seen.columns[:, 2])
    return least(demand, full_unit + np.log(batch / (batch + np.exp(full_half))), np.exp(sharpness))


def least(a: Floats, b: Floats, sharpness: float) -> Floats:
    """Logarithm of (A^-s + B^-s)^(-1/s), of the logarithms a and b: below the smaller of them, and close to it where they differ."""
    joined: Floats = -np.logaddexp(-sharpness * a, -sharpness * b) / sharpness
    return joined


def matern(a: Floats, b: Floats, scales: Floats) -> Floats:
    """Matérn 5/2 correlation of rows of a with rows of b. Shape (rows of a, rows of b)."""
    far = distance(a, b, scales)
    correlation: Floats = (1.0 + far + far**2 / 3.0) * np.exp(-far)
    return correlation


def distance(a: Floats, b: Floats, scales: Floats) -> Floats:
    """√5 times the distance, each column in its own scale. Shape as above."""
    left, right = a / scales, b / scales
    squared = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2.0 * left @ right.T
    far: Floats = np.sqrt(5.0 * np.clip(squared, 0.0, None))
    return far
