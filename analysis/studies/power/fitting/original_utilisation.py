"""The original's formulas for utilisation, fitted by least squares from several beginnings.

The original descends by Adam for a fixed number of epochs; its memory parameters hardly leave where they began. The formulas, rows and
squares are the same here, the minimum is reached, and nothing is drawn by lot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares, minimize_scalar

from control.power.models.priors import (
    MemSingle,
    MemSystem,
    SmSingle,
    SmSystem,
    mem_prior_percent,
    mem_util_percent,
    padded,
    sm_prior_percent,
    sm_util_percent,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from control.power.terms import Floats, Partition

SM_STARTS = ((0.01, 0.4, 3.0), (1.0, 0.6, 1.0), (3.0, 0.8, 1.0))  # lam, gamma, beta
MEM_STARTS = ((80.0, 0.5, 0.6, -0.6), (40.0, 0.5, 0.3, 0.0), (60.0, 0.2, 0.8, -0.8))  # φ, a, λ, β
SYSTEM_STARTS = ((0.0, 1.0, 5.0, 0.5, 0.0, 16.0), (0.02, 0.4, 5.0, 0.5, 0.001, 16.0), (0.05, 0.1, 1.0, 0.1, 0.001, 32.0))
LIGHT_BATCHES = (4, 8)
KAPPA_BOUNDS = (0.1, 20.0)


def sm_single(shares: Floats, batches: Floats, percent: Floats) -> SmSingle:
    """Lambda, gamma, beta from rows of one process, shape (rows,)."""
    lam, gamma, beta = _best(lambda found: sm_util_percent(_sm(found), shares, batches) - percent, SM_STARTS)
    return _sm(np.array([lam, gamma, beta]))


def mem_single(shares: Floats, batches: Floats, percent: Floats) -> MemSingle:
    """φ, a, λ, β from rows of one process, shape (rows,). What fits best may not be unique; the curve is."""
    return _mem(_best(lambda found: mem_util_percent(_mem(found), shares, batches) - percent, MEM_STARTS))


def sm_system(partitions: Sequence[Partition], percent: Floats, single: SmSingle) -> SmSystem:
    """The line L and the curvature κ, from partitions filled with as many processes as fit, all alike.

    L goes through one point a batch: that of the share with the lowest utilisation, over what one process has there. κ is found
    within its bounds from batches 4 and 8.
    """
    full = [row for row, one in enumerate(partitions) if _is_full(one)]
    lowest: dict[int, tuple[float, float]] = {}
    for row in full:
        one = partitions[row]
        alone = float(sm_util_percent(single, np.array(one.shares[:1]), np.array(one.batches[:1], dtype=np.float64))[0])
        lowest[one.batches[0]] = min(lowest.get(one.batches[0], (np.inf, np.inf)), (float(percent[row]), alone))
    y, x = np.array(list(lowest.values())).T
    slope, offset = np.polyfit(x, y, 1) if np.ptp(x) > 1e-6 else (0.0, float(np.mean(y)))
    light = [row for row in full if partitions[row].batches[0] in LIGHT_BATCHES] or full
    among, there = padded([partitions[row] for row in light]), percent[light]

    def off(kappa: float) -> float:
        return float(np.mean((sm_prior_percent(single, SmSystem(slope, offset, kappa), among) - there) ** 2))

    return SmSystem(float(slope), float(offset), float(minimize_scalar(off, bounds=KAPPA_BOUNDS, method="bounded").x))


def mem_system(partitions: Sequence[Partition], percent: Floats, single: MemSingle) -> MemSystem:
    """What further processes add, from all rows of several processes."""
    among = padded(partitions)
    return _system(_best(lambda found: mem_prior_percent(single, _system(found), among) - percent, SYSTEM_STARTS))


def _best(off: Callable[[Floats], Floats], starts: Sequence[Sequence[float]]) -> Floats:
    tried = [least_squares(off, start, x_scale="jac") for start in starts]
    best: Floats = min(tried, key=lambda one: one.cost).x
    return best


def _is_full(one: Partition) -> bool:
    alike = len(set(one.shares)) == len(set(one.batches)) == 1
    return alike and len(one.shares) == int(100 // one.shares[0]) and len(one.shares) > 1


def _sm(found: Floats) -> SmSingle:
    return SmSingle(abs(float(found[0])), abs(float(found[1])), float(found[2]))


def _mem(found: Floats) -> MemSingle:
    return MemSingle(abs(float(found[0])), abs(float(found[1])), abs(float(found[2])), float(found[3]))


def _system(found: Floats) -> MemSystem:
    return MemSystem(*(abs(float(one)) for one in found))
