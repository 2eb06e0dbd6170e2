"""Figures of one stream of jobs, of the jobs shared with its fault-free twin, and of its faults."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .records import Attempt, Fault, JobRun, Stream

HITS = ("kill", "node")  # which hit a job or a node, or nothing at all
# a fault is recorded when it has struck; what it hit may have ended just before that, by a clock
# read earlier
SLACK_S = 0.5


class Totals(NamedTuple):
    """The figures of one stream.

    `lost_s` is the time of attempts that no checkpoint kept, and all of those jobs that never got
    done; `useful` is the share of all attempts' time left without it and without what checkpoints
    took; `available` is the share of the slots' time in which their node was there.
    """

    useful: float | None
    available: float
    lost_s: float | None


def totals(stream: Stream) -> Totals:
    times = held(stream)
    done = {job.number for job in stream.jobs if job.done}
    held_s = None if times is None else math.fsum(times.values())
    lost_s = None if times is None else _lost_s(stream, times, done)
    cost_s = math.fsum(attempt.cost_s or 0.0 for attempt in stream.attempts if attempt.job in done)
    useful = (
        None
        if held_s is None or lost_s is None or held_s <= 0
        else max(0.0, held_s - lost_s - cost_s) / held_s
    )
    begin_s, end_s = _span(stream.jobs)
    away = [
        (max(begin_s, lost.at_s), end_s if lost.back_s is None else min(end_s, lost.back_s))
        for lost in stream.outages
    ]
    down_s = math.fsum(max(0.0, until - at) for at, until in away)
    whole_s = stream.nodes * (end_s - begin_s)
    return Totals(useful, 1 - down_s / whole_s if whole_s > 0 else 1.0, lost_s)


def held(stream: Stream) -> dict[int, float] | None:
    """Return the time in attempts, by job; None if an end is not known, or the clock went back."""
    held_s: dict[int, float] = {}
    for attempt in stream.attempts:
        if attempt.begin_s is None:
            continue  # it never began
        if attempt.end_s is None and attempt.outcome in {"never started", "never ended"}:
            continue  # nobody knows until when
        if attempt.end_s is None or attempt.end_s < attempt.begin_s:
            return None
        held_s[attempt.job] = held_s.get(attempt.job, 0.0) + attempt.end_s - attempt.begin_s
    return held_s if stream.attempts else None


def _lost_s(stream: Stream, times: Mapping[int, float], done: set[int]) -> float | None:
    """Return the time without a result; None if a failed attempt had checkpoints.

    That of jobs never done, and of done jobs as recorded, or of their failed attempts.
    """
    recorded = {
        job.number: job.lost_s for job in stream.jobs if job.done and job.lost_s is not None
    }
    failed = [
        one
        for one in stream.attempts
        if one.outcome != "done" and one.job in done and one.job not in recorded
    ]
    if any(attempt.checkpoints for attempt in failed):
        return None  # what its last checkpoint kept is not known
    never_done = (seconds for job, seconds in times.items() if job not in done)
    return math.fsum(
        (
            *never_done,
            *recorded.values(),
            *((attempt.end_s or 0.0) - (attempt.begin_s or 0.0) for attempt in failed),
        )
    )


def _span(jobs: Sequence[JobRun]) -> tuple[float, float]:
    begins = [job.submit_s for job in jobs if job.submit_s is not None]
    ends = [job.end_s for job in jobs if job.end_s is not None]
    return (min(begins), max(*ends, min(begins))) if begins and ends else (0.0, 0.0)


def shared(stream: Stream, twin: Stream) -> list[tuple[JobRun, JobRun]]:
    """Return the jobs that are the same in both: by number, class, size and planned submission."""
    others = {job.number: job for job in twin.jobs}
    pairs = [(job, others[job.number]) for job in stream.jobs if job.number in others]
    return [
        (job, other)
        for job, other in pairs
        if job.class_ == other.class_
        and _same(job.work, other.work)
        and _same(job.planned_s, other.planned_s)
    ]


def _same(value: float | None, other: float | None) -> bool:
    # To the microsecond: a plan that was written and read again is the same plan.
    return (
        value == other
        if value is None or other is None
        else math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-6)
    )


def responses(pairs: Iterable[tuple[JobRun, JobRun]]) -> tuple[float, float] | None:
    """Return the mean responses of the jobs that both finished, the other stream's first."""
    known = [
        (other.response_s, job.response_s)
        for job, other in pairs
        if job.response_s is not None and other.response_s is not None
    ]
    if not known:
        return None
    before, after = (
        math.fsum(value or 0.0 for value in values) / len(known)
        for values in zip(*known, strict=True)
    )
    return (before, after) if min(before, after) > 0 else None


def goodput_per_s(jobs: Sequence[JobRun]) -> float | None:
    """Return work (jobs, if any work is unknown) per second from first submission to last end."""
    begin_s, end_s = _span(jobs)
    known = all(job.work is not None for job in jobs)
    got = math.fsum((job.work or 0.0) if known else 1.0 for job in jobs if job.done)
    return got / (end_s - begin_s) if end_s > begin_s and got > 0 else None


class After(NamedTuple):
    """One fault, which ended `hit` attempts.

    `restart_s` is the longest time from the fault to the next attempt of a job that it hit.
    `recovery_s` is the time from the fault until it is over, the jobs that it hit are done, and as
    many jobs are done as were by then in the stream without it. None is unknown or never.
    """

    fault: Fault
    hit: int
    restart_s: float | None
    recovery_s: float | None


def after(stream: Stream, twin: Stream | None) -> list[After]:
    """Follow up each fault that had an effect, in time order; `twin` ran the jobs without any."""
    faults = [
        (fault, _hit(stream, fault))
        for fault in sorted(stream.faults, key=lambda fault: fault.at_s)
    ]
    # A kill may come when nothing runs, or too late.
    struck = [
        (fault, hit)
        for fault, hit in faults
        if fault.name not in HITS or hit or (fault.node is not None and fault.job is None)
    ]
    following = [fault.at_s for fault, _ in struck[1:]] + [math.inf] * bool(struck)
    result = []
    for (fault, hit), next_s in zip(struck, following, strict=True):
        again = []
        for ended in hit:
            later = [
                one.begin_s
                for one in stream.attempts
                if one.job == ended.job and one.number > ended.number and one.begin_s is not None
            ]
            if later:
                again.append(min(later) - fault.at_s)
        recovery_s = None if twin is None else _caught_up(stream, twin, fault, hit, next_s)
        result.append(After(fault, len(hit), max(again, default=None), recovery_s))
    return result


def _hit(stream: Stream, fault: Fault) -> list[Attempt]:
    if fault.job is None and fault.node is None:
        return []
    begun = [
        attempt
        for attempt in stream.attempts
        if attempt.begin_s is not None and attempt.begin_s < fault.at_s
    ]
    # Of each job the attempt that ran then, not one that ended within the slack before it.
    latest = {attempt.job: attempt for attempt in sorted(begun, key=lambda attempt: attempt.number)}
    return [
        last
        for last in latest.values()
        if last.outcome in {"killed", "failed"}
        and last.end_s is not None
        and fault.at_s <= last.end_s + SLACK_S
        and (last.job == fault.job if fault.job is not None else last.node == fault.node)
    ]


def _caught_up(
    stream: Stream, twin: Stream, fault: Fault, hit: Sequence[Attempt], next_s: float
) -> float | None:
    both = shared(stream, twin)
    pairs = [(job, other) for job, other in both if job.done and other.done]
    ends_here = sorted(job.end_s for job, _ in pairs if job.end_s is not None)
    others = sorted(other.end_s for _, other in pairs if other.end_s is not None)
    ends = {job.number: job.end_s for job in stream.jobs if job.done and job.end_s is not None}
    given_up = any(attempt.job not in ends for attempt in hit)
    closed = all(job.planned_s is None for job, _ in pairs)  # its next job comes when one ends
    if given_up or closed or (fault.until_s is None and not hit):
        return None
    # What only this stream had to do is the fault's: a flood is over when its own jobs are.
    met = {job.number for job, _ in both}
    of_fault = [job.end_s for job in stream.jobs if job.number not in met and job.end_s is not None]
    over_s = max(
        [
            fault.at_s,
            fault.until_s or fault.at_s,
            *(ends[attempt.job] for attempt in hit),
            *of_fault,
        ]
    )
    for moment in sorted({over_s, *(moment for moment in ends_here + others if moment > over_s)}):
        if moment > next_s:  # another fault came first
            return None
        if bisect_right(others, moment) <= bisect_right(ends_here, moment):
            return moment - fault.at_s
    return None
