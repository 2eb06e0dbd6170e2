"""Closed systems: so many users who ask, wait, think and ask again. Exact mean value analysis of one class (Reiser & Lavenberg 1980)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed system with so many users. By station: mean number of jobs, utilisation, and time there for each of a user's requests.

    `most_per_s` and `least_s` are the bounds no system of these demands can pass: min(1/D_max, N/(D + Z)) and max(D, N·D_max - Z).
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


def mva(demands_s: Mapping[str, float], users: int, think_s: float = 0.0) -> Closed:
    """Mean values by recursion over the users: R_k(n) = D_k·(1 + Q_k(n - 1)), X(n) = n/(Z + ΣR_k), Q_k(n) = X·R_k.

    `demands_s`: what a request asks of each single server, visits times service time. Exact for exponential service in the order of coming,
    and for any service that is shared by all there.
    Raises: Refused.
    """
    if not demands_s:
        raise Refused("no station: each has a name and a demand in seconds.")
    for name, demand in demands_s.items():
        if not 0 < demand < math.inf:
            raise Refused(f"station {name}: a demand of {demand:g} s; it is a finite number above 0.")
    if not 1 <= users <= MOST:
        raise Refused(f"{users} users: it takes 1 to {MOST}.")
    if not 0 <= think_s < math.inf:
        raise Refused(f"a time to think of {think_s:g} s: it is a finite number, 0 or above.")
    jobs = dict.fromkeys(demands_s, 0.0)
    times: dict[str, float] = {}
    rate = 0.0
    for count in range(1, users + 1):
        times = {name: demand * (1 + jobs[name]) for name, demand in demands_s.items()}
        rate = count / (think_s + math.fsum(times.values()))
        jobs = {name: rate * time for name, time in times.items()}
    whole, longest = math.fsum(demands_s.values()), max(demands_s.values())
    return Closed(
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
