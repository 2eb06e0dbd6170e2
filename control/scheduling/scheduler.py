"""A queue under a policy: takes arrivals and ends, returns starts.

The simulator and the real dispatcher run this very code.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from control.errors import Refused

from . import policies

if TYPE_CHECKING:
    from .policies import Job


class Scheduler:
    """A policy at work on equal slots; times are seconds on a monotonic clock.

    A tenant that comes with nothing waiting or running is put level with the least served of those
    that have: time away earns no credit, as Linux's fair scheduler places a task that wakes.
    """

    def __init__(self, policy: str, slots: int) -> None:
        """Start with all slots free. Raises: UnknownName."""
        self._policy, self.slots, self.free = policies.load(policy), slots, slots
        self._queues: dict[str, list[tuple[tuple[float, float], int, Job]]] = {}
        self._running: dict[int, Job] = {}
        self._lost, self._at_s = 0, 0.0
        # By tenant: slots held now, slot-seconds held so far, and jobs that wait or run.
        self._held: dict[str, int] = {}
        self._served_s: dict[str, float] = {}
        self._present: dict[str, int] = {}

    def submit(self, job: Job, now_s: float) -> None:
        """Add a job to the queue. Raises: Refused, if it needs more slots than there are."""
        if job.replicas > self.slots:
            raise Refused(
                f"Job {job.number} needs {job.replicas} slots at once; there are {self.slots}."
            )
        self._until(now_s)
        tenant = job.tenant
        if not self._present.get(tenant):
            others = [self._served_s[name] for name, jobs in self._present.items() if jobs]
            self._served_s[tenant] = max(self._served_s.get(tenant, 0.0), min(others, default=0.0))
        self._present[tenant] = self._present.get(tenant, 0) + 1
        self._held.setdefault(tenant, 0)
        queue = self._queues.setdefault(tenant if self._policy.fair else "", [])
        heappush(queue, (self._policy.rank(job), job.number, job))

    def end(self, number: int, now_s: float) -> None:
        """Free a job's slots, however it ended."""
        self._until(now_s)
        job = self._running.pop(number)
        self._held[job.tenant] -= job.replicas
        self._present[job.tenant] -= 1
        self.free += job.replicas

    def away(self, slots: int) -> None:
        """Set how many slots are lost; busy ones leave with their jobs."""
        self.free += self._lost - slots
        self._lost = slots

    def starts(self, now_s: float) -> list[int]:
        """Return the numbers of the jobs to start now, in order, and take their slots."""
        self._until(now_s)
        started = []
        while (queue := self._next()) and queue[0][2].replicas <= self.free:
            job = heappop(queue)[2]
            self._running[job.number] = job
            self._held[job.tenant] += job.replicas
            self.free -= job.replicas
            started.append(job.number)
        return started

    def _next(self) -> list[tuple[tuple[float, float], int, Job]]:
        return min(filter(None, self._queues.values()), key=self._turn, default=[])

    def _turn(self, queue: list[tuple[tuple[float, float], int, Job]]) -> tuple[float, ...]:
        job = queue[0][2]
        return self._held[job.tenant], self._served_s[job.tenant], job.submit_s, job.number

    def _until(self, now_s: float) -> None:
        passed_s, self._at_s = now_s - self._at_s, now_s
        for tenant, slots in self._held.items():
            self._served_s[tenant] += slots * passed_s
