"""A saved run's streams of jobs and all that is held against them: waits, policies, faults; lines that lose packets; who held which slot.

A block's seed draws its stream, so that a cell and its copy (`stock-again`) had the same jobs: they are no two replicates. Of each block
the stock cell is taken, the copy only where stock was not measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.formats.fields import Fields
from analysis.studies.jobs.dependability import records as struck
from analysis.studies.jobs.dependability.checkpoints import trials
from analysis.studies.jobs.dependability.network import cells_of_run as trained
from analysis.studies.jobs.dependability.network import lines
from analysis.studies.jobs.dependability.study import arms, poisonings, spared
from analysis.studies.jobs.queues.fitting import fit
from analysis.studies.jobs.queues.valid_times import columns
from analysis.studies.jobs.queues.validation import validate
from analysis.studies.jobs.records import AGAIN, OUTCOMES, ROWS, STOCK, distinct, streams, tells_of_jobs
from analysis.studies.jobs.schedulers.measured import places, recorded
from analysis.terms import Refused
from analysis.variants import short_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.studies.jobs.dependability.checkpoints import CheckpointTrial
    from analysis.studies.jobs.dependability.network import Line
    from analysis.studies.jobs.dependability.study import FaultArm, Poisoning, SparedJobs
    from analysis.studies.jobs.queues.validation import WaitValidation
    from analysis.studies.jobs.records import Stream
    from analysis.studies.jobs.schedulers.measured import Place
    from analysis.terms import Cell, Run


MARGIN = 0.10  # how far off a model of waits may be
BASELINE = "fifo"
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class StreamCell:
    """One cell's stream; `fault` is what its stream row says of a fault, None where it had none."""

    cell: Cell
    stream: Stream
    title: str
    fault: Mapping[str, object] | None

    @property
    def closed(self) -> bool:
        """Whether a job comes when another ends, so that nothing is known of an open queue's waits."""
        return self.stream.arrivals.get("kind") == CLOSED


@dataclass(frozen=True, slots=True)
class GroupWaits:
    """Streams of equal conditions, and their waits held against the models; `title` is what sets them apart from the run's others."""

    title: str
    told: tuple[StreamCell, ...]
    validation: WaitValidation

    @property
    def arrivals(self) -> str:
        """How jobs came: `poisson`, `mmpp`, …; empty where it was not told."""
        return str(self.told[0].stream.arrivals.get("kind", ""))


@dataclass(frozen=True, slots=True)
class Gathered:
    """All of one run; what could not be used, a line each.

    `arms` are streams under faults and their like without, `spared` policies under the same fault, `trials` intervals between checkpoints,
    `lines` what lost packets.
    """

    run: Run
    told: tuple[StreamCell, ...] = ()
    waits: tuple[GroupWaits, ...] = ()
    places: tuple[Place, ...] = ()
    arms: tuple[FaultArm, ...] = ()
    spared: tuple[SparedJobs, ...] = ()
    poisonings: tuple[Poisoning, ...] = ()
    trials: tuple[CheckpointTrial, ...] = ()
    lines: tuple[Line, ...] = ()
    refused: tuple[str, ...] = ()


def gather(run: Run) -> Gathered | None:
    """Put a run's streams together; None for a run that tells neither of jobs nor of lines that lose packets."""
    refused: list[str] = []
    over = tuple(lines(trained(run, refused)))
    if not tells_of_jobs(run):
        return Gathered(run, lines=over, refused=tuple(refused)) if over else None
    told = _cells(run, refused)
    waits, between = _waits(told, refused), _places(run, told, refused)
    kept = {one.cell.id for one in told}
    # What it refuses was refused above.
    hit = [one for one in struck.of_run(run, []) if one.cell in kept]
    held = arms(hit, MARGIN)
    faulty = tuple(held) if any(one.fault for one in held) else ()
    poisoned = [one for one in poisonings(hit) if one.drop is not None or one.poisoned]
    return Gathered(run, told, waits, between, faulty, tuple(spared(hit)), tuple(poisoned), tuple(trials(hit)), over, tuple(refused))


def _cells(run: Run, refused: list[str]) -> tuple[StreamCell, ...]:
    cells = {cell.id: cell for cell in run.cells}
    names = short_names(run.workloads)
    found = []
    for stream in streams(run, refused):
        cell = cells[stream.name]
        fault = cell.report["stream"][0].get("fault")
        title = names[cell.workload] + ("" if cell.tweakset in {STOCK, AGAIN} else f" · {cell.tweakset}")
        found.append(StreamCell(cell, stream, title, fault if isinstance(fault, dict) else None))
    order = list(run.workloads)
    found.sort(key=lambda one: (order.index(one.cell.workload), one.cell.block))
    stock = {(one.stream.group, one.cell.block) for one in found if one.cell.tweakset != AGAIN}
    return tuple(one for one in found if one.cell.tweakset != AGAIN or (one.stream.group, one.cell.block) not in stock)


def _waits(told: Iterable[StreamCell], refused: list[str]) -> tuple[GroupWaits, ...]:
    """Hold models against open streams without faults: no model here knows of these, or of customers who wait for their own jobs."""
    groups: dict[str, list[StreamCell]] = {}
    for one in told:
        if not one.closed and one.fault is None:
            groups.setdefault(one.stream.group, []).append(one)
    found = []
    for group in groups.values():
        some = distinct([one.stream for one in group], refused)
        try:
            found.append(GroupWaits(group[0].title, tuple(group), validate(fit(some), some, MARGIN)))
        except Refused as error:
            refused.append(str(error))
    return tuple(found)


def _places(run: Run, told: Sequence[StreamCell], refused: list[str]) -> tuple[Place, ...]:
    """Hold policies against each other on the untouched machine, where an engine had several."""
    kept = {
        one.cell.id for one in told if one.cell.tweakset in {STOCK, AGAIN} and one.fault is None and not one.closed and one.stream.policy
    }
    cells = tuple(cell for cell in run.cells if cell.id in kept and ROWS in cell.report)
    if not cells:
        return ()
    said: list[str] = []
    every = recorded(replace(run, cells=cells), said)
    refused += [line for line in said if line not in refused]
    found: list[Place] = []
    for engine, slots in dict.fromkeys((one.engine, one.slots) for one in every):
        mine = [one for one in every if (one.engine, one.slots) == (engine, slots)]
        names = sorted({one.policy for one in mine})
        if len(names) < 2:
            continue
        baseline = BASELINE if BASELINE in names else names[0]
        try:
            found += places(mine, baseline, refused)
        except Refused as error:
            refused.append(str(error))
    return tuple(found)


ROUNDING_S = 1e-9
TIMES = ("admit_s", "start_s", "end_s")


@dataclass(frozen=True, slots=True)
class SlotHold:
    """One attempt in its slots: seconds since the stream's start. `end_s` is None where nobody knows it; `node` is empty where untold."""

    job: int
    kind: str
    begin_s: float
    end_s: float | None
    outcome: str
    node: str = ""
    replicas: int = 1


def attempts(told: StreamCell) -> list[SlotHold]:
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
            found.append(SlotHold(job.number, job.kind, begin_s, end_s, part.one_of("outcome", OUTCOMES), node, job.replicas))
    if not rows:
        for job in jobs.values():
            begin = job.admit_s if job.admit_s is not None else job.start_s
            if begin is not None:
                found.append(SlotHold(job.number, job.kind, begin, job.end_s, job.outcome, replicas=job.replicas))
    return sorted(found, key=lambda one: (one.begin_s, one.job))


def _times(part: Fields) -> tuple[float | None, float | None]:
    numbers = Fields({"row": part.value}, part.origin, part.place).known_numbers("row", TIMES)
    return numbers.get("admit_s", numbers.get("start_s")), numbers.get("end_s")


def lanes(found: Sequence[SlotHold], until_s: float) -> list[tuple[SlotHold, int]]:
    """Give every attempt a lane of its node for each slot it holds: the lowest that is free. Nodes lie over one another by name."""
    placed: list[tuple[str, int, SlotHold]] = []
    free: dict[str, list[float]] = {}
    for one in found:
        ends = free.setdefault(one.node, [])
        for _ in range(one.replicas):
            lane = next((at for at, end in enumerate(ends) if end <= one.begin_s + ROUNDING_S), len(ends))
            ends[lane : lane + 1] = [until_s if one.end_s is None else one.end_s]
            placed.append((one.node, lane, one))
    first = dict(zip(sorted(free), np.cumsum([0, *(len(free[node]) for node in sorted(free))]).tolist(), strict=False))
    return [(one, first[node] + lane) for node, lane, one in placed]


def waiting(told: StreamCell) -> tuple[np.ndarray, np.ndarray]:
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


def last_moment(told: StreamCell, found: Iterable[SlotHold]) -> float:
    """When the last thing happened that was told."""
    submits = (job.submit_s for job in told.stream.jobs if job.submit_s is not None)
    return max([0.0, *submits, *(one.begin_s for one in found), *(one.end_s for one in found if one.end_s is not None)])


def busiest(told: StreamCell, length_s: float, until_s: float) -> tuple[float, float]:
    """Answer the time of such a length with the longest queue in its middle, within the stream."""
    times, counts = waiting(told)
    at = float(times[int(np.argmax(counts))]) if len(times) else 0.0
    begin_s = min(max(0.0, at - length_s / 2), max(0.0, until_s - length_s))
    return begin_s, begin_s + (length_s if math.isfinite(length_s) else until_s)
