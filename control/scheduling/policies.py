"""Scheduling policies by name: pure functions that never see a job's true duration.

A policy has a `description` of one line, and one of

- `rank(job) -> tuple`: where the order of two jobs does not change while they wait. The smallest is
  next; of equals the one that came first. It takes the slots that run it fastest of those that are
  free; where it does not fit, it waits and nobody overtakes it.
- `choose(waiting, state) -> Start | None`: where it does. `waiting` is in the order of submission;
  None starts nothing for now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isfinite, log2
from typing import TYPE_CHECKING, Any

from control.errors import UnknownName

if TYPE_CHECKING:
    Shares = dict[str, dict[str, float]]  # the part of each class of jobs, by kind of slot

STEPS = 8  # of a factor of two: how far demand may change before the shares are sought again
NOTHING = 1e-9  # a smaller share is none


@dataclass(frozen=True, slots=True)
class Job:
    """A waiting job, without its true duration.

    `predicted_s` by kind of slot; empty where nothing is known, and it may then run on any. A kind
    that is missing beside others cannot run it. `priority`: the lower number goes first. `replicas`
    are started together or not at all, on slots of one kind. `due_s` is on the clock of `submit_s`,
    None where nothing is promised. `tenant` is who shares the slots fairly with others.
    """

    number: int
    submit_s: float
    predicted_s: Mapping[str, float] = field(default_factory=dict)
    class_: str = ""
    priority: int = 0
    replicas: int = 1
    due_s: float | None = None
    tenant: str = ""

    @property
    def shortest_s(self) -> float:
        """Return the shortest predicted time over kinds of slots; infinite without a prediction."""
        return min(self.predicted_s.values(), default=inf)


@dataclass(frozen=True, slots=True)
class Start:
    number: int
    kind: str


@dataclass(slots=True)
class State:
    """The state of the slots, read-only for policies, by kind of slot unless stated otherwise.

    `running` is the number of slots that a tenant holds, `served_s` the slot-seconds that it has
    had (`scheduler.Shares`), both by tenant. `ends_s` are the predicted ends of what runs,
    ascending, once a slot. `demand_s`, by class of jobs and kind of slot, sums the predicted
    slot-seconds of all jobs that came, were each run there.
    """

    slots: Mapping[str, int]
    free: dict[str, int]
    now_s: float = 0.0
    running: dict[str, int] = field(default_factory=dict)
    served_s: dict[str, float] = field(default_factory=dict)
    ends_s: dict[str, list[float]] = field(default_factory=dict)
    demand_s: dict[str, dict[str, float]] = field(default_factory=dict)

    def kinds(self, job: Job) -> Sequence[str]:
        """Return the kinds of slots that could run a job if all slots were free."""
        return [
            kind
            for kind, many in self.slots.items()
            if many >= job.replicas and (not job.predicted_s or kind in job.predicted_s)
        ]

    def fastest(self, job: Job) -> str | None:
        """Return the kind with free slots that runs a job fastest, or None."""
        free = [kind for kind in self.kinds(job) if self.free[kind] >= job.replicas]
        return min(free, key=lambda kind: job.predicted_s.get(kind, 0.0), default=None)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, which has exactly one of `rank` and `choose`."""

    description: str
    rank: Callable[[Job], tuple[Any, ...]] | None = None
    choose: Callable[[Iterable[Job], State], Start | None] | None = None


def names() -> tuple[str, ...]:
    return tuple(sorted(POLICIES))


def load(name: str) -> Policy:
    """Return a policy by name. Raises: UnknownName, with the available names."""
    if name not in POLICIES:
        raise UnknownName(f"No policy {name!r}. Available: {', '.join(names())}.")
    return POLICIES[name]


def fair_share(waiting: Iterable[Job], state: State) -> Start | None:
    """Share slots evenly: prefer tenants with the fewest slots, then with the least time served.

    A tenant that was away comes back as an equal, not with credit (`scheduler.Shares`). Within a
    tenant first come, first served; if the first job of the next tenant does not fit, no other job
    overtakes it.
    """
    firsts: dict[str, Job] = {}
    for job in waiting:
        firsts.setdefault(job.tenant, job)
    if not firsts:
        return None
    turn = min(
        firsts.values(),
        key=lambda job: (
            state.running.get(job.tenant, 0),
            state.served_s.get(job.tenant, 0.0),
            job.submit_s,
        ),
    )
    kind = state.fastest(turn)
    return None if kind is None else Start(turn.number, kind)


def heterogeneous(waiting: Iterable[Job], state: State) -> Start | None:
    """Start each class of jobs where it gains most, to maximise the work of all slots.

    Which kinds are for a class is `shares_of`'s, from predicted times and from what came so far. A
    job goes to the fastest free one of these, elsewhere only if none of these is free; and nowhere
    if it is predicted to be done sooner by waiting for another of these. Jobs are looked at in the
    order of submission; one that waits for its slots may be overtaken.

    Source: Narayanan et al., OSDI 2020 (Gavel: allocation by throughput on each kind, as a linear
        program); Maheswaran et al., J. Parallel Distrib. Comput. 59, 1999 (minimum completion
        time).
    """
    if not any(state.free.values()):
        return None
    shares = shares_of(state.demand_s, state.slots)
    before: dict[str, int] = {}
    for job in waiting:
        planned = [kind for kind in state.kinds(job) if shares[job.class_].get(kind, 0.0) > 0]
        free = [kind for kind in planned if state.free[kind] >= job.replicas]
        kind = (
            min(free, key=lambda kind: job.predicted_s.get(kind, 0.0))
            if free
            else state.fastest(job)
        )
        if kind is not None and _no_later_than(job, kind, planned, before, state):
            return Start(job.number, kind)
        for other in planned:
            before[other] = before.get(other, 0) + job.replicas
    return None


def _no_later_than(
    job: Job, kind: str, planned: list[str], before: Mapping[str, int], state: State
) -> bool:
    ends_s = [
        _end_of_wait_s(job, other, before.get(other, 0), state) + job.predicted_s.get(other, 0.0)
        for other in planned
        if other != kind
    ]
    return state.now_s + job.predicted_s.get(kind, 0.0) <= min(ends_s, default=inf)


def _end_of_wait_s(job: Job, kind: str, before: int, state: State) -> float:
    ends_s, at = state.ends_s.get(kind, []), before + job.replicas - state.free[kind] - 1
    if at < 0:
        return state.now_s
    return max(ends_s[at], state.now_s) if at < len(ends_s) else inf


def least_slack(job: Job) -> tuple[float, float]:
    """Order jobs by their predicted latest start, then by submission.

    Those that nothing was promised come last.

    The slack is that moment less now, so that the order of two jobs does not change while they
    wait. A job without a prediction is taken to be short.
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
    # What runs is not interrupted. Waits of M/M/1 and M/G/1 under it are Cobham's (Operations
    # Research 2, 1954).
    "priority": Policy(
        "the lowest priority number first", lambda job: (job.priority, job.submit_s)
    ),
    # A job of which nothing is predicted comes last. On one slot no order that interrupts nothing
    # has a smaller mean wait, if the predictions hold (Conway, Maxwell and Miller, 1967); long jobs
    # pay for it, with the longest waits there are.
    "sjf": Policy("the shortest predicted time first", lambda job: (job.shortest_s, job.submit_s)),
}


def shares_of(demand_s: Mapping[str, Mapping[str, float]], slots: Mapping[str, int]) -> Shares:
    """Return each class's share of each kind of slot that maximises the work done.

    `demand_s` are slot-seconds by class and kind, infinite if impossible. The load of the busiest
    kind is minimal: its inverse is the factor by which more could come before the queues grow
    without end, under any policy. Demand is rounded to a twelfth or so, so that the shares of a
    long stream are found in its beginning and kept.
    Source: Harrison and López, Queueing Systems 33, 1999 (the static planning problem).
    """
    if len(slots) == 1:
        return {class_: dict.fromkeys(slots, 1.0) for class_ in demand_s}
    total = sum(min(row.values()) for row in demand_s.values()) or 1.0
    rounded = tuple(
        (class_, tuple(_rounded(row[kind] / total) for kind in slots))
        for class_, row in demand_s.items()
    )
    return _solved(rounded, tuple(slots.items()))[0]


def least_load(demand_s: Mapping[str, Mapping[str, float]], slots: Mapping[str, int]) -> float:
    """Return the busiest kind's load under the best shares (1: full, for demand per second)."""
    exact = tuple((class_, tuple(row[kind] for kind in slots)) for class_, row in demand_s.items())
    return _solved(exact, tuple(slots.items()))[1]


def _rounded(part: float) -> float:
    return part if part <= 0 or not isfinite(part) else 2.0 ** (round(log2(part) * STEPS) / STEPS)


@lru_cache(maxsize=1024)
def _solved(
    demand: tuple[tuple[str, tuple[float, ...]], ...], slots: tuple[tuple[str, int], ...]
) -> tuple[Shares, float]:
    import numpy as np
    from scipy.optimize import linprog

    classes, kinds = len(demand), len(slots)
    seconds = np.array([row for _, row in demand])
    possible = np.isfinite(seconds)
    busy = np.zeros((kinds, classes * kinds + 1))
    for k, (_, many) in enumerate(slots):
        busy[k, k:-1:kinds] = np.where(possible[:, k], seconds[:, k], 0.0) / many
    busy[:, -1] = -1.0
    whole = np.hstack([np.kron(np.eye(classes), np.ones(kinds)), np.zeros((classes, 1))])
    bounds = [*((0.0, float(can)) for can in possible.ravel()), (0.0, inf)]
    cost = np.append(np.zeros(classes * kinds), 1.0)
    result = linprog(
        cost,
        A_ub=busy,
        b_ub=np.zeros(kinds),
        A_eq=whole,
        b_eq=np.ones(classes),
        bounds=bounds,
        method="highs-ds",
    )
    parts = result.x[:-1].reshape(classes, kinds).tolist()
    names = [kind for kind, _ in slots]
    shares = {
        class_: {kind: part for kind, part in zip(names, row, strict=True) if part > NOTHING}
        for (class_, _), row in zip(demand, parts, strict=True)
    }
    return shares, float(result.x[-1])
