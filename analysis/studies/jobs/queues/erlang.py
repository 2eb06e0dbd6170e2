"""Erlang's two formulas, by recursions that neither overflow nor cancel."""

from __future__ import annotations

import math
from functools import lru_cache

from analysis.terms import Refused

MOST = 10_000_000  # servers; a recursion over more takes seconds


@lru_cache(maxsize=4096)
def erlang_b(servers: int, offered: float) -> float:
    """Share of jobs turned away where none waits (M/G/c/c): B(k) = a·B(k-1)/(k + a·B(k-1)), B(0) = 1.

    `offered` is the rate times the mean service time, in Erlang.
    Raises: Refused, for what is no number of servers or no load.
    Source: Erlang 1917.
    """
    if not 1 <= servers <= MOST:
        raise Refused(f"{servers} servers: it takes 1 to {MOST}.")
    if not 0 <= offered < math.inf:
        raise Refused(f"an offered load of {offered:g} Erlang: it is a finite number, 0 or above.")
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked


def erlang_c(servers: int, offered: float) -> float:
    """Share of jobs that wait (M/M/c): C = B/(1 - U(1 - B)), U the load a server. With as much work as servers, or more, all wait: 1.

    Raises: Refused, as above.
    """
    blocked = erlang_b(servers, offered)
    load = offered / servers
    return 1.0 if load >= 1 else blocked / (1 - load * (1 - blocked))
