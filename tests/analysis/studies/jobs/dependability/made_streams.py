"""Streams written down by hand, for arithmetic that can be followed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.studies.jobs.dependability.terms import Attempt, Job, Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.studies.jobs.dependability.terms import Fault, Outage


def job(number: int, submit_s: float, end_s: float | None, outcome: str = "done", lost_s: float | None = 0.0) -> Job:
    return Job(number, "small", "", submit_s, 1.0, submit_s, end_s, outcome, lost_s)


def attempt(  # noqa: PLR0913, PLR0917  # what an attempt is
    of: int, number: int, begin_s: float, end_s: float | None, outcome: str = "done", node: str = "a"
) -> Attempt:
    return Attempt(of, number, node, begin_s, end_s, outcome, 0, 0.0)


def stream(  # noqa: PLR0913  # what a stream is made of
    jobs: Sequence[Job],
    attempts: Sequence[Attempt] = (),
    faults: Sequence[Fault] = (),
    outages: Sequence[Outage] = (),
    *,
    fault: str | None = None,
    nodes: int = 1,
    block: int = 1,
) -> Stream:
    """A stream of two slots; without attempts each job has one, from its submission to its end."""
    tried = tuple(attempts) or tuple(Attempt(one.number, 1, "a", one.submit_s, one.end_s, one.outcome, 0, 0.0) for one in jobs)
    made = Stream(f"b{block}", ("r", block), "stock", "job_stream", fault, {}, 0.0, 0, max(2, nodes), nodes, tuple(jobs), tried)
    return replace(made, faults=tuple(faults), outages=tuple(outages))
