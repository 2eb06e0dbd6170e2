"""Streams of jobs on a cluster: queues, schedulers, scaling, faults, and what each predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.terms import Run


def session_text(run: Run, *, color: bool) -> str | None:
    """Return what a session that ran streams of jobs, or lost packets, ends with; None for others."""
    from .records import loses_packets, tells_of_jobs

    if tells_of_jobs(run) or loses_packets(run):
        from .streams import gather, render

        if streams := gather(run):
            return render(run, streams, color=color)
    return None
