"""By priority, the lower number first, and first come, first served among equals. What runs is not interrupted.

Waits of M/M/1 and M/G/1 under it are Cobham's (Operations Research 2, 1954).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from control.scheduling.terms import Job

DESCRIPTION = "the lowest priority number first"


def rank(job: Job) -> tuple[int, float]:
    """By priority, then by submission."""
    return job.priority, job.submit_s
