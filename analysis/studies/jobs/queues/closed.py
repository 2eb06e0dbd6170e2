"""Operational laws, which hold of any system over a time in which what comes leaves again; and closed systems by mean value analysis.

Sources: Denning & Buzen 1978; Lazowska et al. 1984, chapter 3; Reiser & Lavenberg 1980 (exact mean value analysis of one class).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping


def utilisation(rate_per_s: float, service_s: float) -> float:
    """Share of its time a server works: U = X·S. Raises: Refused, above 1: no server works more than always."""
    share = _checked("rate", rate_per_s) * _checked("service time", service_s)
    if share > 1:
        raise Refused(f"{rate_per_s:g} jobs/s of {service_s:g} s each are {share:g} of a server's time; no server does so many.")
    return share


def number(rate_per_s: float, time_s: float) -> float:
    """Little: mean number inside, N = X·R."""
    return _checked("rate", rate_per_s) * _checked("time", time_s)


def time_inside(jobs: float, rate_per_s: float) -> float:
    """Little: mean time inside, R = N/X."""
    return _checked("number of jobs", jobs) / _checked("rate", rate_per_s)


def interactive_rate(users: float, response_s: float, think_s: float) -> float:
    """Jobs a second from users who wait, think and ask again: X = N/(R + Z)."""
    return _checked("number of users", users) / (_checked("response time", response_s) + _checked("time to think", think_s, zero=True))


def interactive_response(users: float, rate_per_s: float, think_s: float) -> float:
    """What such users wait for: R = N/X - Z. Raises: Refused, where they could not have asked so often."""
    response_s = time_inside(users, rate_per_s) - _checked("time to think", think_s, zero=True)
    if response_s < 0:
        raise Refused(f"{users:g} users who think {think_s:g} s cannot ask {rate_per_s:g} times a second.")
    return response_s


def forced_flow(rate_per_s: float, visits: float) -> float:
    """Visits a second at one station: X_k = V_k·X."""
    return _checked("rate", rate_per_s) * _checked("number of visits", visits)


def _checked(name: str, value: float, *, zero: bool = False) -> float:
    if not (0 <= value < math.inf if zero else 0 < value < math.inf):
        raise Refused(f"a {name} of {value:g}: it is a finite number{', 0 or' if zero else ''} above 0.")
    return value


MOST_USERS = 1_000_000


@dataclass(frozen=True, slots=True)
class ClosedSystem:
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


def mva(demands_s: Mapping[str, float], users: int, think_s: float = 0.0) -> ClosedSystem:
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
    if not 1 <= users <= MOST_USERS:
        raise Refused(f"{users} users: it takes 1 to {MOST_USERS}.")
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
