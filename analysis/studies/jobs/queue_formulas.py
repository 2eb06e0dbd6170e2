"""Stationary queues by formula.

U is the load, λ·E[S]/c; `scv` is a squared coefficient of variation, variance over mean squared.

Exact for Poisson arrivals; approximations for what is neither Poisson nor exponential; M/M/c/K, in
which what comes when it is full is turned away; queues in which some go first; closed systems.
Percentiles are exact for M/M/c and M/M/c/K; elsewhere the tail is taken to be exponential. Sources:
Erlang 1917; Kleinrock 1975 (M/M/1, M/M/c, M/M/c/K); Pollaczek 1930 and Khinchine 1932 (M/G/1);
Kingman 1961; Allen 1990 (Allen-Cunneen); Sakasegawa 1977; by priority Cobham 1954, Kleinrock 1976,
chapter 3, for several servers Kella & Yechiali 1985 (one exponential service time for all) and,
when pushed aside, Buzen & Bondi 1983 (those of priority k and before are by themselves M/M/c).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincc

from analysis.plain import one_line
from analysis.terms import Refused
from analysis.wording import counted


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


@dataclass(frozen=True, slots=True)
class Queue:
    """A stationary queue by a model.

    `exact`: under the model's own assumptions; otherwise it is an approximation.

    `load` is the share of the servers' time that is asked for, `p_wait` the share of jobs that
    wait, `waiting` and `inside` are mean numbers of jobs in the queue and in all, `rate_per_s` is
    what is let in. With `room` for so many jobs, `loss` is the share turned away.
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


MOST_SERVERS = 10_000_000  # servers; a recursion over more takes seconds


@lru_cache(maxsize=4096)
def erlang_b(servers: int, offered: float) -> float:
    """Return the share of jobs rejected (M/G/c/c): B(k) = a·B(k-1)/(k + a·B(k-1)), B(0) = 1.

    `offered` is the rate times the mean service time, in Erlang.
    Raises: Refused, for an invalid number of servers or load.
    Source: Erlang 1917.
    """
    _check(1 <= servers <= MOST_SERVERS, f"{servers} servers: must be 1 to {MOST_SERVERS}.")
    _check(
        0 <= offered < math.inf,
        f"an offered load of {offered:g} Erlang: must be a finite number of at least 0.",
    )
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked


def erlang_c(servers: int, offered: float) -> float:
    """Return the share of jobs that wait (M/M/c): C = B/(1 - U(1 - B)), U the load per server.

    At full load or above, all wait: 1.

    Raises: Refused, as above.
    """
    blocked = erlang_b(servers, offered)
    load = offered / servers
    return 1.0 if load >= 1 else blocked / (1 - load * (1 - blocked))


def must_be_inputs(inputs: Inputs) -> None:
    for name, value in (("rate", inputs.rate_per_s), ("mean service time", inputs.service_s)):
        _check(0 < value < math.inf, f"a {name} of {value:g}: must be a finite number above 0.")
    for name, value in (("arrivals", inputs.scv_arrivals), ("service times", inputs.scv_service)):
        _check(
            0 <= value < math.inf,
            f"a squared coefficient of variation of {value:g} for {name}: must be a finite number "
            "of at least 0.",
        )
    _check(
        1 <= inputs.servers <= MOST_SERVERS,
        f"{inputs.servers} servers: must be 1 to {MOST_SERVERS}.",
    )


def load_of(inputs: Inputs) -> float:
    return inputs.rate_per_s * inputs.service_s / inputs.servers


def must_be_stable(inputs: Inputs) -> None:
    """Check that a stationary state exists.

    Raises: Refused, for what is no input. Unstable, with how fast the queue grows.
    """
    must_be_inputs(inputs)
    load = load_of(inputs)
    if load >= 1:
        done = inputs.servers / inputs.service_s
        serve = "serves" if inputs.servers == 1 else "serve"
        most = math.floor(inputs.rate_per_s * inputs.service_s) + 1
        grows = (
            f"grows by {inputs.rate_per_s - done:.3g} jobs/s" if load > 1 else "grows without end"
        )
        raise Unstable(
            f"load {load:.4g}: {inputs.rate_per_s:.4g} jobs/s arrive and "
            f"{counted(inputs.servers, 'server')} {serve} {done:.4g};"
            f" the queue {grows}, so no stationary figure exists. One exists below {done:.4g} "
            f"jobs/s, or with {most} servers."
        )


def mmc(inputs: Inputs) -> Queue:
    """Solve M/M/c by Erlang C: W_q = C·s/(c(1 - U)), ignoring the inputs' variation.

    Raises: Refused, Unstable.
    """
    must_be_stable(inputs)
    load = load_of(inputs)
    p_wait = erlang_c(inputs.servers, load * inputs.servers)
    return _queue(
        f"M/M/{inputs.servers}",
        inputs,
        p_wait,
        p_wait * inputs.service_s / (inputs.servers * (1 - load)),
        exact=True,
    )


def mg1(inputs: Inputs) -> Queue:
    """Solve M/G/1 by Pollaczek and Khinchine: W_q = U·s·(1 + cs²)/(2(1 - U)).

    Raises: Refused, for more than one server; Unstable.
    """
    must_be_stable(inputs)
    _must_be_one(inputs, "M/G/1")
    load = load_of(inputs)
    return _queue(
        "M/G/1",
        inputs,
        load,
        load * inputs.service_s * (1 + inputs.scv_service) / (2 * (1 - load)),
        exact=True,
    )


def kingman(inputs: Inputs) -> Queue:
    """Approximate G/G/1 by Kingman: W_q ≈ U/(1 - U)·(ca² + cs²)/2·s.

    Raises: Refused, for more than one server; Unstable.
    """
    must_be_stable(inputs)
    _must_be_one(inputs, "Kingman's formula")
    load = load_of(inputs)
    return _queue(
        "G/G/1 Kingman", inputs, load, load / (1 - load) * _variation(inputs) * inputs.service_s
    )


def allen_cunneen(inputs: Inputs) -> Queue:
    """Approximate G/G/c by Allen and Cunneen: W_q ≈ C(c, a)·s/(c(1 - U))·(ca² + cs²)/2.

    Raises: Refused, Unstable.
    """
    exact = mmc(inputs)
    return _queue(
        f"G/G/{inputs.servers} Allen-Cunneen",
        inputs,
        exact.p_wait,
        exact.wait_s * _variation(inputs),
    )


def sakasegawa(inputs: Inputs) -> Queue:
    """Approximate G/G/c by Sakasegawa: W_q ≈ s·U^(√(2(c + 1)) - 1)/(c(1 - U))·(ca² + cs²)/2.

    Raises: Refused, Unstable.
    """
    must_be_stable(inputs)
    load = load_of(inputs)
    factor = load ** (math.sqrt(2 * (inputs.servers + 1)) - 1) / (inputs.servers * (1 - load))
    p_wait = min(1.0, factor * inputs.servers * (1 - load))
    return _queue(
        f"G/G/{inputs.servers} Sakasegawa",
        inputs,
        p_wait,
        factor * _variation(inputs) * inputs.service_s,
    )


def _variation(inputs: Inputs) -> float:
    return (inputs.scv_arrivals + inputs.scv_service) / 2


def _must_be_one(inputs: Inputs, what: str) -> None:
    _check(
        inputs.servers == 1,
        f"{what} needs one server, not {inputs.servers}; for several, use Allen-Cunneen.",
    )


def _queue(
    model: str, inputs: Inputs, p_wait: float, wait_s: float, *, exact: bool = False
) -> Queue:
    response_s = wait_s + inputs.service_s
    return Queue(
        model=model,
        exact=exact,
        servers=inputs.servers,
        rate_per_s=inputs.rate_per_s,
        service_s=inputs.service_s,
        load=load_of(inputs),
        p_wait=p_wait,
        wait_s=wait_s,
        response_s=response_s,
        waiting=inputs.rate_per_s * wait_s,
        inside=inputs.rate_per_s * response_s,
    )


def wait_quantile(queue: Queue, share: float) -> float:
    """Return the wait of a quantile of jobs, seconds: (W_q/C)·ln(C/(1 - q)), or 0 without a wait.

    Exact for M/M/c and M/M/c/K (by search), an approximation for the others (Allen 1990).
    Raises: Refused, for a share that is none.
    """
    _must_be_share(share)
    if queue.p_wait <= 1 - share:
        return 0.0
    if queue.room is None:
        return queue.wait_s / queue.p_wait * math.log(queue.p_wait / (1 - share))
    most = (2 * queue.room + 40 * math.sqrt(queue.room) + 100) * queue.service_s / queue.servers
    return float(
        brentq(
            lambda time_s: wait_within(queue, time_s) - share,
            0.0,
            most,
            xtol=1e-12 * most,
            rtol=1e-13,
        )
    )


def wait_within(queue: Queue, time_s: float) -> float:
    """Return P(W ≤ t) = 1 - C·e^(-t·C/W_q), the inverse of `wait_quantile`.

    With limited room, one who finds n ≥ c jobs waits for n - c + 1 of them to leave: Erlang
    distributed with c/s per second.
    Raises: Refused, for a time that is none.
    """
    must_be_time(time_s)
    if queue.room is None:
        return (
            1 - queue.p_wait * math.exp(-time_s * queue.p_wait / queue.wait_s)
            if queue.wait_s
            else 1.0
        )
    asked = Inputs(queue.rate_per_s / (1 - queue.loss), queue.service_s, queue.servers)
    of_let_in = mmck_states(asked, queue.room)[:-1]
    weights, ahead = (
        of_let_in[queue.servers :] / of_let_in.sum(),
        np.arange(1, queue.room - queue.servers + 1),
    )
    return 1 - float(weights @ gammaincc(ahead, time_s * queue.servers / queue.service_s))


def must_be_time(time_s: float) -> None:
    _check(0 <= time_s < math.inf, f"a wait of {time_s:g} s: must be at least 0.")


def response_quantile(queue: Queue, share: float) -> float:
    """Return the response time of a quantile of jobs, seconds; exact, for M/M/c only.

    A response is a service, and with probability C an exponential wait before it: P(R > t) =
    e^(-μt) + C·μ·(e^(-θt) - e^(-μt))/(μ - θ), θ = cμ - λ. With one server θ = μ(1 - U) and C = U,
    and it is exponential.
    Raises: Refused.
    """
    _must_be_share(share)
    _check(
        queue.model.startswith("M/M/") and queue.room is None,
        f"{queue.model}: percentiles of the response need the whole distribution of service "
        "times; only M/M/c has it.",
    )
    if queue.wait_s == 0:
        return -queue.service_s * math.log1p(-share)
    served = 1 / queue.service_s
    leaves = queue.p_wait / queue.wait_s

    def longer(time: float) -> float:
        slow, apart = min(served, leaves), abs(served - leaves)
        both = math.exp(-slow * time) * (
            -math.expm1(-apart * time) / apart if apart * time > 1e-12 else time
        )
        return math.exp(-served * time) + queue.p_wait * served * both

    most = 1 / min(served, leaves)
    while longer(most) > 1 - share:
        most *= 2
    return float(
        brentq(lambda time: longer(time) - (1 - share), 0.0, most, xtol=1e-15 * most, rtol=1e-13)
    )


def _must_be_share(share: float) -> None:
    _check(0 < share < 1, f"a share of {share:g}: a percentile lies between 0 and 100 %.")


LARGEST_ROOM = 1_000_000


def mmck_states(inputs: Inputs, room: int) -> np.ndarray:
    """Return the share of time with 0, 1, … `room` jobs, including service; shape (room + 1,).

    Raises: Refused, for what is no input, and less room than servers.
    """
    must_be_inputs(inputs)
    _check(
        inputs.servers <= room <= LARGEST_ROOM,
        f"room for {room} jobs, including those in service: must be {inputs.servers} (the servers) "
        f"to {LARGEST_ROOM}.",
    )
    busy = np.minimum(np.arange(1, room + 1), inputs.servers)
    logs = np.concatenate([[0.0], np.cumsum(np.log(inputs.rate_per_s * inputs.service_s / busy))])
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def mmck(inputs: Inputs, room: int) -> Queue:
    """Solve M/M/c/K: waits are for admitted jobs; `load` is offered. Raises: Refused."""
    shares = mmck_states(inputs, room)
    counts = np.arange(room + 1)
    loss = float(shares[-1])
    let_in = replace(inputs, rate_per_s=inputs.rate_per_s * (1 - loss))
    waiting = float(shares @ np.maximum(counts - inputs.servers, 0))
    p_wait = float(shares[inputs.servers : room].sum() / (1 - loss))
    queue = _queue(
        f"M/M/{inputs.servers}/{room}", let_in, p_wait, waiting / let_in.rate_per_s, exact=True
    )
    return replace(queue, load=load_of(inputs), loss=loss, room=room)


MOST_USERS = 1_000_000


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
    Raises: Refused.
    """
    _check(demands_s, "no station: each needs a name and a demand in seconds.")
    for name, demand in demands_s.items():
        _check(
            0 < demand < math.inf,
            f"station {name}: a demand of {demand:g} s; must be a finite number above 0.",
        )
    _check(1 <= users <= MOST_USERS, f"{users} users: must be 1 to {MOST_USERS}.")
    _check(
        0 <= think_s < math.inf,
        f"a think time of {think_s:g} s: must be a finite number of at least 0.",
    )
    jobs = dict.fromkeys(demands_s, 0.0)
    times: dict[str, float] = {}
    rate = 0.0
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


ALIKE = 1e-9


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
    """Result for one kind of job: mean wait, interruptions included, and mean response, or None.

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
    approximation otherwise. Where those who go last ask for too much the servers never rest, and
    those before them still have a stationary wait.
    Raises: Refused.
    """
    _must_be_kinds(kinds, servers)
    waits = {}
    above = 0.0
    for priority in sorted({kind.priority for kind in kinds}):
        load = above + _load(_of(kinds, priority)) / servers
        waits[priority] = (
            load,
            None if load >= 1 else _left(kinds, servers) / ((1 - above) * (1 - load)),
        )
        above = load
    return [
        PriorityWaits(kind, load, wait, None if wait is None else wait + kind.service_s)
        for kind in kinds
        for load, wait in [waits[kind.priority]]
    ]


def preemptive(kinds: Sequence[PriorityClass], servers: int = 1) -> list[PriorityWaits]:
    """Return preemptive-resume mean waits: lower priorities do not delay a job.

    One server: R_k = s_k/(1 - U_(k-1)) + Σ_(i≤k) λ_i·E[S_i²]/2/((1 - U_(k-1))(1 - U_k)). Several:
    by differences of M/M/c queues.
    Raises: Refused, for several servers unless all have one exponential service time.
    """
    _must_be_kinds(kinds, servers)
    if servers > 1 and not _alike(kinds):
        raise Refused(
            "preemption on several servers needs one exponential service time for all; use one "
            "server, or simulate."
        )
    waits = []
    for kind in kinds:
        ahead = [other for other in kinds if other.priority < kind.priority]
        there = ahead + _of(kinds, kind.priority)
        above, load = (_load(part) / servers for part in (ahead, there))
        if load >= 1:
            response = None
        elif servers == 1:
            response = kind.service_s / (1 - above) + _residual(there) / ((1 - above) * (1 - load))
        else:
            rate_per_s = sum(other.rate_per_s for other in _of(kinds, kind.priority))
            response = (_inside(there, servers) - _inside(ahead, servers)) / rate_per_s
        waits.append(
            PriorityWaits(
                kind, load, None if response is None else response - kind.service_s, response
            )
        )
    return waits


def _must_be_kinds(kinds: Sequence[PriorityClass], servers: int) -> None:
    _check(kinds, "no kind of job: each needs a priority, a rate and a mean service time.")
    for kind in kinds:
        must_be_inputs(
            Inputs(kind.rate_per_s, kind.service_s, servers, scv_service=kind.scv_service)
        )


def _of(kinds: Sequence[PriorityClass], priority: int) -> list[PriorityClass]:
    return [kind for kind in kinds if kind.priority == priority]


def _load(kinds: Sequence[PriorityClass]) -> float:
    return sum(kind.load for kind in kinds)


def _residual(kinds: Sequence[PriorityClass]) -> float:
    return sum(kind.residual for kind in kinds)


def _left(kinds: Sequence[PriorityClass], servers: int) -> float:
    if servers == 1:
        left, used = 0.0, 0.0
        for priority in sorted({kind.priority for kind in kinds}):
            same = _of(kinds, priority)
            demand = _load(same)
            got = min(1.0, max(0.0, 1 - used) / demand)
            left, used = left + got * _residual(same), used + demand
        return left
    rate, demand = sum(kind.rate_per_s for kind in kinds), _load(kinds)
    return erlang_c(servers, demand) / servers * _residual(kinds) / rate / (demand / rate)


def _alike(kinds: Sequence[PriorityClass]) -> bool:
    first = kinds[0].service_s
    return all(
        abs(kind.service_s - first) <= ALIKE * first and abs(kind.scv_service - 1) <= ALIKE
        for kind in kinds
    )


def _inside(kinds: Sequence[PriorityClass], servers: int) -> float:
    return (
        mmc(Inputs(sum(kind.rate_per_s for kind in kinds), kinds[0].service_s, servers)).inside
        if kinds
        else 0.0
    )


FORM = "PRIORITY:RATE:S[:CS2], such as 1:2.5:0.2"


def parse(text: str) -> PriorityClass:
    parts = text.split(":")
    _check(3 <= len(parts) <= 4, f"{one_line(text, 60)!r} is not a class of jobs; write {FORM}.")
    try:
        return PriorityClass(int(parts[0]), *map(float, parts[1:]))
    except ValueError:
        raise Refused(
            f"{one_line(text, 60)!r} is not a class of jobs: parts must be numbers; write {FORM}."
        ) from None
