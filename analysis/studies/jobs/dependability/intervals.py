"""How often to write a checkpoint where failures come at random (exponential times between them): rules of thumb, and the exact answer.

`cost_s` is what one checkpoint takes, `mtbf_s` the mean time between failures of what is checkpointed: one job while it runs, not the
cluster. All times in one unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

NEAR = 0.01  # how much more time than the least is no matter
_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class Advice:
    """Intervals between checkpoints for one cost and MTBF, in seconds of work, and what each makes of the time.

    `low_s` to `high_s` take at most 1 % more time than the best. Overheads are the expected time over the work, less 1; infinite where
    hardly anything is ever done. `too_dear`: a checkpoint takes so long that the rules do not hold.
    """

    cost_s: float
    mtbf_s: float
    restart_s: float
    young_s: float
    daly_s: float
    best_s: float
    low_s: float
    high_s: float
    young_overhead: float
    daly_overhead: float
    best_overhead: float
    too_dear: bool


def young_s(cost_s: float, mtbf_s: float) -> float:
    """First-order interval √(2·C·M). Source: Young, CACM 17(9), 1974."""
    return math.sqrt(2 * cost_s * mtbf_s)


def daly_s(cost_s: float, mtbf_s: float) -> float:
    """Higher-order interval; the MTBF itself where a checkpoint takes twice that and more. Source: Daly, FGCS 22(3), 2006, eq. 37."""
    if cost_s >= 2 * mtbf_s:
        return mtbf_s
    part = cost_s / (2 * mtbf_s)
    return young_s(cost_s, mtbf_s) * (1 + math.sqrt(part) / 3 + part / 9) - cost_s


def best_s(cost_s: float, mtbf_s: float) -> float:
    """The interval of least expected time, exactly: with x = τ/M and c = C/M the root of log(1 - x) + x + c = 0."""
    share = cost_s / mtbf_s
    return mtbf_s * _root(lambda x: math.log1p(-x) + x + share, 0.0, math.nextafter(1.0, 0.0))


def time_per_work(interval_s: float, cost_s: float, mtbf_s: float, restart_s: float = 0.0) -> float:
    """Expected time that one second of work takes, 1 without failures and checkpoints; infinite where a float does not hold it.

    A failure costs all since the last checkpoint and a restart, and may come during either. Source: Daly, 2006, eq. 13, exact under
    exponential times between failures.
    """
    try:
        return mtbf_s * math.exp(restart_s / mtbf_s) * math.expm1((interval_s + cost_s) / mtbf_s) / interval_s
    except OverflowError:
        return math.inf


def advise(cost_s: float, mtbf_s: float, restart_s: float = 0.0) -> Advice:
    """Work out all intervals. Raises: Refused, for times that are none."""
    for name, value, least in (("the cost of a checkpoint", cost_s, 0.0), ("the mean time between failures", mtbf_s, 0.0)):
        if not least < value < math.inf:
            raise Refused(f"{name} is {value:g} s; a time above 0 belongs there.")
    if not 0 <= restart_s < math.inf:
        raise Refused(f"the time to restart is {restart_s:g} s; 0 or more belongs there.")
    if not 1e-12 < cost_s / mtbf_s < 100:
        raise Refused(f"a checkpoint of {cost_s:g} s every {mtbf_s:g} s between failures: one is out of all proportion to the other.")
    young, daly, best = young_s(cost_s, mtbf_s), daly_s(cost_s, mtbf_s), best_s(cost_s, mtbf_s)
    most = time_per_work(best, cost_s, mtbf_s) * (1 + NEAR)

    def dearer(interval_s: float) -> float:
        return time_per_work(interval_s, cost_s, mtbf_s) - most

    above = 2 * best
    while dearer(above) < 0:
        above *= 2
    low_s, high_s = _root(dearer, best * 1e-9, best), _root(lambda one: -dearer(one), best, above)
    over = [time_per_work(one, cost_s, mtbf_s, restart_s) - 1 for one in (young, daly, best)]
    return Advice(cost_s, mtbf_s, restart_s, young, daly, best, low_s, high_s, over[0], over[1], over[2], cost_s >= mtbf_s / 2)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
