"""Scheduling policies by name: the order of waiting jobs, without their true durations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from control.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Job:
    """A waiting job; unknown times are None.

    `priority`: the lower number goes first. `replicas` start together or not at all. `due_s` is on
    the clock of `submit_s`. `tenant` shares the slots fairly with others.
    """

    number: int
    submit_s: float
    predicted_s: float | None = None
    class_: str = ""
    priority: int = 0
    replicas: int = 1
    due_s: float | None = None
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """The job with the smallest `rank` is next; if it does not fit, nobody overtakes it.

    `fair`: of all tenants' next jobs, that of the tenant who holds the fewest slots is next, then
    of the one who was served the least.
    """

    description: str
    rank: Callable[[Job], tuple[float, float]]
    fair: bool = False


def names() -> tuple[str, ...]:
    return tuple(sorted(POLICIES))


def load(name: str) -> Policy:
    """Return a policy by name. Raises: UnknownName, with the available names."""
    if name not in POLICIES:
        raise UnknownName(f"No policy {name!r}. Available: {', '.join(names())}.")
    return POLICIES[name]


def _first_come(job: Job) -> tuple[float, float]:
    return job.submit_s, 0.0


def _shortest(job: Job) -> tuple[float, float]:
    return inf if job.predicted_s is None else job.predicted_s, job.submit_s


def _least_slack(job: Job) -> tuple[float, float]:
    """Rank by the predicted latest start; jobs without a due time come last."""
    latest_s = inf if job.due_s is None else job.due_s - (job.predicted_s or 0.0)
    return latest_s, job.submit_s


POLICIES = {
    "fair_share": Policy("the tenant that holds the fewest slots first", _first_come, fair=True),
    "fifo": Policy("first come, first served", _first_come),
    "least_slack": Policy("the least slack before it is due first", _least_slack),
    "priority": Policy(
        "the lowest priority number first", lambda job: (job.priority, job.submit_s)
    ),
    "sjf": Policy("the shortest predicted time first", _shortest),
}
