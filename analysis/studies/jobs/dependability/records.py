"""Streams of jobs with their faults out of saved runs, read as a foreign file is: what is not as it must be refuses its cell by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.formats.fields import Fields
from analysis.load import load_each
from analysis.studies.jobs.profiles.one_machine import of_one_machine
from analysis.studies.jobs.records import AGAIN, OUTCOMES, ROWS, STREAM
from analysis.terms import Refused, Unreadable

from .terms import Attempt, Fault, Job, Outage, Stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Cell, Run

STOCK, FAULT, ASKED = "stock", "fault", "fault_"
AGAINST = ("checkpoint_s=", "retries=", "patience_s=")
TIMES = ("submit_s", "admit_s", "start_s", "end_s", "planned_submit_s", "at_s", "until_s")
NUMBERS = ("work", "lost_s", "lost_work", "checkpoints", "checkpoint_cost_s")
LONGEST = 1e10  # seconds; a clock that reads more counts something else


def streams(names: Sequence[str], refused: list[str]) -> list[Stream]:
    """Read every stream of the runs that are named; what cannot be used is said in `refused`, a line each.

    Raises: Refused, for none, and for runs of different machines.
    """
    found = [stream for run in of_one_machine(load_each(names, refused), refused) for stream in of_run(run, refused)]
    if not found:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no cell tells of a stream of jobs.")
    return found


def of_run(run: Run, refused: list[str]) -> list[Stream]:
    """Read every stream of one run."""
    found = []
    bases = {cell.workload.partition(":")[0] for cell in run.cells if STREAM in cell.report}
    for cell in run.cells:
        if cell.workload.partition(":")[0] not in bases:
            continue
        if cell.outcome != "measured":
            refused.append(f"{run.origin}: {cell.id} {cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}.")
            continue
        try:
            found.append(_stream(run, cell))
        except Unreadable as error:
            refused.append(str(error))
    return found


def _stream(run: Run, cell: Cell) -> Stream:
    place = f"cell {cell.id}, report"
    if len(cell.report.get(STREAM, ())) != 1 or not cell.report.get(ROWS):
        raise Unreadable(f"{run.origin}: {place}: one row of the stream and some of jobs belong there.")
    about = Fields(cell.report[STREAM][0], run.origin, f"{place}.{STREAM}")
    base, *parts = cell.workload.split(":")
    told = about.optional_fields(FAULT)
    fault = told.text(FAULT) if told.value else None
    kept = [part for part in parts if not part.startswith((f"{FAULT}=", ASKED, *AGAINST))]
    slots, nodes = about.whole("slots"), about.whole("nodes") if about.has("nodes") else 1
    if not 1 <= nodes <= slots:
        about.refuse(f"has {nodes} nodes for {slots} slots; each has one or more")
    rows = {name: _rows(cell, run.origin, name) for name in (ROWS, "attempt", FAULT, "node")}
    return Stream(
        cell=cell.id,
        unit=(run.run_id, cell.block),
        tweakset=cell.tweakset,
        condition=":".join([base, *kept]) + ("" if cell.tweakset in {STOCK, AGAIN} else f" under {cell.tweakset}"),
        fault=fault,
        asked=dict(part.split("=", 1) for part in parts if part.startswith(ASKED)),
        checkpoint_s=about.up_to("checkpoint_s", LONGEST) or 0.0,
        retries=about.whole("retries") if about.has("retries") else 0,
        slots=slots,
        nodes=nodes,
        jobs=tuple(_job(one, *times) for one, *times in rows[ROWS]),
        attempts=tuple(_attempt(one, *times) for one, *times in rows["attempt"]),
        faults=tuple(_fault(one, times) for one, times, _ in rows[FAULT]),
        outages=_outages([(one, times) for one, times, _ in rows["node"]]),
        classes=tuple(one.value for one in about.each("classes")) if about.has("classes") else (),
    )


def _rows(cell: Cell, origin: str, name: str) -> list[tuple[Fields, dict[str, float], dict[str, float]]]:
    """The rows of one name, each with its times and its other numbers."""
    found = []
    for at, one in enumerate(cell.report.get(name, ())):
        row = Fields(one, origin, f"cell {cell.id}, report.{name}[{at}]")
        told = Fields({"row": one}, origin, row.place).known_numbers("row", (*TIMES, *NUMBERS))
        for key, value in told.items():
            if (key in TIMES and abs(value) > LONGEST) or (key in NUMBERS and value < 0):
                row.refuse(f"has {key} = {value:g}, which cannot be")
        times = {key: value for key, value in told.items() if key in TIMES}
        found.append((row, times, {key: value for key, value in told.items() if key in NUMBERS}))
    return found


def _job(row: Fields, times: Mapping[str, float], numbers: Mapping[str, float]) -> Job:
    result = row.optional_mapping("result")
    return Job(
        number=row.whole("job"),
        kind=row.optional_text("class") or "",
        tenant=row.optional_text("tenant") or "",
        planned_s=times.get("planned_submit_s"),
        work=numbers.get("work"),
        submit_s=times.get("submit_s"),
        end_s=times.get("end_s"),
        outcome=row.one_of("outcome", OUTCOMES),
        lost_s=numbers.get("lost_s"),
        lost_work=numbers.get("lost_work"),
        result=Fields({"result": result}, row.origin, row.place).known_numbers("result", _numeric(result)),
    )


def _numeric(result: Mapping[str, object]) -> set[str]:
    return {name for name, value in result.items() if isinstance(value, int | float) and not isinstance(value, bool)}


def _attempt(row: Fields, times: Mapping[str, float], numbers: Mapping[str, float]) -> Attempt:
    return Attempt(
        job=row.whole("job"),
        number=row.whole("attempt"),
        node=row.optional_text("node"),
        begin_s=times.get("admit_s", times.get("start_s")),
        end_s=times.get("end_s"),
        outcome=row.one_of("outcome", OUTCOMES),
        checkpoints=int(numbers["checkpoints"]) if "checkpoints" in numbers else None,
        cost_s=numbers.get("checkpoint_cost_s"),
    )


def _fault(row: Fields, times: Mapping[str, float]) -> Fault:
    if "at_s" not in times:
        row.refuse("has no at_s")
    job = row.whole("job") if row.has("job") else None
    return Fault(row.text("fault"), times["at_s"], times.get("until_s"), row.optional_text("node"), job)


def _outages(rows: Sequence[tuple[Fields, Mapping[str, float]]]) -> tuple[Outage, ...]:
    """Each loss of a node with its return. A return without a loss, or a second loss of what is lost, is no new outage."""
    lost: dict[str, float] = {}
    found = []
    for row, times in sorted(rows, key=lambda both: both[1].get("at_s", 0.0)):
        node, what = row.text("node"), row.one_of("what", ("lost", "back"))
        if "at_s" not in times:
            row.refuse("has no at_s")
        if what == "lost":
            lost.setdefault(node, times["at_s"])
        elif node in lost:
            found.append(Outage(node, lost.pop(node), times["at_s"]))
    return tuple(found + [Outage(node, at_s) for node, at_s in lost.items()])
