"""The words of dependability. Times are seconds since a stream's start; a share is a fraction. None is what was not told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Unit = tuple[str, int]  # run and block: what is replicated


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a job. `begin_s` is its admission, or its start where nobody admits."""

    job: int
    number: int
    node: str | None
    begin_s: float | None
    end_s: float | None
    outcome: str
    checkpoints: int | None = None
    cost_s: float | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a stream. `planned_s`, `work` and `kind` (its class) are what tells whether two streams met the same job.

    `lost_s` is time in attempts whose work no checkpoint kept; `result` the numbers that it gave of itself.
    """

    number: int
    kind: str
    tenant: str
    planned_s: float | None
    work: float | None
    submit_s: float | None
    end_s: float | None
    outcome: str
    lost_s: float | None = None
    lost_work: float | None = None
    result: Mapping[str, float] = field(default_factory=dict)

    @property
    def response_s(self) -> float | None:
        """From submission to the end of the last attempt; None unless it was done, and where the clock went back."""
        if self.outcome != "done" or self.submit_s is None or self.end_s is None or self.end_s < self.submit_s:
            return None
        return self.end_s - self.submit_s


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault as it happened, `until_s` None where it has no end of its own."""

    name: str
    at_s: float
    until_s: float | None = None
    node: str | None = None
    job: int | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """A node that was lost, and when it was back; None if never."""

    node: str
    at_s: float
    back_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """One run of a stream. `unit` is its run and block, in which all under one tweak set met the same jobs.

    `condition` is all that was asked for but faults and what is done against them, stock's copy being stock.

    `asked` are the parameters that were given of the fault (`fault_rate_per_s`), `checkpoint_s` and `retries` what is done against it.
    `classes` are those of its jobs, as told.
    """

    cell: str
    unit: Unit
    tweakset: str
    condition: str
    fault: str | None
    asked: Mapping[str, str]
    checkpoint_s: float
    retries: int
    slots: int
    nodes: int
    jobs: tuple[Job, ...]
    attempts: tuple[Attempt, ...]
    faults: tuple[Fault, ...] = ()
    outages: tuple[Outage, ...] = ()
    classes: tuple[Mapping[str, object], ...] = ()

    @property
    def label(self) -> str:
        """What is done to it and against it, shortly; retries are left out."""
        words = [self.fault or "no fault", *(f"{name.removeprefix('fault_')}={value}" for name, value in self.asked.items())]
        return " ".join(words + [f"checkpoint_s={self.checkpoint_s:g}"] * bool(self.checkpoint_s))
