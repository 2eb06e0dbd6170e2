"""The shortest job first, by its predicted time; one of which nothing is predicted comes last.

On one slot no order that interrupts nothing has a smaller mean wait, if the predictions hold (Conway, Maxwell and Miller, 1967). Long jobs
pay for it, with the longest waits there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from control.scheduling.terms import Job

DESCRIPTION = "the shortest predicted time first"


def rank(job: Job) -> tuple[float, float]:
    """By predicted time, then by submission."""
    return job.shortest_s, job.submit_s
