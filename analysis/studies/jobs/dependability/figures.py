"""What one stream came to: useful time, goodput, availability; and what two streams that met the same jobs share."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .terms import Job, Stream


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
    """Count one stream."""
    times = held(stream)
    done = {job.number for job in stream.jobs if job.outcome == "done"}
    held_s = None if times is None else math.fsum(times.values())
    lost_s = None if times is None else _lost_s(stream, times, done)
    kept_s = math.fsum(one.cost_s or 0.0 for one in stream.attempts if one.job in done)
    useful = None if held_s is None or lost_s is None or held_s <= 0 else max(0.0, held_s - lost_s - kept_s) / held_s
    begin_s, end_s = _span(stream.jobs)
    away = [(max(begin_s, one.at_s), end_s if one.back_s is None else min(end_s, one.back_s), one.node) for one in stream.outages]
    down_s = math.fsum(max(0.0, until - at) for at, until, _ in away)
    length_s = end_s - begin_s
    return Totals(
        outcomes=Counter(job.outcome for job in stream.jobs),
        held_s=held_s,
        lost_s=lost_s,
        checkpoint_s=math.fsum(one.cost_s or 0.0 for one in stream.attempts),
        useful=useful,
        available=1 - down_s / stream.nodes / length_s if length_s > 0 else 1.0,
        alone_down_s=_all_down_s(away, stream.nodes),
    )


def held(stream: Stream) -> dict[int, float] | None:
    """Time in attempts, by job; None where one that ended does not tell when, or the clock went back."""
    found: dict[int, float] = {}
    if not stream.attempts:
        return None
    for one in stream.attempts:
        if one.begin_s is None:
            continue  # it never began
        if one.end_s is None and one.outcome in {"never started", "never ended"}:
            continue  # nobody knows until when
        if one.end_s is None or one.end_s < one.begin_s:
            return None
        found[one.job] = found.get(one.job, 0.0) + one.end_s - one.begin_s
    return found


def _lost_s(stream: Stream, times: Mapping[int, float], done: set[int]) -> float | None:
    """Time that came to nothing: of jobs that were done what they tell, or their attempts that failed without a checkpoint."""
    lost = [seconds for job, seconds in times.items() if job not in done]
    for job in stream.jobs:
        if job.number not in done:
            continue
        if job.lost_s is not None:
            lost.append(job.lost_s)
            continue
        for one in stream.attempts:
            if one.job == job.number and one.outcome != "done":
                if one.checkpoints:
                    return None  # what its last checkpoint kept is not known
                lost.append((one.end_s or 0.0) - (one.begin_s or 0.0))
    return math.fsum(lost)


def _span(jobs: Sequence[Job]) -> tuple[float, float]:
    begins = [job.submit_s for job in jobs if job.submit_s is not None]
    ends = [job.end_s for job in jobs if job.end_s is not None]
    return (min(begins), max(*ends, min(begins))) if begins and ends else (0.0, 0.0)


def _all_down_s(away: Sequence[tuple[float, float, str]], nodes: int) -> float:
    """Time in which every node was lost."""
    jumps = sorted([(at, 1) for at, until, _ in away if until > at] + [(until, -1) for at, until, _ in away if until > at])
    lost, since, total = 0, 0.0, 0.0
    for at, step in jumps:
        if lost == nodes:
            total += at - since
        lost, since = lost + step, at
    return total


def shared(stream: Stream, twin: Stream) -> list[tuple[Job, Job]]:
    """The jobs that both met: of one number, class, size and planned submission."""
    others = {job.number: job for job in twin.jobs}
    pairs = [(job, others[job.number]) for job in stream.jobs if job.number in others]
    return [
        (one, other)
        for one, other in pairs
        if one.kind == other.kind and _same(one.work, other.work) and _same(one.planned_s, other.planned_s)
    ]


def responses(pairs: Iterable[tuple[Job, Job]]) -> tuple[float, float] | None:
    """Mean response of jobs that both streams got done: the twin's, and the stream's. None where there are none, or they took no time."""
    both = [(other.response_s, one.response_s) for one, other in pairs]
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


def _same(one: float | None, other: float | None) -> bool:
    # To the microsecond: a plan that was written and read again is the same plan.
    return one == other if one is None or other is None else math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
