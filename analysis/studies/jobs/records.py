"""Streams of jobs out of saved runs, read as a foreign file is: a field is what it must be, or missing, or its cell is refused by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analysis.formats.fields import Fields
from analysis.terms import Refused, Unreadable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from analysis.terms import Cell, Run


DETERMINISTIC = "deterministic"
DIGITS = 6  # to the microsecond: a plan that was written and read again is the same plan


def plan(kind: object, planned_s: Sequence[float | None], work: Sequence[float | None]) -> Hashable:
    """What chance drew of a stream: when its jobs were to come or, where that is no matter of chance, their sizes. None of neither."""
    times = () if kind == DETERMINISTIC else _drawn(planned_s)
    return times or _drawn(work) or None


def distinct(streams: Sequence[Stream], said: list[str]) -> list[Stream]:
    """Leave copies out, those of the untouched machine first; how many is said, a line for each group."""
    seen: set[Hashable] = set()
    kept: list[Stream] = []
    left: dict[str, int] = {}
    for one in sorted(streams, key=lambda one: one.again):
        keys = {(one.group, key) for key in one.drawn}
        if keys & seen:
            left[one.group] = left.get(one.group, 0) + 1
        else:
            kept.append(one)
        seen |= keys
    for group, count in left.items():
        were = "stream had the jobs of another" if count == 1 else "streams had the jobs of others"
        said.append(f"{group}: {count} {were} at the same times: a copy is no replicate, and is left out.")
    order = {id(one): at for at, one in enumerate(streams)}
    return sorted(kept, key=lambda one: order[id(one)])


def _drawn(values: Iterable[float | None]) -> tuple[float, ...]:
    """Values as they are compared; nothing of those that are not all told, or are all equal."""
    known = [round(value, DIGITS) for value in values if value is not None]
    return tuple(known) if len(set(known)) > 1 else ()


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


OUTCOMES = ("done", "failed", "killed", "never started", "never ended")
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Job:
    """One job as it was told; None where it never came to that, or it was not told. Times are those of one monotonic clock, as read.

    A slot is taken from `admit_s`, or from `start_s` where nobody admits, to `end_s`; what lies between admission and start is start-up.
    `priority`: the lower goes first. `replicas` is how many slots it takes at once. With more than one of `attempts`, admission and start
    are the first one's and the end is the last one's: between them it held no slot for a while.
    """

    number: int
    submit_s: float | None
    admit_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    outcome: str = ""
    reason: str = ""
    kind: str = ""
    priority: int | None = None
    replicas: int = 1
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Stream:
    """One run of a stream of jobs. `group` names those of equal conditions, which are each other's replicates.

    `slots` is None, and `engine` and `policy` empty, where they were not told. `measured`: it was told when jobs started and ended; a
    trace of arrivals has none of that. Streams that share any of `drawn` had the same jobs; `again` is a copy of the untouched machine's.
    `fault` names what struck it, empty if nothing did.
    """

    name: str
    group: str
    jobs: tuple[Job, ...]
    slots: int | None = None
    engine: str = ""
    policy: str = ""
    arrivals: Mapping[str, object] = field(default_factory=dict)
    measured: bool = True
    drawn: tuple[Hashable, ...] = ()
    again: bool = False
    fault: str = ""

    @property
    def closed(self) -> bool:
        """Whether a job comes when another ends: an open queue's rate and waits are not its."""
        return self.arrivals.get("kind") == CLOSED
