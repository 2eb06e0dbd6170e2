"""Designs of which nothing was run twice: Lenth's pseudo standard error (Technometrics 31, 1989), with margins simulated for the design.

Where few effects are real, most contrasts show the noise alone. Their median is hardly moved by the few that do not, so it can serve as
the error: s0 = 1.5 · median |c|; PSE = 1.5 · median of those |c| below 2.5 s0. Lenth's own margins (a t with m/3 degrees of freedom) call
too little alone and too much together; here both are quantiles of 100,000 simulated designs without any effect, as Ye & Hamada
(2000) tabulate them. Simulating the estimates of this very design, lost cells included, keeps them right where it is not orthogonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from control.t_test import ALPHA, POWER

if TYPE_CHECKING:
    import numpy.typing as npt

    from .model import Floats

    Singles = npt.NDArray[np.float32]

DRAWS = 100_000
CHUNK = 10_000
FEWEST = 3
REAL = 1e9  # standard errors


def pse(contrasts: Floats) -> Floats:
    """Pseudo standard error of contrasts that scatter alike, along the last axis."""
    size = np.abs(contrasts)
    s0 = 1.5 * np.median(size, axis=-1, keepdims=True)
    inner = np.where(size < 2.5 * s0, size, np.nan)
    # All of them nought: nothing lies below 0, and the error is 0 as well.
    inner[np.isnan(inner).all(axis=-1)] = 0
    found: Floats = 1.5 * np.nanmedian(inner, axis=-1)
    return found


@dataclass(frozen=True)
class Null:
    """What designs in which nothing has an effect show, in pseudo standard errors.

    `every` and `largest` are the ratios |c| / PSE of all contrasts, and of the largest of each design, sorted. Beyond `alone` one in 20 of
    the former lies, beyond `together` one in 20 of the latter. An effect of `needed` goes beyond `together` 4 times in 5.
    """

    every: Singles
    largest: Singles
    alone: float
    together: float
    needed: float

    def chances(self, found: float) -> tuple[float, float]:
        """How often so large a ratio comes of nothing, for one contrast and for the largest of all: (1 + hits) / (1 + draws), never 0."""
        alone, together = (
            float((1 + len(ratios) - np.searchsorted(ratios, np.float32(found))) / (1 + len(ratios)))
            for ratios in (self.every, self.largest)
        )
        return alone, together


def null(correlation: Floats) -> Null:
    """Simulate a design whose estimates hang together so (the identity where it is orthogonal).

    Seeded: the same design has the same margins.
    """
    contrasts = len(correlation)
    if np.allclose(correlation, np.eye(contrasts), atol=1e-9):
        return _independent(contrasts)
    return _draw(np.asarray(np.linalg.cholesky(correlation + 1e-12 * np.eye(contrasts)), np.float64))


@lru_cache(maxsize=8)
def _independent(contrasts: int) -> Null:
    return _draw(np.eye(contrasts, dtype=np.float64))


def _draw(root: Floats) -> Null:
    rng = np.random.default_rng(1989)
    parts, errors = [], []
    for _ in range(DRAWS // CHUNK):
        drawn = rng.standard_normal((CHUNK, len(root))) @ root.T
        parts.append((np.abs(drawn) / pse(drawn)[:, None]).astype(np.float32))
        # What one real effect leaves to judge it by: itself it is too large to count.
        errors.append(np.stack([pse(np.column_stack([np.full(CHUNK, REAL), drawn[:, 1:]])), drawn[:, 0]]))
    ratios = np.concatenate(parts)
    every, largest = np.sort(ratios, axis=None), np.sort(ratios.max(axis=1))
    alone, together = (float(np.quantile(one, 1 - ALPHA)) for one in (every, largest))
    error, chance = np.concatenate(errors, axis=1)
    return Null(every, largest, alone, together, float(np.quantile(together * error - chance, POWER)))
