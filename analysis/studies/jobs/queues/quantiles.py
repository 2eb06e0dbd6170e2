"""What share of jobs waits or stays no longer than how long. Exact for M/M/c; elsewhere with an exponential tail of the same mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scipy.optimize import brentq

from analysis.terms import Refused

if TYPE_CHECKING:
    from .terms import Queue


def wait_quantile(queue: Queue, share: float) -> float:
    """Time that so large a share of jobs waits at most, seconds: (W_q/C)·ln(C/(1 - q)), 0 for those that do not wait.

    Exact for M/M/c, an approximation for the others (Allen 1990).
    Raises: Refused, for a share that is none, and for queues that turn jobs away (`finite.wait_quantile` is theirs).
    """
    _must_be_open(queue)
    _must_be_share(share)
    if queue.p_wait <= 1 - share:
        return 0.0
    return queue.wait_s / queue.p_wait * math.log(queue.p_wait / (1 - share))


def wait_within(queue: Queue, time_s: float) -> float:
    """Share of jobs that wait no longer than so many seconds, P(W ≤ t) = 1 - C·e^(-t·C/W_q): what `wait_quantile` asks the other way round.

    Raises: Refused, for a time that is none, and for queues that turn jobs away (`finite.wait_within` is theirs).
    """
    must_be_time(time_s)
    _must_be_open(queue)
    return 1 - queue.p_wait * math.exp(-time_s * queue.p_wait / queue.wait_s) if queue.wait_s else 1.0


def must_be_time(time_s: float) -> None:
    """Check a time to wait. Raises: Refused."""
    if not 0 <= time_s < math.inf:
        raise Refused(f"a wait of {time_s:g} s: it is a number from 0.")


def response_quantile(queue: Queue, share: float) -> float:
    """Time that so large a share of jobs is there at most, seconds, service included; exact for M/M/c, whose it alone answers.

    A response is a service, and with probability C an exponential wait before it: P(R > t) = e^(-μt) + C·μ·(e^(-θt) - e^(-μt))/(μ - θ),
    θ = cμ - λ. With one server θ = μ(1 - U) and C = U, and it is exponential.
    Raises: Refused.
    """
    _must_be_open(queue)
    _must_be_share(share)
    if not queue.model.startswith("M/M/"):
        raise Refused(f"{queue.model}: percentiles of the response need the whole distribution of service times; only M/M/c has it.")
    if queue.wait_s == 0:
        return -queue.service_s * math.log1p(-share)
    served = 1 / queue.service_s
    leaves = queue.p_wait / queue.wait_s

    def longer(time: float) -> float:
        slow, apart = min(served, leaves), abs(served - leaves)
        both = math.exp(-slow * time) * (-math.expm1(-apart * time) / apart if apart * time > 1e-12 else time)
        return math.exp(-served * time) + queue.p_wait * served * both

    most = 1 / min(served, leaves)
    while longer(most) > 1 - share:
        most *= 2
    return float(brentq(lambda time: longer(time) - (1 - share), 0.0, most, xtol=1e-15 * most, rtol=1e-13))


def _must_be_share(share: float) -> None:
    if not 0 < share < 1:
        raise Refused(f"a share of {share:g}: a percentile lies between 0 and 100 %.")


def _must_be_open(queue: Queue) -> None:
    if queue.loss is not None:
        raise Refused(f"{queue.model} turns jobs away: its waits are no exponential.")
