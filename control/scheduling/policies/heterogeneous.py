"""Each class of jobs where it gains most: slots of different speed shared out so that all together get through the most work.

Which kinds are for a class is `allocation.plan`'s, from predicted times and from what came so far. A job goes to the fastest free one of
these, elsewhere only if none of these is free; and nowhere if it is predicted to be done sooner by waiting for another of these. Jobs are
looked at in the order of submission; one that waits for its slots may be overtaken.

Source: Narayanan et al., OSDI 2020 (Gavel: allocation by throughput on each kind, as a linear program); Maheswaran et al., J. Parallel
Distrib. Comput. 59, 1999 (minimum completion time).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from control.scheduling.allocation import plan
from control.scheduling.terms import Start

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from control.scheduling.terms import Job, State

DESCRIPTION = "each class on the slots where it gains most"


def choose(waiting: Iterable[Job], state: State) -> Start | None:
    """The first job, in the order of submission, that has slots worth taking."""
    if not any(state.free.values()):
        return None
    shares = plan(state.demand_s, state.slots)
    before: dict[str, int] = {}
    for job in waiting:
        planned = [kind for kind in state.kinds(job) if shares[job.class_].get(kind, 0.0) > 0]
        free = [kind for kind in planned if state.free[kind] >= job.replicas]
        kind = min(free, key=lambda kind: job.predicted_s.get(kind, 0.0)) if free else state.fastest(job)
        if kind is not None and _no_later_than(job, kind, planned, before, state):
            return Start(job.number, kind)
        for one in planned:
            before[one] = before.get(one, 0) + job.replicas
    return None


def _no_later_than(job: Job, kind: str, planned: list[str], before: Mapping[str, int], state: State) -> bool:
    """Whether none of the other planned kinds is predicted to have it done before, its wait there included."""
    ends_s = [_end_of_wait_s(job, one, before.get(one, 0), state) + job.predicted_s.get(one, 0.0) for one in planned if one != kind]
    return state.now_s + job.predicted_s.get(kind, 0.0) <= min(ends_s, default=inf)


def _end_of_wait_s(job: Job, kind: str, before: int, state: State) -> float:
    """When there are predicted to be slots for a job behind so many others; infinite behind more than run."""
    ends_s, at = state.ends_s.get(kind, []), before + job.replicas - state.free[kind] - 1
    if at < 0:
        return state.now_s
    return max(ends_s[at], state.now_s) if at < len(ends_s) else inf
