"""Little's law on a run, exact: over a time that starts and ends empty, the mean number inside is the rate times the mean time inside.

It is an identity whatever the distributions (Stidham 1974), so that a run that breaks it was recorded wrongly. The number inside is
integrated over its jumps, the mean time is taken job by job: two ways through the same times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .sound import Columns


@dataclass(frozen=True, slots=True)
class Law:
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
    laws: tuple[Law, ...]
    busy: float


def little(found: Columns) -> Little | None:
    """Check Little's law on the longest time from the first submission that ends empty, or None where no such time is known.

    Jobs whose clock went backwards are left out. A job that never ended is there until nobody knows when: what came after it, and what
    was there when it came, has no end that is known to be empty. None too where a job took several attempts: what it held is not told.
    """
    if found.retried.any():
        return None
    use = ~found.backwards
    submit, taken, end = found.submit[use], found.taken[use], found.end[use]
    count = _complete(submit, np.where(found.unfinished[use], np.inf, end))
    if count == 0:
        return None
    submit, taken, end = submit[:count], taken[:count], end[:count]
    begin, last = float(submit.min()), float(end.max())
    if last <= begin:
        return None
    parts = {"in all": (submit, end), "waiting": (submit, taken), "in service": (taken, end)}
    laws = tuple(_law(name, *times, last - begin) for name, times in parts.items())
    return Little(begin, last, count, laws, laws[-1].number)


def most_held(found: Columns) -> int:
    """How many slots were held at one moment, at most; where one job ends as another takes its slot, that is one."""
    known = ~np.isnan(found.end) & ~found.retried
    times = np.concatenate([found.taken[known], found.end[known]])
    jumps = np.concatenate([np.ones(known.sum()), -np.ones(known.sum())])
    return int(np.cumsum(jumps[np.lexsort((jumps, times))]).max(initial=0))


def cycles(found: Columns) -> np.ndarray:
    """Number the busy cycles: shape (jobs,), from 0. A cycle begins with a job that finds nobody there.

    Under renewal arrivals what happens in one cycle says nothing of the next (Crane & Iglehart 1975). Behind a job that never ended,
    nothing begins anew.
    """
    end = np.where(found.unfinished, np.inf, np.where(np.isnan(found.end), found.submit, found.end))
    before = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    return np.cumsum(before <= found.submit) - 1


def _complete(submit: np.ndarray, end: np.ndarray) -> int:
    """How many of the first jobs have all left before the next one came, or before nobody knows."""
    latest = np.maximum.accumulate(end) if len(end) else end
    following = np.concatenate([submit[1:], [np.inf]])
    whole = np.flatnonzero(np.isfinite(latest) & (latest <= following))
    return int(whole[-1]) + 1 if len(whole) else 0


def _law(part: str, begin: np.ndarray, end: np.ndarray, length_s: float) -> Law:
    times = np.concatenate([begin, end])
    jumps = np.concatenate([np.ones(len(begin)), -np.ones(len(end))])
    order = np.argsort(times)
    inside = np.cumsum(jumps[order])[:-1]
    number = math.fsum((inside * np.diff(times[order])).tolist()) / length_s
    product = len(begin) / length_s * (math.fsum((end - begin).tolist()) / len(begin))
    off = abs(number - product) / number if number > 0 else abs(product)
    return Law(part, number, product, off)
