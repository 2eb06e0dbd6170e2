"""Streams written by hand, for traceable arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.studies.jobs.records import Attempt, Fault, JobRun, Outage, Stream


def job(
    number: int,
    submit_s: float,
    end_s: float | None,
    outcome: str = "done",
    lost_s: float | None = 0.0,
) -> JobRun:
    return JobRun(
        number,
        submit_s,
        end_s=end_s,
        outcome=outcome,
        class_="small",
        planned_s=submit_s,
        work=1.0,
        lost_s=lost_s,
    )


def attempt(
    of: int,
    number: int,
    begin_s: float,
    end_s: float | None,
    outcome: str = "done",
    node: str = "a",
) -> Attempt:
    return Attempt(of, number, node, begin_s, end_s, outcome, 0, 0.0)


def stream(
    jobs: Sequence[JobRun],
    attempts: Sequence[Attempt] = (),
    faults: Sequence[Fault] = (),
    outages: Sequence[Outage] = (),
    *,
    fault: str = "",
    nodes: int = 1,
    block: int = 1,
) -> Stream:
    tried = tuple(attempts) or tuple(
        Attempt(one.number, 1, "a", one.submit_s, one.end_s, one.outcome, 0, 0.0) for one in jobs
    )
    return Stream(
        f"b{block}",
        "job_stream",
        tuple(jobs),
        max(2, nodes),
        fault=fault,
        unit=("r", block),
        workload="job_stream",
        nodes=nodes,
        attempts=tried,
        faults=tuple(faults),
        outages=tuple(outages),
    )
