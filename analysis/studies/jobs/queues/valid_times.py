"""Which times of a stream can be used, as columns, what is wrong with the rest (named, never silently dropped), and Little's law on them.

Over a time that starts and ends empty, the mean number inside is the rate times the mean time inside: an identity whatever the
distributions (Stidham 1974), so that a run that breaks it was recorded wrongly. The number inside is integrated over its jumps, the mean
time is taken job by job: two ways through the same times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analysis.studies.jobs.records import Job, Stream


NAMED = 5


@dataclass(frozen=True, slots=True)
class Columns:
    """The jobs of one stream in the order they were submitted; columns of one length, seconds, NaN where a time is missing or of no use.

    `taken` is when a slot was: at admission, or at the start where nobody admits. Jobs whose clock went backwards keep their submission
    alone. `unfinished`: they never got a slot, or never gave it back. `retried`: by more than one attempt, so that what lies between
    `taken` and `end` is no time in service. `findings` are sentences on what is odd.
    """

    number: np.ndarray
    submit: np.ndarray
    taken: np.ndarray
    end: np.ndarray
    priority: np.ndarray
    unfinished: np.ndarray
    backwards: np.ndarray
    retried: np.ndarray
    findings: tuple[str, ...] = ()


def columns(stream: Stream) -> Columns:
    known = [job for job in stream.jobs if job.submit_s is not None]
    by_number = sorted(known, key=lambda job: job.number)
    jobs = sorted(by_number, key=lambda job: job.submit_s or 0.0)
    number = np.array([job.number for job in jobs], int)
    submit, admit, start, end = (
        np.array([np.nan if (value := getattr(job, name)) is None else value for job in jobs], float)
        for name in ("submit_s", "admit_s", "start_s", "end_s")
    )
    taken = np.where(np.isnan(admit), start, admit)
    backwards = (taken < submit) | (start < taken) | (end < np.where(np.isnan(start), taken, start)) | (end < submit)
    unfinished = (np.isnan(taken) | np.isnan(end)) & ~backwards
    return Columns(
        number=number,
        submit=submit,
        taken=np.where(backwards, np.nan, taken),
        end=np.where(backwards | np.isnan(taken), np.nan, end),
        priority=np.array([np.nan if job.priority is None else job.priority for job in jobs], float),
        unfinished=unfinished,
        backwards=backwards,
        retried=np.array([job.attempts > 1 for job in jobs], bool),
        findings=tuple(_findings(stream, by_number, number, taken, end, backwards))
        if stream.measured
        else tuple(_of_arrivals(stream, by_number)),
    )


def _findings(  # noqa: PLR0913, PLR0917  # what is looked at
    stream: Stream, by_number: list[Job], number: np.ndarray, taken: np.ndarray, end: np.ndarray, backwards: np.ndarray
) -> Iterable[str]:
    yield from _of_arrivals(stream, by_number)
    never_started = number[np.isnan(taken) & np.isnan(end) & ~backwards]
    never_ended = number[~np.isnan(taken) & np.isnan(end) & ~backwards]
    no_start = number[np.isnan(taken) & ~np.isnan(end) & ~backwards]
    if len(never_started):
        yield f"{_jobs(never_started)} never started: how long they wait is not known, and the mean wait is too short by that."
    if len(never_ended):
        yield f"{_jobs(never_ended)} never ended: how long they take is not known, and the mean service time is too short by that."
    if len(no_start):
        yield f"nobody told when {_jobs(no_start)} started, only the end: those times are left out."
    if backwards.any():
        yield (
            f"the clock went backwards in {_jobs(number[backwards])}: admitted, started or ended before what comes first. "
            "Their times are left out, but for when they were submitted; one clock must read all times of a stream."
        )
    for outcome in ("failed", "killed"):
        ended = [job.number for job in by_number if job.outcome == outcome and job.attempts == 1]
        if ended:
            yield f"{_jobs(ended)} {outcome}: the slots they held are counted as service."
    retried = [job.number for job in by_number if job.attempts > 1]
    if retried:
        yield (
            f"{_jobs(retried)} took more than one attempt, and held no slot in between: their time in service is left out, and Little's "
            "law and the slots held are not told."
        )
    wide = [job.number for job in by_number if job.replicas > 1]
    if wide:
        yield f"{_jobs(wide)} took several slots at once, which no formula here has: simulate it."


def _of_arrivals(stream: Stream, by_number: list[Job]) -> Iterable[str]:
    lost = [job.number for job in stream.jobs if job.submit_s is None]
    if lost:
        yield f"nobody told when {_jobs(lost)} came: left out."
    counts: dict[int, int] = {}
    for job in stream.jobs:
        counts[job.number] = counts.get(job.number, 0) + 1
    twice = [number for number, count in counts.items() if count > 1]
    if twice:
        yield f"more than one row of {_jobs(twice)}: each is taken for a job."
    earlier = [
        later.number
        for job, later in pairwise(by_number)
        if job.submit_s is not None and later.submit_s is not None and later.submit_s < job.submit_s
    ]
    if earlier:
        yield f"by the clock {_jobs(earlier)} came before the job of the number before: the clock went backwards, or the numbers."


def _jobs(numbers: Iterable[int]) -> str:
    listed = [int(number) for number in numbers]
    rest = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return f"job{'s' if len(listed) > 1 else ''} {', '.join(map(str, listed[:NAMED]))}{rest}"


@dataclass(frozen=True, slots=True)
class LawPart:
    """N̄ and λ̂·W̄ of one part of the system, and their distance relative to N̄ (0 where both are 0)."""

    part: str
    number: float
    rate_times_time: float
    off: float


@dataclass(frozen=True, slots=True)
class Little:
    """The law over `jobs` jobs from `begin_s` to `end_s`, both moments empty; `busy` is the mean number of slots that were held."""

    begin_s: float
    end_s: float
    jobs: int
    laws: tuple[LawPart, ...]
    busy: float


def little(columns: Columns) -> Little | None:
    """Check Little's law on the longest time from the first submission that ends empty, or None where no such time is known.

    Jobs whose clock went backwards are left out. A job that never ended is there until nobody knows when: what came after it, and what
    was there when it came, has no end that is known to be empty. None too where a job took several attempts: what it held is not told.
    """
    if columns.retried.any():
        return None
    use = ~columns.backwards
    submit, taken, end = columns.submit[use], columns.taken[use], columns.end[use]
    count = _complete(submit, np.where(columns.unfinished[use], np.inf, end))
    if count == 0:
        return None
    submit, taken, end = submit[:count], taken[:count], end[:count]
    begin, last = float(submit.min()), float(end.max())
    if last <= begin:
        return None
    parts = {"in all": (submit, end), "waiting": (submit, taken), "in service": (taken, end)}
    laws = tuple(_law(name, *times, last - begin) for name, times in parts.items())
    return Little(begin, last, count, laws, laws[-1].number)


def most_held(columns: Columns) -> int:
    """How many slots were held at one moment, at most; where one job ends as another takes its slot, that is one."""
    known = ~np.isnan(columns.end) & ~columns.retried
    times = np.concatenate([columns.taken[known], columns.end[known]])
    jumps = np.concatenate([np.ones(known.sum()), -np.ones(known.sum())])
    return int(np.cumsum(jumps[np.lexsort((jumps, times))]).max(initial=0))


def cycles(times: Columns) -> np.ndarray:
    """Number the busy cycles: shape (jobs,), from 0. A cycle begins with a job that finds nobody there.

    Under renewal arrivals what happens in one cycle says nothing of the next (Crane & Iglehart 1975). Behind a job that never ended,
    nothing begins anew.
    """
    end = np.where(times.unfinished, np.inf, np.where(np.isnan(times.end), times.submit, times.end))
    before = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    return np.cumsum(before <= times.submit) - 1


def _complete(submit: np.ndarray, end: np.ndarray) -> int:
    latest = np.maximum.accumulate(end) if len(end) else end
    following = np.concatenate([submit[1:], [np.inf]])
    whole = np.flatnonzero(np.isfinite(latest) & (latest <= following))
    return int(whole[-1]) + 1 if len(whole) else 0


def _law(part: str, begin: np.ndarray, end: np.ndarray, length_s: float) -> LawPart:
    times = np.concatenate([begin, end])
    jumps = np.concatenate([np.ones(len(begin)), -np.ones(len(end))])
    order = np.argsort(times)
    inside = np.cumsum(jumps[order])[:-1]
    number = math.fsum((inside * np.diff(times[order])).tolist()) / length_s
    product = len(begin) / length_s * (math.fsum((end - begin).tolist()) / len(begin))
    off = abs(number - product) / number if number > 0 else abs(product)
    return LawPart(part, number, product, off)
