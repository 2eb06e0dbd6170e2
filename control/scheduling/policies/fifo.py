"""First come, first served: what all others are measured against."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from control.scheduling.terms import Job

DESCRIPTION = "first come, first served"


def rank(job: Job) -> tuple[float]:
    """By submission."""
    return (job.submit_s,)
