"""A scheduler of a queue under a policy: takes arrivals and ends, returns starts.

The simulator and the real dispatcher run this very code.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf
from typing import Any

from control.errors import Refused

from . import policies
from .policies import Job, Start, State


class Scheduler:
    """A policy at work on slots of several kinds; times are seconds on a monotonic clock."""

    def __init__(self, policy: str, slots: Mapping[str, int]) -> None:
        """Start with all slots free. Raises: UnknownName; Refused, if there are no slots."""
        if not slots or min(slots.values()) < 1:
            raise Refused(
                f"slots: {dict(slots)!r}: at least one kind of slot is needed, each with at least "
                "one slot."
            )
        chosen = policies.load(policy)
        self._rank = chosen.rank
        self._choose = chosen.choose
        self._shares = Shares()
        self._heap: list[tuple[Any, int]] = []
        self._waiting: dict[int, Job] = {}
        self._running: dict[int, tuple[Job, str, float]] = {}
        self._away = dict.fromkeys(slots, 0)
        ends_s: dict[str, list[float]] = {kind: [] for kind in slots}
        self.state = State(
            dict(slots),
            dict(slots),
            running=self._shares.running,
            served_s=self._shares.served_s,
            ends_s=ends_s,
        )

    def submit(self, job: Job, now_s: float) -> None:
        """Add a job to the queue.

        Raises: Refused, where it is there already, or would never have the slots it needs.
        """
        if job.number in self._waiting or job.number in self._running:
            raise Refused(
                f"Job {job.number} already waits or runs; its number is free once it has ended."
            )
        if not self.state.kinds(job):
            raise Refused(
                f"Job {job.number} needs {job.replicas} slots{self._on(job)} at once; there are "
                f"{_described(self.state.slots)}."
            )
        self._at(now_s)
        self._shares.came(job)
        self._waiting[job.number] = job
        demand_s = self.state.demand_s.setdefault(job.class_, dict.fromkeys(self.state.slots, 0.0))
        otherwise_s = inf if job.predicted_s else 1.0
        for kind in self.state.slots:
            demand_s[kind] += job.predicted_s.get(kind, otherwise_s) * job.replicas
        if self._rank is not None:
            heappush(self._heap, (self._rank(job), job.number))

    def end(self, number: int, now_s: float) -> None:
        """Free a job's slots, however it ended. Raises: Refused, if it is not running."""
        if number not in self._running:
            raise Refused(f"Job {number} is not running, so it cannot have ended.")
        self._at(now_s)
        job, kind, end_s = self._running.pop(number)
        self._shares.left(job)
        self.state.free[kind] += job.replicas
        ends_s = self.state.ends_s[kind]
        at = bisect_left(ends_s, end_s)
        del ends_s[at : at + job.replicas]

    def away(self, slots: Mapping[str, int]) -> None:
        """Set how many slots of each kind are lost; busy ones leave with their jobs.

        Raises: Refused, if there are not as many.
        """
        for kind, many in slots.items():
            if not 0 <= many <= self.state.slots.get(kind, -1):
                raise Refused(
                    f"{many} slots of {kind} cannot be away; there are "
                    f"{_described(self.state.slots)}."
                )
            self.state.free[kind] += self._away[kind] - many
            self._away[kind] = many

    def starts(self, now_s: float) -> list[Start]:
        """Return the jobs to start now, in order, and take their slots."""
        self._at(now_s)
        result = []
        while (start := self._next()) is not None:
            self._take(start)
            result.append(start)
        return result

    def _next(self) -> Start | None:
        if not self._waiting:
            return None
        if self._choose is not None:
            chosen: Start | None = self._choose(self._waiting.values(), self.state)
            return chosen
        number = self._heap[0][1]
        kind = self.state.fastest(self._waiting[number])
        if kind is None:
            return None
        heappop(self._heap)
        return Start(number, kind)

    def _take(self, start: Start) -> None:
        job = self._waiting.pop(start.number)
        self._shares.started(job)
        self.state.free[start.kind] -= job.replicas
        end_s = self.state.now_s + job.predicted_s.get(start.kind, inf)
        for _ in range(job.replicas):
            insort(self.state.ends_s[start.kind], end_s)
        self._running[start.number] = job, start.kind, end_s

    def _at(self, now_s: float) -> None:
        if now_s < self.state.now_s:
            raise Refused(f"The clock went back, from {self.state.now_s} s to {now_s} s.")
        self._shares.until(now_s)
        self.state.now_s = now_s

    def _on(self, job: Job) -> str:
        return f" of {' or '.join(job.predicted_s)}" if job.predicted_s else ""


class Shares:
    """Each tenant's use of the slots: `running` slots now, `served_s` slot-seconds.

    `until` brings them up to date.

    A tenant that comes with nothing waiting or running is put level with the least served of those
    that have: time away earns no credit, as Linux's fair scheduler places a task that wakes.
    """

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        self.served_s: dict[str, float] = {}
        self._present: dict[str, int] = {}
        self._at_s = 0.0

    def until(self, now_s: float) -> None:
        passed_s, self._at_s = now_s - self._at_s, now_s
        for tenant, slots in self.running.items():
            if slots:
                self.served_s[tenant] += slots * passed_s

    def came(self, job: Job) -> None:
        others = [self.served_s[tenant] for tenant, jobs in self._present.items() if jobs]
        if not self._present.get(job.tenant):
            self.served_s[job.tenant] = max(
                self.served_s.get(job.tenant, 0.0), min(others, default=0.0)
            )
        self._present[job.tenant] = self._present.get(job.tenant, 0) + 1

    def started(self, job: Job) -> None:
        self.running[job.tenant] = self.running.get(job.tenant, 0) + job.replicas

    def left(self, job: Job) -> None:
        self.running[job.tenant] -= job.replicas
        self._present[job.tenant] -= 1


def _described(slots: Mapping[str, int]) -> str:
    return ", ".join(f"{many} of {kind}" for kind, many in slots.items())
