"""Usable times of a stream, as columns, named defects of the rest, and Little's law.

Over a time that starts and ends empty, the mean number inside is the rate times the mean time
inside: an identity whatever the distributions (Stidham 1974), so that a run that breaks it was
recorded wrongly. The number inside is integrated over its jumps, the mean time is taken job by job:
two ways through the same times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from control.names import first_few

if TYPE_CHECKING:
    from .records import Stream

NAMED = 5  # numbers of jobs in one sentence
# Of each kind of finding, what is wrong with the jobs that have it; in the order in which they are
# reported.
FINDINGS = {
    "never started": "never started: waits are unknown, so the mean wait is too short.",
    "never ended": "never ended: service times are unknown, so their mean is too short.",
    "no start": "ended without a recorded start: those times are left out.",
    "backwards": (
        "went backwards in time: admitted, started or ended before an earlier event. Those times "
        "are left out, except submissions; one clock must read all times of a stream."
    ),
    "failed": "failed: time in slots counts as service.",
    "killed": "killed: time in slots counts as service.",
    "retried": (
        "took several attempts, and held no slot between them: service times are left out, "
        "and Little's law and the slots held are not reported."
    ),
    "wide": "took several slots at once, which no formula here covers: simulate.",
}


@dataclass(frozen=True, slots=True)
class JobColumns:
    """Jobs of one stream as submitted: columns of equal length (s), NaN if missing or unusable.

    `taken` is the time when a slot was taken: at admission, or at the start without admission. Jobs
    whose clock went backwards keep their submission alone. `unfinished`: never got a slot, or never
    returned it. `retried`: more than one attempt, so the time between `taken` and `end` is not
    service time. `findings` are sentences on irregular jobs.
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

    @property
    def wait(self) -> np.ndarray:
        return np.asarray(self.taken - self.submit)

    @property
    def service(self) -> np.ndarray:
        return np.where(self.retried, np.nan, self.end - self.taken)


def columns(stream: Stream) -> JobColumns:
    jobs = sorted(
        (job for job in stream.jobs if job.submit_s is not None),
        key=lambda job: (job.submit_s or 0.0, job.number),
    )

    def column(name: str) -> np.ndarray:
        return np.array(
            [np.nan if (value := getattr(job, name)) is None else value for job in jobs], float
        )

    submit, start, end, taken = map(column, ("submit_s", "start_s", "end_s", "taken_s"))
    backwards = (
        (taken < submit)
        | (start < taken)
        | (end < np.where(np.isnan(start), taken, start))
        | (end < submit)
    )
    unstarted, unended, attempts = np.isnan(taken), np.isnan(end), column("attempts")
    number = np.array([job.number for job in jobs], int)
    outcome = np.array([job.outcome for job in jobs], str)
    kinds = {
        "never started": unstarted & unended & ~backwards,
        "never ended": ~unstarted & unended & ~backwards,
        "no start": unstarted & ~unended & ~backwards,
        "backwards": backwards,
        **{ending: (outcome == ending) & (attempts == 1) for ending in ("failed", "killed")},
        "retried": attempts > 1,
        "wide": column("replicas") > 1,
    }
    of_service = (
        f"{_jobs(number[mask])} {FINDINGS[kind]}"
        for kind, mask in kinds.items()
        if stream.measured and mask.any()
    )
    return JobColumns(
        number=number,
        submit=submit,
        taken=np.where(backwards, np.nan, taken),
        end=np.where(backwards | unstarted, np.nan, end),
        priority=column("priority"),
        unfinished=(unstarted | unended) & ~backwards,
        backwards=backwards,
        retried=attempts > 1,
        findings=(*_odd_arrivals(stream), *of_service),
    )


def _odd_arrivals(stream: Stream) -> Iterable[str]:
    lost = [job.number for job in stream.jobs if job.submit_s is None]
    if lost:
        yield f"{_jobs(lost)} left out: no recorded submission."
    numbers, counts = np.unique([job.number for job in stream.jobs], return_counts=True)
    if (counts > 1).any():
        yield f"{_jobs(numbers[counts > 1])} in several rows: each counts as a job."
    by_number = sorted(
        ((job.number, job.submit_s) for job in stream.jobs if job.submit_s is not None),
        key=lambda job: job[0],
    )
    earlier = [
        number for (_, before), (number, submit_s) in pairwise(by_number) if submit_s < before
    ]
    if earlier:
        yield (
            f"{_jobs(earlier)} arrived before the job with the preceding number: the clock or the "
            "numbers went backwards."
        )


def _jobs(numbers: Iterable[int]) -> str:
    listed = [str(number) for number in sorted(int(number) for number in numbers)]
    return f"job{'s' if len(listed) > 1 else ''} {first_few(listed, NAMED)}"


@dataclass(frozen=True, slots=True)
class LawPart:
    """N̄ and λ̂·W̄ of one part of the system; their distance relative to N̄ (0 if both are 0)."""

    part: str
    number: float
    rate_times_time: float
    off: float


@dataclass(frozen=True, slots=True)
class Little:
    """Little's law over `jobs` jobs between two empty moments; `busy`: mean slots held."""

    begin_s: float
    end_s: float
    jobs: int
    laws: tuple[LawPart, ...]
    busy: float


def little(columns: JobColumns) -> Little | None:
    """Check Little's law from the first submission to the last known empty moment, else None.

    Jobs whose clock went backwards are left out. A job that never ended stays for an unknown time,
    so no moment after its submission is known to be empty. None, too, if a job took several
    attempts: its slots are not known.
    """
    use = ~columns.backwards
    submit, taken, end = columns.submit[use], columns.taken[use], columns.end[use]
    latest = np.maximum.accumulate(np.where(columns.unfinished[use], np.inf, end))
    empty = np.flatnonzero(np.isfinite(latest) & (latest <= np.append(submit[1:], np.inf)))
    if columns.retried.any() or not len(empty):
        return None
    count = int(empty[-1]) + 1
    submit, taken, end = submit[:count], taken[:count], end[:count]
    begin, last = float(submit.min()), float(end.max())
    if last <= begin:
        return None
    parts = {"in all": (submit, end), "waiting": (submit, taken), "in service": (taken, end)}
    laws = tuple(_law(name, *times, last - begin) for name, times in parts.items())
    return Little(begin, last, count, laws, laws[-1].number)


def _law(part: str, begin: np.ndarray, end: np.ndarray, length_s: float) -> LawPart:
    times, held = inside(begin, end)
    number = math.fsum((held[:-1] * np.diff(times)).tolist()) / length_s
    product = len(begin) / length_s * (math.fsum((end - begin).tolist()) / len(begin))
    return LawPart(
        part, number, product, abs(number - product) / number if number > 0 else abs(product)
    )


def inside(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the moments, ascending, when the number inside changes, and the numbers after them.

    Departures go before arrivals.
    """
    times, jumps = np.concatenate([begin, end]), np.repeat([1.0, -1.0], [len(begin), len(end)])
    order = np.lexsort((jumps, times))
    return times[order], np.cumsum(jumps[order])


def most_held(columns: JobColumns) -> int:
    """Return the most slots held at a time; a slot that changes its job at once counts once."""
    known = ~np.isnan(columns.end) & ~columns.retried
    return int(inside(columns.taken[known], columns.end[known])[1].max(initial=0))


def cycles(times: JobColumns) -> np.ndarray:
    """Assign jobs to busy cycles: shape (jobs,), from 0. A cycle begins in an empty system.

    Under renewal arrivals what happens in one cycle says nothing of the next (Crane and Iglehart
    1975). Behind a job that never ended, nothing begins anew.
    """
    end = np.where(times.unfinished, np.inf, np.where(np.isnan(times.end), times.submit, times.end))
    before = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    return np.cumsum(before <= times.submit) - 1
