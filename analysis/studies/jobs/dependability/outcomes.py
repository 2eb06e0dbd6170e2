"""What one stream came to, and what came after each fault.

Useful time, goodput, availability; what two streams share that met the same jobs; when those that a fault hit ran again, and when the
stream had caught up with itself without the fault.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.studies.jobs.records import Attempt, Fault, Job, Stream


@dataclass(frozen=True, slots=True)
class Totals:
    """One stream in a few numbers.

    `outcomes` counts jobs. `held_s` is the time of all attempts, `lost_s` what no checkpoint kept of it, and all of those jobs that never
    got done, `checkpoint_s` what checkpoints took; `useful` is what is left, a share of `held_s`. `available` is the share of the slots'
    time in which their node was there; `alone_down_s` the time in which no node was.
    """

    outcomes: Mapping[str, int]
    held_s: float | None
    lost_s: float | None
    checkpoint_s: float
    useful: float | None
    available: float
    alone_down_s: float


def totals(stream: Stream) -> Totals:
    times = held(stream)
    done = {job.number for job in stream.jobs if job.outcome == "done"}
    held_s = None if times is None else math.fsum(times.values())
    lost_s = None if times is None else _lost_s(stream, times, done)
    kept_s = math.fsum(attempt.cost_s or 0.0 for attempt in stream.attempts if attempt.job in done)
    useful = None if held_s is None or lost_s is None or held_s <= 0 else max(0.0, held_s - lost_s - kept_s) / held_s
    begin_s, end_s = _span(stream.jobs)
    away = [
        (max(begin_s, outage.at_s), end_s if outage.back_s is None else min(end_s, outage.back_s), outage.node) for outage in stream.outages
    ]
    down_s = math.fsum(max(0.0, until - at) for at, until, _ in away)
    length_s = end_s - begin_s
    return Totals(
        outcomes=Counter(job.outcome for job in stream.jobs),
        held_s=held_s,
        lost_s=lost_s,
        checkpoint_s=math.fsum(attempt.cost_s or 0.0 for attempt in stream.attempts),
        useful=useful,
        available=1 - down_s / stream.nodes / length_s if length_s > 0 else 1.0,
        alone_down_s=_all_down_s(away, stream.nodes),
    )


def held(stream: Stream) -> dict[int, float] | None:
    """Time in attempts, by job; None where one that ended does not tell when, or the clock went back."""
    held_s: dict[int, float] = {}
    if not stream.attempts:
        return None
    for attempt in stream.attempts:
        if attempt.begin_s is None:
            continue  # it never began
        if attempt.end_s is None and attempt.outcome in {"never started", "never ended"}:
            continue  # nobody knows until when
        if attempt.end_s is None or attempt.end_s < attempt.begin_s:
            return None
        held_s[attempt.job] = held_s.get(attempt.job, 0.0) + attempt.end_s - attempt.begin_s
    return held_s


def _lost_s(stream: Stream, times: Mapping[int, float], done: set[int]) -> float | None:
    """Time that came to nothing: of jobs that were done what they tell, or their attempts that failed without a checkpoint."""
    lost = [seconds for job, seconds in times.items() if job not in done]
    for job in stream.jobs:
        if job.number not in done:
            continue
        if job.lost_s is not None:
            lost.append(job.lost_s)
            continue
        for attempt in stream.attempts:
            if attempt.job == job.number and attempt.outcome != "done":
                if attempt.checkpoints:
                    return None  # what its last checkpoint kept is not known
                lost.append((attempt.end_s or 0.0) - (attempt.begin_s or 0.0))
    return math.fsum(lost)


def _span(jobs: Sequence[Job]) -> tuple[float, float]:
    begins = [job.submit_s for job in jobs if job.submit_s is not None]
    ends = [job.end_s for job in jobs if job.end_s is not None]
    return (min(begins), max(*ends, min(begins))) if begins and ends else (0.0, 0.0)


def _all_down_s(away: Sequence[tuple[float, float, str]], nodes: int) -> float:
    jumps = sorted([(at, 1) for at, until, _ in away if until > at] + [(until, -1) for at, until, _ in away if until > at])
    lost, since, total = 0, 0.0, 0.0
    for at, step in jumps:
        if lost == nodes:
            total += at - since
        lost, since = lost + step, at
    return total


def shared(stream: Stream, twin: Stream) -> list[tuple[Job, Job]]:
    others = {job.number: job for job in twin.jobs}
    pairs = [(job, others[job.number]) for job in stream.jobs if job.number in others]
    return [
        (first, other)
        for first, other in pairs
        if first.class_ == other.class_ and _same(first.work, other.work) and _same(first.planned_s, other.planned_s)
    ]


def responses(pairs: Iterable[tuple[Job, Job]]) -> tuple[float, float] | None:
    both = [(other.response_s, job.response_s) for job, other in pairs]
    known = [(before, after) for before, after in both if before is not None and after is not None]
    if not known:
        return None
    before, after = (math.fsum(values) / len(known) for values in zip(*known, strict=True))
    return (before, after) if min(before, after) > 0 else None


def goodput_per_s(jobs: Sequence[Job]) -> float | None:
    """Work of the jobs that were done a second from first submission to last end; their number where one tells no work. None for none."""
    begin_s, end_s = _span(jobs)
    done = [job for job in jobs if job.outcome == "done"]
    tells = all(job.work is not None for job in jobs)
    got = math.fsum((job.work or 0.0) if tells else 1.0 for job in done)
    return got / (end_s - begin_s) if end_s > begin_s and got > 0 else None


def _same(value: float | None, other: float | None) -> bool:
    # To the microsecond: a plan that was written and read again is the same plan.
    return value == other if value is None or other is None else math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-6)


NO_TWIN = "no stream without faults met the same jobs"
ANOTHER = "another fault came first"
GIVEN_UP = "a job that it hit was given up"
NOT_YET = "the stream ended first"
LASTED = "it lasted to the stream's end"
CLOSED = "in a closed stream the next job comes when one ends, so that it never catches up"
HITS = ("kill", "node")  # which hit a job or a node, or nothing at all
_SLACK_S = 0.5  # a fault is told when it has struck; what it hit may have ended just before that, by a clock read earlier


@dataclass(frozen=True, slots=True)
class After:
    """One fault. `hit` counts attempts that it ended; `given_up` those of them whose jobs never ran again.

    `restart_s` is the longest time from the fault to the next attempt of a job that it hit, None where none ran again or none was hit.
    `recovery_s` is the time from the fault until it is over, the jobs that it hit are done, and as many jobs are done as were by then in
    the stream without it; None where `why` says so. `behind` is by how many jobs it was behind at most.
    """

    fault: Fault
    hit: int
    given_up: int
    restart_s: float | None
    recovery_s: float | None
    behind: int | None
    why: str = ""


def after(stream: Stream, twin: Stream | None) -> list[After]:
    """Follow up each fault of a stream that hit something, in order of time; `twin` met the same jobs without faults."""
    faults = sorted((fault for fault in stream.faults if _struck(fault, _hit(stream, fault))), key=lambda fault: fault.at_s)
    followed = []
    for at, fault in enumerate(faults):
        hit = _hit(stream, fault)
        starts = [_next_begin(stream, attempt) for attempt in hit]
        again = [begin - fault.at_s for begin in starts if begin is not None]
        following = faults[at + 1].at_s if at + 1 < len(faults) else None
        recovery_s, behind, why = (None, None, NO_TWIN) if twin is None else _caught_up(stream, twin, fault, hit, following)
        followed.append(After(fault, len(hit), len(hit) - len(again), max(again) if again else None, recovery_s, behind, why))
    return followed


def _struck(fault: Fault, hit: Sequence[Attempt]) -> bool:
    """Whether a fault did anything: a kill may come when nothing runs, or too late."""
    return fault.name not in HITS or bool(hit) or (fault.node is not None and fault.job is None)


def _hit(stream: Stream, fault: Fault) -> list[Attempt]:
    if fault.job is None and fault.node is None:
        return []
    begun = [attempt for attempt in stream.attempts if attempt.begin_s is not None and attempt.begin_s < fault.at_s]
    # Of each job the attempt that ran then, not one that ended within the slack before it.
    latest = {last.job: last for last in sorted(begun, key=lambda begun_attempt: begun_attempt.number)}
    return [
        last
        for last in latest.values()
        if last.outcome in {"killed", "failed"}
        and last.end_s is not None
        and fault.at_s <= last.end_s + _SLACK_S
        and (last.job == fault.job if fault.job is not None else last.node == fault.node)
    ]


def _next_begin(stream: Stream, hit: Attempt) -> float | None:
    later = [
        attempt for attempt in stream.attempts if attempt.job == hit.job and attempt.number > hit.number and attempt.begin_s is not None
    ]
    return min((following.begin_s for following in later if following.begin_s is not None), default=None)


def _caught_up(
    stream: Stream, twin: Stream, fault: Fault, hit: Sequence[Attempt], following_s: float | None
) -> tuple[float | None, int | None, str]:
    both = shared(stream, twin)
    pairs = [(first, other) for first, other in both if first.outcome == other.outcome == "done"]
    ends_here = sorted(first.end_s for first, _ in pairs if first.end_s is not None)
    others = sorted(other.end_s for _, other in pairs if other.end_s is not None)
    ends = {job.number: job.end_s for job in stream.jobs if job.outcome == "done" and job.end_s is not None}
    if why := _never(fault, [ends.get(first.job) for first in hit], [first.planned_s for first, _ in pairs]):
        return None, None, why
    # What only this stream had to do is the fault's: a flood is over when its own jobs are.
    met = {first.number for first, _ in both}
    of_fault = [job.end_s for job in stream.jobs if job.number not in met and job.end_s is not None]
    over_s = max([fault.at_s, fault.until_s or fault.at_s, *(ends[first.job] for first in hit), *of_fault])
    moments = sorted({over_s, *(moment for moment in ends_here + others if moment > over_s)})
    behind = [_behind(ends_here, others, moment) for moment in {fault.at_s, *ends_here, *others} if fault.at_s <= moment <= over_s]
    for moment in moments:
        if following_s is not None and moment > following_s:
            return None, None, ANOTHER
        late = _behind(ends_here, others, moment)
        behind.append(late)
        if late <= 0:
            return moment - fault.at_s, max(0, *behind), ""
    return None, None, NOT_YET


def _never(fault: Fault, hit_ends_s: Sequence[float | None], planned_s: Sequence[float | None]) -> str:
    """Why nothing can be said of when it had caught up; "" where something can."""
    if None in hit_ends_s:
        return GIVEN_UP
    if not planned_s:
        return NOT_YET
    if all(moment is None for moment in planned_s):
        return CLOSED
    return LASTED if fault.until_s is None and not hit_ends_s else ""


def _behind(ends_here: Sequence[float], others: Sequence[float], moment: float) -> int:
    return bisect_right(others, moment) - bisect_right(ends_here, moment)
