"""Queues without an end to their room: exact ones for Poisson arrivals, approximations for what is neither Poisson nor exponential.

U is the load, λ·E[S]/c. Sources: Kleinrock 1975 (M/M/1, M/M/c); Pollaczek 1930 and Khinchine 1932 (M/G/1); Kingman 1961; Allen 1990
(Allen-Cunneen); Sakasegawa 1977.
"""

from __future__ import annotations

import math

from analysis.terms import Refused

from .erlang import MOST, erlang_c
from .terms import Inputs, Queue, Unstable


def must_be_inputs(asked: Inputs) -> None:
    """Check that a model can be asked. Raises: Refused, which number is none."""
    for name, value in (("rate", asked.rate_per_s), ("mean service time", asked.service_s)):
        if not 0 < value < math.inf:
            raise Refused(f"a {name} of {value:g}: it is a finite number above 0.")
    for name, value in (("arrivals", asked.scv_arrivals), ("service times", asked.scv_service)):
        if not 0 <= value < math.inf:
            raise Refused(f"a squared coefficient of variation of {value:g} for {name}: it is a finite number, 0 or above.")
    if not 1 <= asked.servers <= MOST:
        raise Refused(f"{asked.servers} servers: it takes 1 to {MOST}.")


def load_of(asked: Inputs) -> float:
    """Share of the servers' time that is asked for: λ·E[S]/c."""
    return asked.rate_per_s * asked.service_s / asked.servers


def must_be_stable(asked: Inputs) -> None:
    """Check that a stationary state exists. Raises: Refused, for what is no input. Unstable, with how fast the queue grows."""
    must_be_inputs(asked)
    load = load_of(asked)
    if load >= 1:
        done = asked.servers / asked.service_s
        most = math.floor(asked.rate_per_s * asked.service_s) + 1
        grows = f"grows by {asked.rate_per_s - done:.3g} jobs/s" if load > 1 else "grows without end"
        raise Unstable(
            f"load {load:.4g}: {asked.rate_per_s:.4g} jobs/s come and {asked.servers} servers do {done:.4g}; the queue {grows} and there "
            f"is no stationary figure. Below {done:.4g} jobs/s, or with {most} servers, there is one."
        )


def mmc(asked: Inputs) -> Queue:
    """M/M/c by Erlang C: W_q = C·s/(c(1 - U)); with one server M/M/1. What the inputs say of variation is not used.

    Raises: Refused, Unstable.
    """
    must_be_stable(asked)
    load = load_of(asked)
    p_wait = erlang_c(asked.servers, load * asked.servers)
    return _queue(f"M/M/{asked.servers}", asked, p_wait, p_wait * asked.service_s / (asked.servers * (1 - load)), exact=True)


def mg1(asked: Inputs) -> Queue:
    """M/G/1 by Pollaczek and Khinchine: W_q = U·s·(1 + cs²)/(2(1 - U)). Raises: Refused, for more than one server; Unstable."""
    must_be_stable(asked)
    _must_be_one(asked, "M/G/1")
    load = load_of(asked)
    return _queue("M/G/1", asked, load, load * asked.service_s * (1 + asked.scv_service) / (2 * (1 - load)), exact=True)


def kingman(asked: Inputs) -> Queue:
    """G/G/1 by Kingman: W_q ≈ U/(1 - U)·(ca² + cs²)/2·s. Raises: Refused, for more than one server; Unstable."""
    must_be_stable(asked)
    _must_be_one(asked, "Kingman's formula")
    load = load_of(asked)
    return _queue("G/G/1 Kingman", asked, load, load / (1 - load) * _variation(asked) * asked.service_s)


def allen_cunneen(asked: Inputs) -> Queue:
    """G/G/c by Allen and Cunneen: W_q ≈ C(c, a)·s/(c(1 - U))·(ca² + cs²)/2. Raises: Refused, Unstable."""
    exact = mmc(asked)
    return _queue(f"G/G/{asked.servers} Allen-Cunneen", asked, exact.p_wait, exact.wait_s * _variation(asked))


def sakasegawa(asked: Inputs) -> Queue:
    """G/G/c by Sakasegawa, without Erlang's formula: W_q ≈ s·U^(√(2(c + 1)) - 1)/(c(1 - U))·(ca² + cs²)/2. Raises: Refused, Unstable."""
    must_be_stable(asked)
    load = load_of(asked)
    factor = load ** (math.sqrt(2 * (asked.servers + 1)) - 1) / (asked.servers * (1 - load))
    p_wait = min(1.0, factor * asked.servers * (1 - load))
    return _queue(f"G/G/{asked.servers} Sakasegawa", asked, p_wait, factor * _variation(asked) * asked.service_s)


def mmc_empty(asked: Inputs) -> float:
    """Share of time an M/M/c is empty: p₀ = C(1 - U)·c!/a^c, by logarithms. Raises: Refused, Unstable."""
    found = mmc(asked)
    offered = found.load * asked.servers
    if found.p_wait == 0:  # too small to be written: all those servers are as good as endless
        return math.exp(-offered)
    return math.exp(math.log(found.p_wait) + math.log1p(-found.load) + math.lgamma(asked.servers + 1) - asked.servers * math.log(offered))


def mm1_at_least(load: float, jobs: int) -> float:
    """Share of time an M/M/1 holds so many jobs or more: Uⁿ. Raises: Refused, Unstable."""
    must_be_stable(Inputs(load, 1.0))
    return float(load**jobs)


def mm1_room_for(load: float, loss: float) -> int:
    """Places an M/M/1 must have so that fewer than a share `loss` find them taken, by the tail of the endless queue: ⌈ln loss/ln U⌉.

    Raises: Refused, Unstable.
    """
    must_be_stable(Inputs(load, 1.0))
    if not 0 < loss < 1:
        raise Refused(f"a loss of {loss:g}: it is a share between 0 and 1.")
    return math.ceil(math.log(loss) / math.log(load))


def _variation(asked: Inputs) -> float:
    return (asked.scv_arrivals + asked.scv_service) / 2


def _must_be_one(asked: Inputs, what: str) -> None:
    if asked.servers != 1:
        raise Refused(f"{what} has one server, not {asked.servers}; for several there is Allen and Cunneen's.")


def _queue(model: str, asked: Inputs, p_wait: float, wait_s: float, *, exact: bool = False) -> Queue:
    response_s = wait_s + asked.service_s
    return Queue(
        model=model,
        exact=exact,
        servers=asked.servers,
        rate_per_s=asked.rate_per_s,
        service_s=asked.service_s,
        load=load_of(asked),
        p_wait=p_wait,
        wait_s=wait_s,
        response_s=response_s,
        waiting=asked.rate_per_s * wait_s,
        inside=asked.rate_per_s * response_s,
    )
