"""Queues with room for so many jobs and no more (M/M/c/K): what comes when it is full is turned away, so that no load is too much.

Source: Kleinrock 1975, section 3.6 and following.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincc

from analysis.terms import Refused

from .open_queues import load_of, must_be_inputs
from .quantiles import must_be_time
from .terms import Queue

if TYPE_CHECKING:
    from collections.abc import Callable

    from .terms import Inputs

LARGEST = 1_000_000


def states(asked: Inputs, room: int) -> np.ndarray:
    """Share of time with 0, 1, … `room` jobs inside, those in service included; shape (room + 1,).

    Raises: Refused, for what is no input, and less room than servers.
    """
    must_be_inputs(asked)
    if not asked.servers <= room <= LARGEST:
        raise Refused(f"room for {room} jobs, those in service included: it is {asked.servers} (the servers) to {LARGEST}.")
    busy = np.minimum(np.arange(1, room + 1), asked.servers)
    logs = np.concatenate([[0.0], np.cumsum(np.log(asked.rate_per_s * asked.service_s / busy))])
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def mmck(asked: Inputs, room: int) -> Queue:
    """M/M/c/K: waits are those of jobs that were let in; `load` is what is asked for, turned away or not. Raises: Refused."""
    shares = states(asked, room)
    counts = np.arange(room + 1)
    loss = float(shares[-1])
    let_in = asked.rate_per_s * (1 - loss)
    inside = float(shares @ counts)
    waiting = float(shares @ np.maximum(counts - asked.servers, 0))
    return Queue(
        model=f"M/M/{asked.servers}/{room}",
        exact=True,
        servers=asked.servers,
        rate_per_s=let_in,
        service_s=asked.service_s,
        load=load_of(asked),
        p_wait=float(shares[asked.servers : room].sum() / (1 - loss)),
        wait_s=waiting / let_in,
        response_s=inside / let_in,
        waiting=waiting,
        inside=inside,
        loss=loss,
    )


def wait_quantile(asked: Inputs, room: int, share: float) -> float:
    """Time that so large a share of the jobs let in wait at most, seconds. Raises: Refused."""
    if not 0 < share < 1:
        raise Refused(f"a share of {share:g}: a percentile lies between 0 and 100 %.")
    longer = _longer(asked, room)
    if longer(0.0) <= 1 - share:
        return 0.0
    most = 2 * room + 40 * math.sqrt(room) + 100
    return float(brentq(lambda time: longer(time) - (1 - share), 0.0, most, xtol=1e-12, rtol=1e-13)) * asked.service_s / asked.servers


def wait_within(asked: Inputs, room: int, time_s: float) -> float:
    """Share of the jobs let in that wait no longer than so many seconds. Raises: Refused."""
    must_be_time(time_s)
    return 1 - _longer(asked, room)(time_s * asked.servers / asked.service_s)


def _longer(asked: Inputs, room: int) -> Callable[[float], float]:
    """Make the share of the jobs let in that wait longer than a time, counted in what a full house needs for one job (s/c).

    Who finds n ≥ c jobs waits for n - c + 1 of them to leave: Erlang distributed with c/s a second.
    """
    found = states(asked, room)[:-1]
    weights, ahead = found[asked.servers :] / found.sum(), np.arange(1, room - asked.servers + 1)
    return lambda time: float(weights @ gammaincc(ahead, time)) if len(ahead) else 0.0
