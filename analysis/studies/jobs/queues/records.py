"""Streams of jobs out of saved runs, read as a foreign file is: a field is what it must be, or missing, or its cell is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.formats.fields import Fields
from analysis.terms import Refused, Unreadable

from .copies import plan
from .terms import OUTCOMES, Job, Stream

if TYPE_CHECKING:
    from analysis.terms import Cell, Run

ROWS, STREAM = "job", "stream"
PLANNED = ("planned_submit_s", "work")
TIMES = ("submit_s", "admit_s", "start_s", "end_s")
AGAIN, STOCK = "stock-again", "stock"
LONGEST = 1e10  # seconds; a clock that reads more counts something else
MOST_SLOTS = 10_000_000


def tells_of_jobs(run: Run) -> bool:
    """Whether any cell of a run told of a stream of jobs."""
    return any(ROWS in cell.report or STREAM in cell.report for cell in run.cells)


def streams(run: Run, refused: list[str]) -> list[Stream]:
    """Read every stream of a run, one a cell; what cannot be used is said in `refused`, a line each.

    Raises: Refused, for a run that tells of no jobs.
    """
    if not tells_of_jobs(run):
        raise Refused(f"{run.origin}: no cell of it tells of a stream of jobs.")
    bases = {cell.workload.partition(":")[0] for cell in run.cells if ROWS in cell.report or STREAM in cell.report}
    found = []
    for cell in run.cells:
        if cell.workload.partition(":")[0] not in bases:
            continue
        if cell.outcome != "measured":
            refused.append(f"{run.origin}: {cell.id} {cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}.")
            continue
        try:
            found.append(_stream(cell, run))
        except Unreadable as error:
            refused.append(str(error))
    return found


def _stream(cell: Cell, run: Run) -> Stream:
    origin = run.origin
    place = f"cell {cell.id}, report"
    rows = [Fields(one, origin, f"{place}.{ROWS}[{at}]") for at, one in enumerate(cell.report.get(ROWS, ()))]
    told = cell.report.get(STREAM, ())
    if not rows or len(told) != 1:
        raise Unreadable(
            f"{origin}: {place}: has {len(rows)} rows of jobs and {len(told)} of the stream; one of the stream and some jobs belong."
        )
    about = Fields(told[0], origin, f"{place}.{STREAM}")
    tweakset = "" if cell.tweakset in {STOCK, AGAIN} else f" under {cell.tweakset}"
    slots = about.whole("slots")
    if not 1 <= slots <= MOST_SLOTS:
        about.refuse(f"has slots = {slots}, where 1 to {MOST_SLOTS} belong")
    arrivals, fault = about.optional_mapping("arrivals"), about.optional_fields("fault")
    numbers = [Fields({"row": row.value}, origin, row.place).known_numbers("row", PLANNED) for row in rows]
    drawn = plan(arrivals.get("kind"), *([one.get(name) for one in numbers] for name in PLANNED))
    return Stream(
        name=cell.id,
        group=cell.workload + tweakset,
        jobs=tuple(map(_job, rows)),
        slots=slots,
        engine=about.text("engine"),
        policy=about.optional_text("policy") or "",
        arrivals=arrivals,
        drawn=(("block", run.run_id, cell.block), *([("plan", drawn)] if drawn else [])),
        again=cell.tweakset == AGAIN,
        fault=fault.text("fault") if fault.value else "",
    )


def _job(part: Fields) -> Job:
    times = Fields({"row": part.value}, part.origin, part.place).known_numbers("row", (*TIMES, "priority"))
    for name, value in times.items():
        if abs(value) > LONGEST:
            part.refuse(f"has {name} = {value:g}, which no clock of a run reads")
    priority = times.pop("priority", None)
    if priority is not None and not priority.is_integer():
        part.refuse(f"has priority = {priority:g}, where a whole number belongs")
    replicas = part.whole("replicas") if part.has("replicas") else 1
    return Job(
        number=part.whole("job"),
        submit_s=times.get("submit_s"),
        admit_s=times.get("admit_s"),
        start_s=times.get("start_s"),
        end_s=times.get("end_s"),
        outcome=part.one_of("outcome", OUTCOMES),
        reason=part.optional_text("reason") or "",
        kind=part.optional_text("class") or "",
        priority=None if priority is None else int(priority),
        replicas=max(1, replicas),
        attempts=max(1, part.whole("attempts")) if part.has("attempts") else 1,
    )
