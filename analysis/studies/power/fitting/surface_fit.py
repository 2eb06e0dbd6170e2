"""Fitting a surface: the law by least squares of logarithms, the process by its likelihood."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from control.power.models.surface import Surface, law_of

from .likely import most_likely

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from control.power.models.features import Seen
    from control.power.terms import Floats

# What the law's numbers are before any data, and how far from it they may be (sd): weak, but with a dozen points they decide. UNITS are
# in units of what is fitted.
BEFORE = np.array([0.0, 0.5, -2.5, np.log(2.0), np.log(2.0), 0.0, 0.0, np.log(2.0), np.log(2.0)])
LOOSE = np.array([3.0, 0.5, 1.5, 0.7, 1.5, 0.3, 3.0, 1.5, 0.7])
UNITS = [0, 2, 6]
LAW_NOISE = 0.1
MOST_STEPS = 60
# Length scales expected in ln share, ln tenants and ln batch. The last two, fixed: tenants that differ by a factor of e are as strange as
# alike ones that far from anything measured.
SCALES, MIXED = np.array([1.0, 1.0, 1.5, 1.0, 1.0]), 2


def fit(seen: Seen, values: Floats, rows: NDArray[np.intp], before: Surface | None = None) -> Surface:
    """Fit a surface to positive values, shape (partitions,).

    `rows` say which of the model's partitions these are. `before` is a fit to nearly the same values: the search begins there.
    """
    logs = np.log(values)
    law = _law(seen, logs, before)
    left = logs - law_of(law, seen)
    start = None if before is None else np.log([*before.scales[:-MIXED], before.amplitude, before.noise])
    *scales, amplitude, noise = (float(one) for one in np.exp(most_likely(seen.columns, left, SCALES, MIXED, start)))
    widest = float(np.abs(left).max()) + 2.0 * noise
    return Surface(
        law=tuple(map(float, law)),
        scales=(*scales, *map(float, SCALES[-MIXED:])),
        amplitude=amplitude,
        noise=noise,
        inflation=1.0,
        limits=(-widest, widest),
        rows=tuple(map(int, rows)),
        at=seen.columns,
        left=left,
    )


def _law(seen: Seen, logs: Floats, before: Surface | None) -> Floats:
    """The law's numbers. They are few and their priors mild, so that few rows do not run away with them."""
    expected = BEFORE.copy()
    expected[UNITS] += logs.max()

    def off(law: Floats) -> Floats:
        return np.concatenate([(law_of(law, seen) - logs) / LAW_NOISE, (law - expected) / LOOSE])

    start = expected if before is None else np.array(before.law)
    found: Floats = least_squares(off, start, loss="soft_l1", max_nfev=MOST_STEPS, ftol=1e-6).x
    return found
