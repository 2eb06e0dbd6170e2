"""Operational laws: what must hold of any system over any time in which what comes leaves again, whatever its distributions.

Source: Denning & Buzen 1978; Lazowska et al. 1984, chapter 3.
"""

from __future__ import annotations

import math

from analysis.terms import Refused


def utilisation(rate_per_s: float, service_s: float) -> float:
    """Share of its time a server works: U = X·S. Raises: Refused, above 1: no server works more than always."""
    found = _checked("rate", rate_per_s) * _checked("service time", service_s)
    if found > 1:
        raise Refused(f"{rate_per_s:g} jobs/s of {service_s:g} s each are {found:g} of a server's time; no server does so many.")
    return found


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
    found = time_inside(users, rate_per_s) - _checked("time to think", think_s, zero=True)
    if found < 0:
        raise Refused(f"{users:g} users who think {think_s:g} s cannot ask {rate_per_s:g} times a second.")
    return found


def forced_flow(rate_per_s: float, visits: float) -> float:
    """Visits a second at one station: X_k = V_k·X."""
    return _checked("rate", rate_per_s) * _checked("number of visits", visits)


def _checked(name: str, value: float, *, zero: bool = False) -> float:
    if not (0 <= value < math.inf if zero else 0 < value < math.inf):
        raise Refused(f"a {name} of {value:g}: it is a finite number{', 0 or' if zero else ''} above 0.")
    return value
