"""Queues in which some go first: mean waits by priority, for jobs that are let finish and for jobs that are pushed aside and resumed.

Sources: Cobham 1954; Kleinrock 1976, chapter 3; for several servers Kella & Yechiali 1985 (one exponential service time for all) and, when
pushed aside, Buzen & Bondi 1983 (those of priority k and before are by themselves an M/M/c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.plain import one_line
from analysis.terms import Refused

from .formulas import Inputs, erlang_c, mmc, must_be_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence


SAME = 1e-9


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """Jobs of one priority (the lower goes first): Poisson arrivals, service times of a mean and squared coefficient of variation."""

    priority: int
    rate_per_s: float
    service_s: float
    scv_service: float = 1.0


@dataclass(frozen=True, slots=True)
class PriorityWaits:
    """What jobs of one kind get: mean wait (in all, pushed aside or not) and mean response; both None where the queue of these grows.

    `load` is what jobs of this priority and those before them ask of the servers.
    """

    kind: PriorityClass
    load: float
    wait_s: float | None
    response_s: float | None


def non_preemptive(kinds: Sequence[PriorityClass], servers: int = 1) -> list[PriorityWaits]:
    """Mean waits where who has begun is let finish: W_k = W₀/((1 - U_(k-1))(1 - U_k)), in the order of `kinds`; U_k is what 1 to k ask for.

    W₀ is what a job in service still takes: Σλ·E[S²]/2 with one server, exact for every distribution; C·s/c·(1 + cs²)/2 with several, exact
    if all have one exponential service time, an approximation otherwise. Where those who go last ask for too much the servers never rest,
    and those before them still have a stationary wait.
    Raises: Refused.
    """
    _must_be_kinds(kinds, servers)
    waits = {}
    above = 0.0
    for priority in sorted({kind.priority for kind in kinds}):
        load = above + sum(map(_load, _of(kinds, priority))) / servers
        waits[priority] = (load, None if load >= 1 else _left(kinds, servers) / ((1 - above) * (1 - load)))
        above = load
    return [
        PriorityWaits(kind, waits[kind.priority][0], wait, None if wait is None else wait + kind.service_s)
        for kind in kinds
        for wait in [waits[kind.priority][1]]
    ]


def preemptive(kinds: Sequence[PriorityClass], servers: int = 1) -> list[PriorityWaits]:
    """Mean waits where who goes first pushes others aside, who resume later: those behind are as good as not there.

    One server: R_k = s_k/(1 - U_(k-1)) + Σ_(i≤k) λ_i·E[S_i²]/2/((1 - U_(k-1))(1 - U_k)). Several: by differences of M/M/c queues.
    Raises: Refused, for several servers unless all have one exponential service time.
    """
    _must_be_kinds(kinds, servers)
    if servers > 1 and not _alike(kinds):
        raise Refused("pushed aside on several servers: only for one exponential service time of all; take one server, or simulate it.")
    waits = []
    for kind in kinds:
        ahead = [other for other in kinds if other.priority < kind.priority]
        there = ahead + _of(kinds, kind.priority)
        above, load = (sum(map(_load, part)) / servers for part in (ahead, there))
        if load >= 1:
            response = None
        elif servers == 1:
            response = kind.service_s / (1 - above) + _residual(there) / ((1 - above) * (1 - load))
        else:
            rate_per_s = sum(other.rate_per_s for other in _of(kinds, kind.priority))
            response = (_inside(there, servers) - _inside(ahead, servers)) / rate_per_s
        waits.append(PriorityWaits(kind, load, None if response is None else response - kind.service_s, response))
    return waits


def _must_be_kinds(kinds: Sequence[PriorityClass], servers: int) -> None:
    if not kinds:
        raise Refused("no kind of job: each has a priority, a rate and a mean service time.")
    for kind in kinds:
        must_be_inputs(Inputs(kind.rate_per_s, kind.service_s, servers, scv_service=kind.scv_service))


def _of(kinds: Sequence[PriorityClass], priority: int) -> list[PriorityClass]:
    return [kind for kind in kinds if kind.priority == priority]


def _load(kind: PriorityClass) -> float:
    return kind.rate_per_s * kind.service_s


def _residual(kinds: Sequence[PriorityClass]) -> float:
    return sum(kind.rate_per_s * kind.service_s**2 * (1 + kind.scv_service) for kind in kinds) / 2


def _left(kinds: Sequence[PriorityClass], servers: int) -> float:
    """What is still to be waited for of those in service, W₀; of a kind that gets no more than what others leave, that part."""
    if servers == 1:
        left, used = 0.0, 0.0
        for priority in sorted({kind.priority for kind in kinds}):
            same = _of(kinds, priority)
            demand = sum(map(_load, same))
            got = min(1.0, max(0.0, 1 - used) / demand)
            left, used = left + got * _residual(same), used + demand
        return left
    rate, demand = (sum(map(of, kinds)) for of in (lambda each: each.rate_per_s, _load))
    service = demand / rate
    second = 2 * _residual(kinds) / rate
    return erlang_c(servers, demand) * service / servers * (second / service**2) / 2


def _alike(kinds: Sequence[PriorityClass]) -> bool:
    first = kinds[0].service_s
    return all(abs(kind.service_s - first) <= SAME * first and abs(kind.scv_service - 1) <= SAME for kind in kinds)


def _inside(kinds: Sequence[PriorityClass], servers: int) -> float:
    return mmc(Inputs(sum(kind.rate_per_s for kind in kinds), kinds[0].service_s, servers)).inside if kinds else 0.0


FORM = "PRIORITY:RATE:S[:CS2], such as 1:2.5:0.2"


def parse(text: str) -> PriorityClass:
    parts = text.split(":")
    if not 3 <= len(parts) <= 4:
        raise Refused(f"{one_line(text, 60)!r} is no class of jobs; write {FORM}.")
    try:
        return PriorityClass(int(parts[0]), *map(float, parts[1:]))
    except ValueError:
        raise Refused(f"{one_line(text, 60)!r} is no class of jobs: all its parts are numbers; write {FORM}.") from None
