"""Each class of jobs where it gains most: slots of different speed shared out so that all together get through the most work.

The shares are `allocation.plan`'s, from predicted times and from what came so far. A job whose planned slots are all taken goes elsewhere
only if it is predicted to be done sooner there than by waiting. Jobs are looked at in the order of submission; one that waits for its slots
may be overtaken.

Source: Narayanan et al., OSDI 2020 (Gavel: allocation by throughput on each kind, as a linear program); Maheswaran et al., J. Parallel
Distrib. Comput. 59, 1999 (minimum completion time).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from analysis.scheduling.allocation import plan
from analysis.scheduling.terms import Start

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from analysis.scheduling.terms import Job, State

DESCRIPTION = "each class on the slots where it gains most"


def choose(waiting: Iterable[Job], state: State) -> Start | None:
    """The first job, in the order of submission, that has slots worth taking."""
    if not any(state.free.values()):
        return None
    shares = plan(state.demand_s, state.slots)
    before: dict[str, int] = {}
    for job in waiting:
        planned = [kind for kind in state.kinds(job) if shares[job.class_].get(kind, 0.0) > 0]
        kind = _by_plan(job, planned, shares[job.class_], state) or _sooner_elsewhere(job, planned, before, state)
        if kind is not None:
            return Start(job.number, kind)
        for one in planned:
            before[one] = before.get(one, 0) + job.replicas
    return None


def _by_plan(job: Job, planned: list[str], shares: Mapping[str, float], state: State) -> str | None:
    """Of the planned kinds that are free and behind their share of this class the one that is furthest behind."""
    sent = state.sent.get(job.class_, {})
    every = sum(sent.values()) + 1
    behind = {kind: shares[kind] - sent.get(kind, 0) / every for kind in planned if state.free[kind] >= job.replicas}
    kind = max(behind, key=behind.__getitem__, default=None)
    return kind if kind is not None and behind[kind] > 0 else None


def _sooner_elsewhere(job: Job, planned: list[str], before: Mapping[str, int], state: State) -> str | None:
    """The fastest free kind, if no planned one besides is predicted to have it done before; None otherwise."""
    free = state.fastest(job)
    if free is None:
        return None
    ends_s = [_end_of_wait_s(job, kind, before.get(kind, 0), state) + job.predicted_s.get(kind, 0.0) for kind in planned if kind != free]
    return free if state.now_s + job.predicted_s.get(free, 0.0) <= min(ends_s, default=inf) else None


def _end_of_wait_s(job: Job, kind: str, before: int, state: State) -> float:
    """When there are predicted to be slots for a job behind so many others; infinite behind more than run."""
    ends_s, at = state.ends_s.get(kind, []), before + job.replicas - state.free[kind] - 1
    if at < 0:
        return state.now_s
    return max(ends_s[at], state.now_s) if at < len(ends_s) else inf
