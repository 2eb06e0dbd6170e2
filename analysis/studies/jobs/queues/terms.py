"""The words of queueing. Times in seconds, rates per second; `scv` is a squared coefficient of variation, variance over mean squared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

OUTCOMES = ("done", "failed", "killed", "never started", "never ended")
CLOSED = "closed"


class Unstable(Refused):
    """As much work comes as can be done, or more: the queue grows without end and has no stationary figure."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job as it was told; None where it never came to that, or it was not told. Times are those of one monotonic clock, as read.

    A slot is taken from `admit_s`, or from `start_s` where nobody admits, to `end_s`; what lies between admission and start is start-up.
    `priority`: the lower goes first. `replicas` is how many slots it takes at once. With more than one of `attempts`, admission and start
    are the first one's and the end is the last one's: between them it held no slot for a while.
    """

    number: int
    submit_s: float | None
    admit_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    outcome: str = ""
    reason: str = ""
    kind: str = ""
    priority: int | None = None
    replicas: int = 1
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Stream:
    """One run of a stream of jobs. `group` names those of equal conditions, which are each other's replicates.

    `slots` is None, and `engine` and `policy` empty, where they were not told. `measured`: it was told when jobs started and ended; a
    trace of arrivals has none of that. Streams that share any of `drawn` had the same jobs; `again` is a copy of the untouched machine's.
    `fault` names what struck it, empty if nothing did.
    """

    name: str
    group: str
    jobs: tuple[Job, ...]
    slots: int | None = None
    engine: str = ""
    policy: str = ""
    arrivals: Mapping[str, object] = field(default_factory=dict)
    measured: bool = True
    drawn: tuple[Hashable, ...] = ()
    again: bool = False
    fault: str = ""

    @property
    def closed(self) -> bool:
        """Whether a job comes when another ends: an open queue's rate and waits are not its."""
        return self.arrivals.get("kind") == CLOSED


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a model of one queue takes: Poisson arrivals have `scv_arrivals` 1, exponential service times `scv_service` 1."""

    rate_per_s: float
    service_s: float
    servers: int = 1
    scv_arrivals: float = 1.0
    scv_service: float = 1.0


@dataclass(frozen=True, slots=True)
class Queue:
    """A stationary queue by a model. `exact`: under the model's own assumptions; otherwise it is an approximation.

    `load` is the share of the servers' time that is asked for, `p_wait` the share of jobs that wait, `waiting` and `inside` are mean
    numbers of jobs in the queue and in all, `rate_per_s` is what is let in. `loss` is the share turned away, None where all are let in.
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
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval and standard error; None of both where they are unknown, `why` then says why."""

    value: float
    low: float | None = None
    high: float | None = None
    se: float | None = None
    why: str = ""
