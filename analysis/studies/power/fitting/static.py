"""What the board takes with no work, over the clock: never falling, from traces of the pseudo-model `static`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.isotonic import isotonic_regression

from control.power.models.response import Static

if TYPE_CHECKING:
    from control.power.terms import Floats


def fit(clocks: Floats, power_w: Floats) -> Static:
    """Mean power of each clock, made never to fall by pooling neighbours (isotonic regression)."""
    distinct, which = np.unique(clocks, return_inverse=True)
    counts = np.bincount(which).astype(float)
    means = np.bincount(which, power_w) / counts
    level = isotonic_regression(means, sample_weight=counts)
    off = power_w - level[which]
    return Static(tuple(map(float, distinct)), tuple(map(float, level)), float(np.sqrt(np.mean(off**2))))
