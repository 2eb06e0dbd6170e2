"""Who held which slot from when to when, attempt by attempt, and how many waited meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.formats.fields import Fields
from analysis.studies.jobs.queues.sound import columns
from analysis.studies.jobs.queues.terms import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .gathered import Told

ROUNDING_S = 1e-9
TIMES = ("admit_s", "start_s", "end_s")


@dataclass(frozen=True, slots=True)
class Held:
    """One attempt in its slots: seconds since the stream's start. `end_s` is None where nobody knows it; `node` is empty where untold."""

    job: int
    kind: str
    begin_s: float
    end_s: float | None
    outcome: str
    node: str = ""
    replicas: int = 1


def attempts(told: Told) -> list[Held]:
    """Answer all attempts of a stream by their begin; where attempts were not told, jobs stand for them. Raises: Unreadable."""
    jobs = {job.number: job for job in told.stream.jobs}
    rows = told.cell.report.get("attempt", ())
    found = []
    for at, row in enumerate(rows):
        part = Fields(row, told.cell.id, f"report.attempt[{at}]")
        job = jobs.get(part.whole("job"))
        begin_s, end_s = _times(part)
        if job is not None and begin_s is not None:
            node = part.optional_text("node") or ""
            found.append(Held(job.number, job.kind, begin_s, end_s, part.one_of("outcome", OUTCOMES), node, job.replicas))
    if not rows:
        for job in jobs.values():
            begin = job.admit_s if job.admit_s is not None else job.start_s
            if begin is not None:
                found.append(Held(job.number, job.kind, begin, job.end_s, job.outcome, replicas=job.replicas))
    return sorted(found, key=lambda one: (one.begin_s, one.job))


def _times(part: Fields) -> tuple[float | None, float | None]:
    numbers = Fields({"row": part.value}, part.origin, part.place).known_numbers("row", TIMES)
    return numbers.get("admit_s", numbers.get("start_s")), numbers.get("end_s")


def lanes(found: Sequence[Held], until_s: float) -> list[tuple[Held, int]]:
    """Give every attempt a lane of its node for each slot it holds: the lowest that is free. Nodes lie over one another by name."""
    placed: list[tuple[str, int, Held]] = []
    free: dict[str, list[float]] = {}
    for one in found:
        ends = free.setdefault(one.node, [])
        for _ in range(one.replicas):
            lane = next((at for at, end in enumerate(ends) if end <= one.begin_s + ROUNDING_S), len(ends))
            ends[lane : lane + 1] = [until_s if one.end_s is None else one.end_s]
            placed.append((one.node, lane, one))
    first = dict(zip(sorted(free), np.cumsum([0, *(len(free[node]) for node in sorted(free))]).tolist(), strict=False))
    return [(one, first[node] + lane) for node, lane, one in placed]


def waiting(told: Told) -> tuple[np.ndarray, np.ndarray]:
    """How many jobs wait for their first slot, from each moment on: shapes (moments,), rising seconds and counts."""
    part = columns(told.stream)
    known = ~np.isnan(part.submit) & ~part.backwards
    begin = part.submit[known]
    end = part.taken[known]
    end = end[~np.isnan(end)]  # who never got a slot waits for ever
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    counts = np.cumsum(np.concatenate([np.ones(len(begin)), -np.ones(len(end))])[order])
    times = times[order]
    last = np.flatnonzero(np.diff(times, append=np.inf) > 0)  # who comes and is let in at one moment has not waited
    return times[last], counts[last]


def last_moment(told: Told, found: Iterable[Held]) -> float:
    """When the last thing happened that was told."""
    submits = (job.submit_s for job in told.stream.jobs if job.submit_s is not None)
    return max([0.0, *submits, *(one.begin_s for one in found), *(one.end_s for one in found if one.end_s is not None)])


def busiest(told: Told, length_s: float, until_s: float) -> tuple[float, float]:
    """Answer the time of such a length with the longest queue in its middle, within the stream."""
    times, counts = waiting(told)
    at = float(times[int(np.argmax(counts))]) if len(times) else 0.0
    begin_s = min(max(0.0, at - length_s / 2), max(0.0, until_s - length_s))
    return begin_s, begin_s + (length_s if math.isfinite(length_s) else until_s)
