"""Which part of each class of jobs is to run on which kind of slot, so that the most work is got through: a linear program.

Least busy is best: minimise the load of the busiest kind, Σ over classes of share × slot-seconds there ÷ slots. One over that least load
is by how much more could come before the queues grow without end, whatever the policy.

Source: Harrison and López, Queueing Systems 33, 1999 (the static planning problem).
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, isfinite, log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Shares = dict[str, dict[str, float]]
_STEPS = 8  # of a factor of two: how far demand may change before the shares are sought again
_NONE = 1e-9


def plan(demand_s: Mapping[str, Mapping[str, float]], slots: Mapping[str, int]) -> Shares:
    """The part of each class, by kind of slot, that sums to 1; from slot-seconds by class and kind, infinite where it cannot run.

    Demand is rounded to a twelfth or so, so that the shares of a long stream are found in its beginning and kept.
    """
    if len(slots) == 1:
        return {class_: dict.fromkeys(slots, 1.0) for class_ in demand_s}
    total = sum(min(row.values()) for row in demand_s.values()) or 1.0
    rounded = tuple((class_, tuple(_rounded(row[kind] / total) for kind in slots)) for class_, row in demand_s.items())
    return _solved(rounded, tuple(slots.items()))[0]


def load(demand_s: Mapping[str, Mapping[str, float]], slots: Mapping[str, int]) -> float:
    """The load of the busiest kind under the best plan; in units of demand: 1 where demand is a second's slot-seconds and all are busy."""
    exact = tuple((class_, tuple(row[kind] for kind in slots)) for class_, row in demand_s.items())
    return _solved(exact, tuple(slots.items()))[1]


def _rounded(part: float) -> float:
    return part if part <= 0 or not isfinite(part) else 2.0 ** (round(log2(part) * _STEPS) / _STEPS)


@lru_cache(maxsize=1024)
def _solved(demand: tuple[tuple[str, tuple[float, ...]], ...], slots: tuple[tuple[str, int], ...]) -> tuple[Shares, float]:
    """Unknowns: the share of class c on kind k at c·K + k, and the load last."""
    import numpy as np  # noqa: PLC0415  # a policy of one kind of slot need not wait for it
    from scipy.optimize import linprog  # noqa: PLC0415  # as above

    classes, kinds = len(demand), len(slots)
    cost = np.zeros(classes * kinds + 1)
    cost[-1] = 1.0
    busy = np.zeros((kinds, classes * kinds + 1))
    whole = np.zeros((classes, classes * kinds + 1))
    bounds: list[tuple[float, float]] = []
    for c, (_, row) in enumerate(demand):
        whole[c, c * kinds : (c + 1) * kinds] = 1.0
        for k, seconds in enumerate(row):
            bounds.append((0.0, 1.0 if isfinite(seconds) else 0.0))
            busy[k, c * kinds + k] = seconds / slots[k][1] if isfinite(seconds) else 0.0
    busy[:, -1] = -1.0
    bounds.append((0.0, inf))
    result = linprog(cost, A_ub=busy, b_ub=np.zeros(kinds), A_eq=whole, b_eq=np.ones(classes), bounds=bounds, method="highs-ds")
    shares = {
        class_: {kind: float(result.x[c * kinds + k]) for k, (kind, _) in enumerate(slots) if result.x[c * kinds + k] > _NONE}
        for c, (class_, _) in enumerate(demand)
    }
    return shares, float(result.x[-1])
