"""What each tenant has had of the slots, in slot-seconds, running jobs included up to now.

A tenant that comes with nothing waiting or running is put level with the least served of those that have: time away earns no credit, as
Linux's fair scheduler places a task that wakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .terms import Job


class Shares:
    """Counts by tenant; `running` are slots held, `served_s` is brought up to date by `until`."""

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        self.served_s: dict[str, float] = {}
        self._present: dict[str, int] = {}
        self._at_s = 0.0

    def until(self, now_s: float) -> None:
        """Count the time that has passed."""
        passed_s, self._at_s = now_s - self._at_s, now_s
        for tenant, slots in self.running.items():
            if slots:
                self.served_s[tenant] += slots * passed_s

    def came(self, job: Job) -> None:
        """A job of a tenant waits."""
        others = [self.served_s[tenant] for tenant, jobs in self._present.items() if jobs]
        if not self._present.get(job.tenant):
            self.served_s[job.tenant] = max(self.served_s.get(job.tenant, 0.0), min(others, default=0.0))
        self._present[job.tenant] = self._present.get(job.tenant, 0) + 1

    def started(self, job: Job) -> None:
        """It holds slots."""
        self.running[job.tenant] = self.running.get(job.tenant, 0) + job.replicas

    def left(self, job: Job) -> None:
        """It gave them back."""
        self.running[job.tenant] -= job.replicas
        self._present[job.tenant] -= 1
