"""The words of scheduling: a job as a policy sees it, what it knows of the slots, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Job:
    """A job that waits. How long it will really take is not here.

    `predicted_s` by kind of slot; empty where nothing is known, and it may then run on any. A kind that is missing beside others cannot
    run it. `priority`: the lower number goes first. `replicas` are started together or not at all, on slots of one kind.
    `due_s` is on the clock of `submit_s`, None where nothing is promised. `tenant` is who shares the slots fairly with others.
    """

    number: int
    submit_s: float
    predicted_s: Mapping[str, float] = field(default_factory=dict)
    class_: str = ""
    priority: int = 0
    replicas: int = 1
    due_s: float | None = None
    tenant: str = ""

    @property
    def shortest_s(self) -> float:
        """The prediction where it runs fastest; infinite where there is none."""
        return min(self.predicted_s.values(), default=inf)


@dataclass(frozen=True, slots=True)
class Start:
    """Start this job now, on slots of this kind."""

    number: int
    kind: str


@dataclass(slots=True)
class State:
    """What is known of the slots, for a policy to read and never to change. All by kind of slot unless said otherwise.

    `running` is the number of slots that a tenant holds, `served_s` the slot-seconds that it has had (`scheduler.Shares`), both by tenant.
    `ends_s` are the predicted ends of what runs, ascending, once a slot. `demand_s`, by class of jobs and kind of slot, sums the predicted
    slot-seconds of all jobs that came, were each run there.
    """

    slots: Mapping[str, int]
    free: dict[str, int]
    now_s: float = 0.0
    running: dict[str, int] = field(default_factory=dict)
    served_s: dict[str, float] = field(default_factory=dict)
    ends_s: dict[str, list[float]] = field(default_factory=dict)
    demand_s: dict[str, dict[str, float]] = field(default_factory=dict)

    def kinds(self, job: Job) -> Sequence[str]:
        """The kinds of slots that could run a job, if they were all free."""
        return [kind for kind, many in self.slots.items() if many >= job.replicas and (not job.predicted_s or kind in job.predicted_s)]

    def fastest(self, job: Job) -> str | None:
        """The kind that runs a job fastest of those that are free now; None where none is."""
        free = [kind for kind in self.kinds(job) if self.free[kind] >= job.replicas]
        return min(free, key=lambda kind: job.predicted_s.get(kind, 0.0), default=None)
