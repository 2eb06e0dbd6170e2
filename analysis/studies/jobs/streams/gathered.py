"""A saved run's streams of jobs and all that is held against them: waits, policies, faults; and lines that lose packets.

A block's seed draws its stream, so that a cell and its copy (`stock-again`) had the same jobs: they are no two replicates. Of each block
the stock cell is taken, the copy only where stock was not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.studies.jobs.dependability import records as struck
from analysis.studies.jobs.dependability.accuracy import poisonings
from analysis.studies.jobs.dependability.checkpoints import trials
from analysis.studies.jobs.dependability.lines import of_run as trained
from analysis.studies.jobs.dependability.network import lines
from analysis.studies.jobs.dependability.policies import spared
from analysis.studies.jobs.dependability.study import arms
from analysis.studies.jobs.queues.copies import distinct
from analysis.studies.jobs.queues.fitting import fit
from analysis.studies.jobs.queues.records import AGAIN, ROWS, STOCK, streams, tells_of_jobs
from analysis.studies.jobs.queues.validating import validate
from analysis.studies.jobs.schedulers.measured import places
from analysis.studies.jobs.schedulers.recorded import recorded
from analysis.terms import Refused
from analysis.variants import short_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.studies.jobs.dependability.accuracy import Poisoning
    from analysis.studies.jobs.dependability.checkpoints import Trial
    from analysis.studies.jobs.dependability.network import Line
    from analysis.studies.jobs.dependability.policies import Spared
    from analysis.studies.jobs.dependability.study import Arm
    from analysis.studies.jobs.queues.terms import Stream
    from analysis.studies.jobs.queues.validating import Validation
    from analysis.studies.jobs.schedulers.measured import Place
    from analysis.terms import Cell, Run

MARGIN = 0.10  # how far off a model of waits may be
BASELINE = "fifo"
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Told:
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
class Waits:
    """Streams of equal conditions, and their waits held against the models; `title` is what sets them apart from the run's others."""

    title: str
    told: tuple[Told, ...]
    validation: Validation

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
    told: tuple[Told, ...] = ()
    waits: tuple[Waits, ...] = ()
    places: tuple[Place, ...] = ()
    arms: tuple[Arm, ...] = ()
    spared: tuple[Spared, ...] = ()
    poisonings: tuple[Poisoning, ...] = ()
    trials: tuple[Trial, ...] = ()
    lines: tuple[Line, ...] = ()
    refused: tuple[str, ...] = ()


def gather(run: Run) -> Gathered | None:
    """Put a run's streams together; None for a run that tells neither of jobs nor of lines that lose packets."""
    refused: list[str] = []
    over = tuple(lines(trained(run, refused)))
    if not tells_of_jobs(run):
        return Gathered(run, lines=over, refused=tuple(refused)) if over else None
    told = _told(run, refused)
    waits, between = _waits(told, refused), _places(run, told, refused)
    kept = {one.cell.id for one in told}
    # What it refuses was refused above.
    hit = [one for one in struck.of_run(run, []) if one.cell in kept]
    held = arms(hit, MARGIN)
    faulty = tuple(held) if any(one.fault for one in held) else ()
    poisoned = [one for one in poisonings(hit) if one.drop is not None or one.poisoned]
    return Gathered(run, told, waits, between, faulty, tuple(spared(hit)), tuple(poisoned), tuple(trials(hit)), over, tuple(refused))


def _told(run: Run, refused: list[str]) -> tuple[Told, ...]:
    cells = {cell.id: cell for cell in run.cells}
    names = short_names(run.workloads)
    found = []
    for stream in streams(run, refused):
        cell = cells[stream.name]
        fault = cell.report["stream"][0].get("fault")
        title = names[cell.workload] + ("" if cell.tweakset in {STOCK, AGAIN} else f" · {cell.tweakset}")
        found.append(Told(cell, stream, title, fault if isinstance(fault, dict) else None))
    order = list(run.workloads)
    found.sort(key=lambda one: (order.index(one.cell.workload), one.cell.block))
    stock = {(one.stream.group, one.cell.block) for one in found if one.cell.tweakset != AGAIN}
    return tuple(one for one in found if one.cell.tweakset != AGAIN or (one.stream.group, one.cell.block) not in stock)


def _waits(told: Iterable[Told], refused: list[str]) -> tuple[Waits, ...]:
    """Hold models against open streams without faults: no model here knows of these, or of customers who wait for their own jobs."""
    groups: dict[str, list[Told]] = {}
    for one in told:
        if not one.closed and one.fault is None:
            groups.setdefault(one.stream.group, []).append(one)
    found = []
    for group in groups.values():
        some = distinct([one.stream for one in group], refused)
        try:
            found.append(Waits(group[0].title, tuple(group), validate(fit(some), some, MARGIN)))
        except Refused as error:
            refused.append(str(error))
    return tuple(found)


def _places(run: Run, told: Sequence[Told], refused: list[str]) -> tuple[Place, ...]:
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
