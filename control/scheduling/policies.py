"""Which job next: the policies by name. Each is a pure function: it knows what it is given, and no job's true duration.

A policy has a `description` of one line, and one of

- `rank(job) -> tuple`: where the order of two jobs does not change while they wait. The smallest is next; of equals the one that came
  first. It takes the slots that run it fastest of those that are free; where it does not fit, it waits and nobody overtakes it.
- `choose(waiting, state) -> Start | None`: where it does. `waiting` is in the order of submission; None starts nothing for now.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from control.errors import UnknownName

from .allocation import plan
from .terms import Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .terms import Job, State


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy; exactly one of `rank` and `choose` is there."""

    description: str
    rank: Callable[[Job], tuple[Any, ...]] | None = None
    choose: Callable[[Iterable[Job], State], Start | None] | None = None


def names() -> tuple[str, ...]:
    """Every policy there is, in alphabetical order."""
    return tuple(sorted(POLICIES))


def load(name: str) -> Policy:
    """A policy by its name. Raises: UnknownName with the names that exist."""
    if name not in POLICIES:
        raise UnknownName(f"No policy {name!r}. There are: {', '.join(names())}.")
    return POLICIES[name]


def fair_share(waiting: Iterable[Job], state: State) -> Start | None:
    """Slots shared evenly by those who want them: next is a job of the tenant holding the fewest, then of that with the least time so far.

    Who was away comes back as an equal, not with credit for it (`scheduler.Shares`). Within a tenant first come, first served; where the
    first job of the tenant whose turn it is does not fit, nobody overtakes it.
    """
    firsts: dict[str, Job] = {}
    for job in waiting:
        firsts.setdefault(job.tenant, job)
    if not firsts:
        return None
    turn = min(firsts.values(), key=lambda job: (state.running.get(job.tenant, 0), state.served_s.get(job.tenant, 0.0), job.submit_s))
    kind = state.fastest(turn)
    return None if kind is None else Start(turn.number, kind)


def heterogeneous(waiting: Iterable[Job], state: State) -> Start | None:
    """Each class of jobs where it gains most: slots of different speed shared out so that all together get through the most work.

    Which kinds are for a class is `allocation.plan`'s, from predicted times and from what came so far. A job goes to the fastest free one
    of these, elsewhere only if none of these is free; and nowhere if it is predicted to be done sooner by waiting for another of these.
    Jobs are looked at in the order of submission; one that waits for its slots may be overtaken.

    Source: Narayanan et al., OSDI 2020 (Gavel: allocation by throughput on each kind, as a linear program); Maheswaran et al., J. Parallel
    Distrib. Comput. 59, 1999 (minimum completion time).
    """
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
        for other in planned:
            before[other] = before.get(other, 0) + job.replicas
    return None


def _no_later_than(job: Job, kind: str, planned: list[str], before: Mapping[str, int], state: State) -> bool:
    """Whether none of the other planned kinds is predicted to have it done before, its wait there included."""
    ends_s = [
        _end_of_wait_s(job, other, before.get(other, 0), state) + job.predicted_s.get(other, 0.0) for other in planned if other != kind
    ]
    return state.now_s + job.predicted_s.get(kind, 0.0) <= min(ends_s, default=inf)


def _end_of_wait_s(job: Job, kind: str, before: int, state: State) -> float:
    """When there are predicted to be slots for a job behind so many others; infinite behind more than run."""
    ends_s, at = state.ends_s.get(kind, []), before + job.replicas - state.free[kind] - 1
    if at < 0:
        return state.now_s
    return max(ends_s[at], state.now_s) if at < len(ends_s) else inf


def least_slack(job: Job) -> tuple[float, float]:
    """By the latest moment to start, as predicted, then by submission. Those that nothing was promised come last.

    The slack is that moment less now, so that the order of two jobs does not change while they wait. A job without a prediction is taken
    to be short.
    """
    if job.due_s is None:
        return inf, job.submit_s
    takes_s = job.shortest_s
    return job.due_s - (takes_s if isfinite(takes_s) else 0.0), job.submit_s


POLICIES = {
    "fair_share": Policy("the tenant that holds the fewest slots first", choose=fair_share),
    "fifo": Policy("first come, first served", lambda job: (job.submit_s,)),
    "heterogeneous": Policy("each class on the slots where it gains most", choose=heterogeneous),
    "least_slack": Policy("the least slack before it is due first", least_slack),
    # What runs is not interrupted. Waits of M/M/1 and M/G/1 under it are Cobham's (Operations Research 2, 1954).
    "priority": Policy("the lowest priority number first", lambda job: (job.priority, job.submit_s)),
    # A job of which nothing is predicted comes last. On one slot no order that interrupts nothing has a smaller mean wait, if the
    # predictions hold (Conway, Maxwell and Miller, 1967); long jobs pay for it, with the longest waits there are.
    "sjf": Policy("the shortest predicted time first", lambda job: (job.shortest_s, job.submit_s)),
}
