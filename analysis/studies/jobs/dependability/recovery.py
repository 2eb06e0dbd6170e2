"""What came after each fault: when those it hit ran again, and when the stream had caught up with itself without the fault."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .figures import shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Attempt, Fault, Stream

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
    faults = sorted((one for one in stream.faults if _struck(one, _hit(stream, one))), key=lambda one: one.at_s)
    found = []
    for at, fault in enumerate(faults):
        hit = _hit(stream, fault)
        starts = [_next_begin(stream, one) for one in hit]
        again = [begin - fault.at_s for begin in starts if begin is not None]
        following = faults[at + 1].at_s if at + 1 < len(faults) else None
        recovery_s, behind, why = (None, None, NO_TWIN) if twin is None else _caught_up(stream, twin, fault, hit, following)
        found.append(After(fault, len(hit), len(hit) - len(again), max(again) if again else None, recovery_s, behind, why))
    return found


def _struck(fault: Fault, hit: Sequence[Attempt]) -> bool:
    """Whether a fault did anything: a kill may come when nothing runs, or too late."""
    return fault.name not in HITS or bool(hit) or (fault.node is not None and fault.job is None)


def _hit(stream: Stream, fault: Fault) -> list[Attempt]:
    """The attempts that it ended: of its job or, where it has none, of all on its node."""
    if fault.job is None and fault.node is None:
        return []
    begun = [one for one in stream.attempts if one.begin_s is not None and one.begin_s < fault.at_s]
    # Of each job the attempt that ran then, not one that ended within the slack before it.
    latest = {one.job: one for one in sorted(begun, key=lambda one: one.number)}
    return [
        one
        for one in latest.values()
        if one.outcome in {"killed", "failed"}
        and one.end_s is not None
        and fault.at_s <= one.end_s + _SLACK_S
        and (one.job == fault.job if fault.job is not None else one.node == fault.node)
    ]


def _next_begin(stream: Stream, hit: Attempt) -> float | None:
    later = [one for one in stream.attempts if one.job == hit.job and one.number > hit.number and one.begin_s is not None]
    return min((one.begin_s for one in later if one.begin_s is not None), default=None)


def _caught_up(
    stream: Stream, twin: Stream, fault: Fault, hit: Sequence[Attempt], following_s: float | None
) -> tuple[float | None, int | None, str]:
    both = shared(stream, twin)
    pairs = [(one, other) for one, other in both if one.outcome == other.outcome == "done"]
    mine = sorted(one.end_s for one, _ in pairs if one.end_s is not None)
    others = sorted(other.end_s for _, other in pairs if other.end_s is not None)
    ends = {job.number: job.end_s for job in stream.jobs if job.outcome == "done" and job.end_s is not None}
    if why := _never(fault, [ends.get(one.job) for one in hit], [one.planned_s for one, _ in pairs]):
        return None, None, why
    # What only this stream had to do is the fault's: a flood is over when its own jobs are.
    met = {one.number for one, _ in both}
    own = [job.end_s for job in stream.jobs if job.number not in met and job.end_s is not None]
    over_s = max([fault.at_s, fault.until_s or fault.at_s, *(ends[one.job] for one in hit), *own])
    moments = sorted({over_s, *(moment for moment in mine + others if moment > over_s)})
    behind = [_behind(mine, others, moment) for moment in {fault.at_s, *mine, *others} if fault.at_s <= moment <= over_s]
    for moment in moments:
        if following_s is not None and moment > following_s:
            return None, None, ANOTHER
        late = _behind(mine, others, moment)
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
    if all(one is None for one in planned_s):
        return CLOSED
    return LASTED if fault.until_s is None and not hit_ends_s else ""


def _behind(mine: Sequence[float], others: Sequence[float], moment: float) -> int:
    return bisect_right(others, moment) - bisect_right(mine, moment)
