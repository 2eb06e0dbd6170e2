"""The least slack first: when a job must be started to be done when it is due, as predicted. Those that nothing was promised come last.

The slack itself is that moment less now, so that the order of two jobs does not change while they wait. A job without a prediction is
taken to be short.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from control.scheduling.terms import Job

DESCRIPTION = "the least slack before it is due first"


def rank(job: Job) -> tuple[float, float]:
    """By the latest moment to start, then by submission."""
    if job.due_s is None:
        return inf, job.submit_s
    takes_s = job.shortest_s
    return job.due_s - (takes_s if isfinite(takes_s) else 0.0), job.submit_s
