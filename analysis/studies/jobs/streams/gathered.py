"""A saved run's streams of jobs and all that is held against them: waits, policies, faults; lines that lose packets; who held which slot.

A block's seed draws its stream, so that a cell and its copy (`stock-again`) had the same jobs: they are no two replicates. Of each block
the stock cell is taken, the copy only where stock was not measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.labels import short_names
from analysis.studies.jobs.checkpoints import trials
from analysis.studies.jobs.faults import arms, poisonings, spared
from analysis.studies.jobs.network import cells_of_run, lines
from analysis.studies.jobs.policies import places, played_streams
from analysis.studies.jobs.queue_fits import fit
from analysis.studies.jobs.queue_times import columns
from analysis.studies.jobs.queues import validate
from analysis.studies.jobs.records import AGAIN, STOCK, distinct, streams, tells_of_jobs
from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analysis.studies.jobs.checkpoints import CheckpointTrial
    from analysis.studies.jobs.faults import FaultArm, Poisoning, SparedJobs
    from analysis.studies.jobs.network import LossyLine
    from analysis.studies.jobs.policies import Place
    from analysis.studies.jobs.queues import WaitValidation
    from analysis.studies.jobs.records import Stream
    from analysis.terms import Run

MARGIN = 0.10  # how far off a model of waits may be
BASELINE = "fifo"
ROUNDING_S = 1e-9


@dataclass(frozen=True, slots=True)
class GroupWaits:
    """Streams of equal conditions, and their waits held against the models; `title` is what sets them apart from the run's others."""

    title: str
    streams: tuple[Stream, ...]
    validation: WaitValidation

    @property
    def arrivals(self) -> str:
        return str(self.streams[0].arrivals.get("kind", ""))


@dataclass(frozen=True, slots=True)
class Gathered:
    """All of one run; what could not be used, a line each.

    `arms` are streams under faults and their like without, `spared` policies under the same fault, `trials` intervals between checkpoints,
    `lines` what lost packets.
    """

    run: Run
    streams: tuple[Stream, ...] = ()
    waits: tuple[GroupWaits, ...] = ()
    places: tuple[Place, ...] = ()
    arms: tuple[FaultArm, ...] = ()
    spared: tuple[SparedJobs, ...] = ()
    poisonings: tuple[Poisoning, ...] = ()
    trials: tuple[CheckpointTrial, ...] = ()
    lines: tuple[LossyLine, ...] = ()
    refused: tuple[str, ...] = ()


def gather(run: Run) -> Gathered | None:
    """Put a run's streams together; None for a run that tells neither of jobs nor of lines that lose packets."""
    refused: list[str] = []
    lossy = tuple(lines(cells_of_run(run, refused)))
    if not tells_of_jobs(run):
        return Gathered(run, lines=lossy, refused=tuple(refused)) if lossy else None
    every = streams(run, refused)
    stock = {(stream.group, stream.unit) for stream in every if not stream.again}
    of_run = [stream for stream in every if not stream.again or (stream.group, stream.unit) not in stock]
    order = list(run.workloads)
    by_workload = tuple(sorted(of_run, key=lambda stream: (order.index(stream.workload), stream.unit[1])))
    waits, between = _waits(run, by_workload, refused), _places(run, of_run, refused)
    held = arms(of_run, MARGIN)
    return Gathered(
        run,
        by_workload,
        waits,
        between,
        arms=tuple(held) if any(arm.fault for arm in held) else (),
        spared=tuple(spared(of_run)),
        poisonings=tuple(poisoning for poisoning in poisonings(of_run) if poisoning.drop is not None or poisoning.poisoned),
        trials=tuple(trials(of_run)),
        lines=lossy,
        refused=tuple(refused),
    )


def _waits(run: Run, every: Iterable[Stream], refused: list[str]) -> tuple[GroupWaits, ...]:
    names = short_names(run.workloads)
    groups: dict[str, list[Stream]] = {}
    for stream in every:
        if not stream.closed and not stream.fault:
            groups.setdefault(stream.group, []).append(stream)
    waits = []
    for group in groups.values():
        first, replicates = group[0], distinct(group, refused)
        title = names[first.workload] + ("" if first.tweakset in {STOCK, AGAIN} else f" · {first.tweakset}")
        try:
            waits.append(GroupWaits(title, tuple(group), validate(fit(replicates), replicates, MARGIN)))
        except Refused as error:
            refused.append(str(error))
    return tuple(waits)


def _places(run: Run, every: Sequence[Stream], refused: list[str]) -> tuple[Place, ...]:
    untouched = [stream for stream in every if stream.tweakset in {STOCK, AGAIN}]
    usable = [plain for plain in untouched if plain.policy and not plain.fault and not plain.closed]
    played = played_streams(run, usable, refused)
    of_run: list[Place] = []
    for engine, slots in dict.fromkeys((stream.engine, stream.slots) for stream in played):
        here = [stream for stream in played if (stream.engine, stream.slots) == (engine, slots)]
        names = sorted({stream.policy for stream in here})
        if len(names) < 2:
            continue
        try:
            of_run += places(here, BASELINE if BASELINE in names else names[0], refused)
        except Refused as error:
            refused.append(str(error))
    return tuple(of_run)


@dataclass(frozen=True, slots=True)
class SlotHold:
    """One attempt in its slots: seconds since the stream's start. `end_s` is None where nobody knows it; `node` is empty where untold."""

    job: int
    class_: str
    begin_s: float
    end_s: float | None
    outcome: str
    node: str = ""
    replicas: int = 1


def holds(stream: Stream) -> list[SlotHold]:
    jobs = {job.number: job for job in stream.jobs}
    if stream.attempts:
        held = [
            SlotHold(job.number, job.class_, attempt.begin_s, attempt.end_s, attempt.outcome, attempt.node or "", job.replicas)
            for attempt in stream.attempts
            if (job := jobs.get(attempt.job)) is not None and attempt.begin_s is not None
        ]
    else:
        held = [
            SlotHold(job.number, job.class_, job.taken_s, job.end_s, job.outcome, replicas=job.replicas)
            for job in jobs.values()
            if job.taken_s is not None
        ]
    return sorted(held, key=lambda hold: (hold.begin_s, hold.job))


def lanes(of_stream: Sequence[SlotHold], until_s: float) -> list[tuple[SlotHold, int]]:
    placed: list[tuple[str, int, SlotHold]] = []
    free: dict[str, list[float]] = {}
    for hold in of_stream:
        ends = free.setdefault(hold.node, [])
        for _ in range(hold.replicas):
            lane = next((at for at, end in enumerate(ends) if end <= hold.begin_s + ROUNDING_S), len(ends))
            ends[lane : lane + 1] = [until_s if hold.end_s is None else hold.end_s]
            placed.append((hold.node, lane, hold))
    first = dict(zip(sorted(free), np.cumsum([0, *(len(free[node]) for node in sorted(free))]).tolist(), strict=False))
    return [(hold, first[node] + lane) for node, lane, hold in placed]


def waiting(stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    times = columns(stream)
    known = ~np.isnan(times.submit) & ~times.backwards
    begin, end = times.submit[known], times.taken[known]
    end = end[~np.isnan(end)]  # who never got a slot waits for ever
    moments = np.concatenate([begin, end])
    order = np.argsort(moments, kind="stable")
    counts = np.cumsum(np.concatenate([np.ones(len(begin)), -np.ones(len(end))])[order])
    moments = moments[order]
    last = np.flatnonzero(np.diff(moments, append=np.inf) > 0)  # who comes and is let in at one moment has not waited
    return moments[last], counts[last]


def last_moment(stream: Stream, of_stream: Iterable[SlotHold]) -> float:
    submits = (job.submit_s for job in stream.jobs if job.submit_s is not None)
    ends = ((hold.begin_s, hold.end_s) for hold in of_stream)
    return max([0.0, *submits, *(moment for both in ends for moment in both if moment is not None)])


def busiest(stream: Stream, length_s: float, until_s: float) -> tuple[float, float]:
    """Answer the time of such a length with the longest queue in its middle, within the stream."""
    times, counts = waiting(stream)
    at = float(times[int(np.argmax(counts))]) if len(times) else 0.0
    begin_s = min(max(0.0, at - length_s / 2), max(0.0, until_s - length_s))
    return begin_s, begin_s + (length_s if math.isfinite(length_s) else until_s)
