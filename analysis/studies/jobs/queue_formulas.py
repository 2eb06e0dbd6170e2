"""Stationary queues by formula: open, with limited room, by priority, and closed.

U is the load, λ·E[S]/c; `scv` is a squared coefficient of variation, variance over mean squared.
Sources: Erlang 1917; Kleinrock 1975; Pollaczek 1930 and Khinchine 1932 (M/G/1); Kingman 1961; Allen
1990 (Allen-Cunneen); Sakasegawa 1977; by priority Cobham 1954, and for several servers Kella &
Yechiali 1985.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq

from analysis.plain import one_line
from analysis.terms import Refused
from analysis.wording import counted

MOST_SERVERS = 10_000_000  # a recursion over more takes seconds
LARGEST_ROOM = MOST_USERS = 1_000_000


class Unstable(Refused):
    """The offered work reaches the capacity: the queue grows and has no stationary figure."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a queueing model; the `scv` are 1 for Poisson arrivals and exponential service."""

    rate_per_s: float
    service_s: float
    servers: int = 1
    scv_arrivals: float = 1.0
    scv_service: float = 1.0

    @property
    def load(self) -> float:
        return self.rate_per_s * self.service_s / self.servers

    @property
    def variation(self) -> float:
        return (self.scv_arrivals + self.scv_service) / 2


@dataclass(frozen=True, slots=True)
class Queue:
    """A stationary queue by a model; `exact` under the model's own assumptions.

    `load` is what is offered, `rate_per_s` what is let in; `p_wait` is the share of jobs that wait,
    `waiting` and `inside` are mean numbers of jobs in the queue and in all. With `room` for so many
    jobs, `loss` is the share turned away.
    """

    model: str
    exact: bool
    servers: int
    rate_per_s: float
    service_s: float
    load: float
    p_wait: float
    wait_s: float
    response_s: float
    waiting: float
    inside: float
    loss: float = 0.0
    room: int | None = None


def _check(valid: object, message: str) -> None:
    if not valid:
        raise Refused(message)


def _check_number(what: str, value: float, *, above: bool = False) -> None:
    valid = 0 < value < math.inf if above else 0 <= value < math.inf
    limit = "above 0" if above else "of at least 0"
    _check(valid, f"{what} is {value:g}; it must be a finite number {limit}.")


def _check_count(what: str, value: int, most: int, least: int = 1) -> None:
    _check(least <= value <= most, f"{value} {what}: must be {least} to {most}.")


@lru_cache(maxsize=4096)
def erlang_b(servers: int, offered: float) -> float:
    """Return the share of jobs rejected (M/G/c/c): B(k) = a·B(k-1)/(k + a·B(k-1)), B(0) = 1.

    `offered` is the rate times the mean service time, in Erlang. Source: Erlang 1917.
    """
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked


def erlang_c(servers: int, offered: float) -> float:
    """Return the share of jobs that wait (M/M/c): C = B/(1 - U(1 - B)); 1 at full load."""
    blocked, load = erlang_b(servers, offered), offered / servers
    return 1.0 if load >= 1 else blocked / (1 - load * (1 - blocked))


def must_be_inputs(inputs: Inputs) -> None:
    _check_number("the rate", inputs.rate_per_s, above=True)
    _check_number("the mean service time", inputs.service_s, above=True)
    _check_number("the variation of gaps", inputs.scv_arrivals)
    _check_number("the variation of service times", inputs.scv_service)
    _check_count("servers", inputs.servers, MOST_SERVERS)


def must_be_stable(inputs: Inputs) -> None:
    """Check the inputs. Raises: Refused; Unstable, with what would be enough."""
    must_be_inputs(inputs)
    if inputs.load < 1:
        return
    done = inputs.servers / inputs.service_s
    most = math.floor(inputs.rate_per_s * inputs.service_s) + 1
    raise Unstable(
        f"load {inputs.load:.4g}: {inputs.rate_per_s:.4g} jobs/s arrive at "
        f"{counted(inputs.servers, 'server')} for {done:.4g}; the queue grows without end, so no "
        f"stationary figure exists. One exists below {done:.4g} jobs/s, or with {most} servers."
    )


# The share of jobs that wait, and their mean wait.
Waits = Callable[[Inputs], tuple[float, float]]


def _erlang(of: Inputs) -> tuple[float, float]:
    """W_q = C·s/(c(1 - U))."""
    p_wait = erlang_c(of.servers, of.load * of.servers)
    return p_wait, p_wait * of.service_s / (of.servers * (1 - of.load))


def _pollaczek(of: Inputs) -> tuple[float, float]:
    """W_q = U·s·(1 + cs²)/(2(1 - U))."""
    return of.load, of.load * of.service_s * (1 + of.scv_service) / (2 * (1 - of.load))


def _kingman(of: Inputs) -> tuple[float, float]:
    """W_q ≈ U/(1 - U)·(ca² + cs²)/2·s."""
    return of.load, of.load / (1 - of.load) * of.variation * of.service_s


def _allen_cunneen(of: Inputs) -> tuple[float, float]:
    """W_q ≈ C(c, a)·s/(c(1 - U))·(ca² + cs²)/2."""
    p_wait, wait_s = _erlang(of)
    return p_wait, wait_s * of.variation


def _sakasegawa(of: Inputs) -> tuple[float, float]:
    """W_q ≈ s·U^(√(2(c + 1)) - 1)/(c(1 - U))·(ca² + cs²)/2."""
    p_wait = of.load ** (math.sqrt(2 * (of.servers + 1)) - 1)
    return min(1.0, p_wait), p_wait / (of.servers * (1 - of.load)) * of.variation * of.service_s


def solve(model: str, waits: Waits, inputs: Inputs) -> Queue:
    """Solve a model. Raises: Refused, Unstable."""
    must_be_stable(inputs)
    exact = model.startswith("M/")
    return _queue(model.replace("/c", f"/{inputs.servers}"), inputs, *waits(inputs), exact=exact)


mmc = partial(solve, "M/M/c", _erlang)
mg1 = partial(solve, "M/G/1", _pollaczek)
kingman = partial(solve, "G/G/1 Kingman", _kingman)
allen_cunneen = partial(solve, "G/G/c Allen-Cunneen", _allen_cunneen)
sakasegawa = partial(solve, "G/G/c Sakasegawa", _sakasegawa)


def models(inputs: Inputs, room: int | None = None) -> list[Queue]:
    """Return every model for this number of servers. Raises: Refused, Unstable."""
    if room is not None:
        return [mmck(inputs, room)]
    several = (mmc, allen_cunneen, sakasegawa)
    return [model(inputs) for model in ((mmc, mg1, kingman) if inputs.servers == 1 else several)]


def _queue(model: str, inputs: Inputs, p_wait: float, wait_s: float, *, exact: bool) -> Queue:
    response_s = wait_s + inputs.service_s
    return Queue(
        model=model,
        exact=exact,
        servers=inputs.servers,
        rate_per_s=inputs.rate_per_s,
        service_s=inputs.service_s,
        load=inputs.load,
        p_wait=p_wait,
        wait_s=wait_s,
        response_s=response_s,
        waiting=inputs.rate_per_s * wait_s,
        inside=inputs.rate_per_s * response_s,
    )


def wait_quantile(queue: Queue, share: float) -> float:
    """Return the wait of a quantile of jobs, seconds: (W_q/C)·ln(C/(1 - q)), or 0 without a wait.

    Exact for M/M/c, an approximation for the others (Allen 1990).
    """
    if queue.p_wait <= 1 - share:
        return 0.0
    return queue.wait_s / queue.p_wait * math.log(queue.p_wait / (1 - share))


def response_quantile(queue: Queue, share: float) -> float:
    """Return the response time of a quantile of jobs, seconds; exact, for M/M/c only.

    A response is a service, and with probability C an exponential wait before it: P(R > t) =
    e^(-μt) + C·μ·(e^(-θt) - e^(-μt))/(μ - θ), θ = cμ - λ.
    """
    if queue.wait_s == 0:
        return -queue.service_s * math.log1p(-share)
    served, leaves = 1 / queue.service_s, queue.p_wait / queue.wait_s
    slow, apart = min(served, leaves), abs(served - leaves)

    def longer(time: float) -> float:
        both = -math.expm1(-apart * time) / apart if apart * time > 1e-12 else time
        waited = queue.p_wait * served * math.exp(-slow * time) * both
        return math.exp(-served * time) + waited

    most = 1 / slow
    while longer(most) > 1 - share:
        most *= 2
    return float(
        brentq(lambda time: longer(time) - (1 - share), 0.0, most, xtol=1e-15 * most, rtol=1e-13)
    )


def mmck(inputs: Inputs, room: int) -> Queue:
    """Solve M/M/c/K: waits are for admitted jobs; `load` is offered. Raises: Refused."""
    must_be_inputs(inputs)
    _check_count("places, including the servers", room, LARGEST_ROOM, inputs.servers)
    busy = np.minimum(np.arange(1, room + 1), inputs.servers)
    logs = np.concatenate([[0.0], np.cumsum(np.log(inputs.rate_per_s * inputs.service_s / busy))])
    weights = np.exp(logs - logs.max())
    shares = weights / weights.sum()
    loss = float(shares[-1])
    let_in = replace(inputs, rate_per_s=inputs.rate_per_s * (1 - loss))
    waiting = float(shares @ np.maximum(np.arange(room + 1) - inputs.servers, 0))
    p_wait = float(shares[inputs.servers : room].sum() / (1 - loss))
    name = f"M/M/{inputs.servers}/{room}"
    queue = _queue(name, let_in, p_wait, waiting / let_in.rate_per_s, exact=True)
    return replace(queue, load=inputs.load, loss=loss, room=room)


@dataclass(frozen=True, slots=True)
class ClosedSystem:
    """A closed system; by station: mean number of jobs, utilisation, and time per user request.

    `most_per_s` and `least_s` are the bounds no system of these demands can pass: min(1/D_max, N/(D
    + Z)) and max(D, N·D_max - Z).
    """

    users: int
    think_s: float
    rate_per_s: float
    response_s: float
    jobs: Mapping[str, float]
    utilisation: Mapping[str, float]
    times_s: Mapping[str, float]
    most_per_s: float
    least_s: float


def mva(demands_s: Mapping[str, float], users: int, think_s: float = 0.0) -> ClosedSystem:
    """Solve means by recursion: R_k(n) = D_k·(1 + Q_k(n-1)), X(n) = n/(Z + ΣR_k), Q_k = X·R_k.

    `demands_s`: what a request asks of each single server, visits times service time. Exact for
        exponential service in the order of coming, and for any service that is shared by all there.
    """
    _check(demands_s, "no station: each needs a name and a demand in seconds.")
    for name, demand in demands_s.items():
        _check_number(f"the demand on {name}", demand, above=True)
    _check_count("users", users, MOST_USERS)
    _check_number("the think time", think_s)
    jobs, times, rate = dict.fromkeys(demands_s, 0.0), dict(demands_s), 0.0
    for count in range(1, users + 1):
        times = {name: demand * (1 + jobs[name]) for name, demand in demands_s.items()}
        rate = count / (think_s + math.fsum(times.values()))
        jobs = {name: rate * time for name, time in times.items()}
    whole, longest = math.fsum(demands_s.values()), max(demands_s.values())
    return ClosedSystem(
        users=users,
        think_s=think_s,
        rate_per_s=rate,
        response_s=math.fsum(times.values()),
        jobs=jobs,
        utilisation={name: rate * demand for name, demand in demands_s.items()},
        times_s=times,
        most_per_s=min(1 / longest, users / (whole + think_s)),
        least_s=max(whole, users * longest - think_s),
    )


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """Jobs of one priority (lower first): Poisson arrivals; mean and SCV of service times."""

    priority: int
    rate_per_s: float
    service_s: float
    scv_service: float = 1.0

    @property
    def load(self) -> float:
        return self.rate_per_s * self.service_s

    @property
    def residual(self) -> float:
        """λ·E[S²]/2."""
        return self.load * self.service_s * (1 + self.scv_service) / 2


@dataclass(frozen=True, slots=True)
class PriorityWaits:
    """Mean wait and response of one kind of job; None if unbounded.

    `load` is what jobs of this priority and those before them ask of the servers.
    """

    kind: PriorityClass
    load: float
    wait_s: float | None
    response_s: float | None


def non_preemptive(kinds: Sequence[PriorityClass], servers: int = 1) -> list[PriorityWaits]:
    """Return non-preemptive mean waits: W_k = W₀/((1 - U_(k-1))(1 - U_k)), U_k the load of 1 to k.

    W₀ is what a job in service still takes: Σλ·E[S²]/2 with one server, exact for every
    distribution; C·s/c·(1 + cs²)/2 with several, exact if all have one exponential service time, an
    approximation otherwise. Raises: Refused.
    """
    _check(kinds, "no kind of job: each needs a priority, a rate and a mean service time.")
    for kind in kinds:
        must_be_inputs(Inputs(kind.rate_per_s, kind.service_s, servers, 1.0, kind.scv_service))
    left = _left(kinds, servers)
    waits = []
    for kind in kinds:
        above = sum(other.load for other in kinds if other.priority < kind.priority) / servers
        load = sum(other.load for other in kinds if other.priority <= kind.priority) / servers
        wait = None if load >= 1 else left / ((1 - above) * (1 - load))
        waits.append(
            PriorityWaits(kind, load, wait, None if wait is None else wait + kind.service_s)
        )
    return waits


def _left(kinds: Sequence[PriorityClass], servers: int) -> float:
    """Return W₀; a saturated priority counts with the part of it that is served."""
    demand, residual = (math.fsum(getattr(kind, name) for kind in kinds) for name in LEFT)
    if servers > 1:
        return erlang_c(servers, demand) / servers * residual / demand
    left = used = 0.0
    for priority in sorted({kind.priority for kind in kinds}):
        same = [kind for kind in kinds if kind.priority == priority]
        asked = sum(kind.load for kind in same)
        served = min(1.0, max(0.0, 1 - used) / asked)
        left += served * sum(kind.residual for kind in same)
        used += asked
    return left


LEFT = ("load", "residual")
FORM = "PRIORITY:RATE:S[:CS2], such as 1:2.5:0.2"


def parse(text: str) -> PriorityClass:
    try:
        priority, *numbers = text.split(":")
        return PriorityClass(int(priority), *map(float, numbers))
    except (ValueError, TypeError):
        raise Refused(f"{one_line(text, 60)!r} is not a class of jobs; write {FORM}.") from None
