"""Read streams of jobs from saved runs, for every question about jobs.

A field is what it must be, or missing, or its cell is refused by name. What a study needs beyond that (enough jobs) it checks itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, NamedTuple, TypeVar

from analysis.arms import distinct as distinct_runs
from analysis.arms import times_of
from analysis.formats.fields import Fields
from analysis.load import load_each, read_each
from analysis.machine import Machines
from analysis.terms import AGAIN, STOCK, Cell, Refused, Run, Unreadable

OUTCOMES = ("done", "failed", "killed", "never started", "never ended")
ROWS, STREAM, ATTEMPTS, FAULT, NODES = "job", "stream", "attempt", "fault", "node"  # of a cell's report
CLOSED, DETERMINISTIC = "closed", "deterministic"  # kinds of arrivals
TIMES = ("submit_s", "admit_s", "start_s", "end_s")
CLOCK = frozenset({*TIMES, "planned_submit_s", "due_s", "at_s", "until_s"})
USED = frozenset({"cpu_s", "throttled_s", "max_rss_mib", "memory_peak_mib", "cores", "memory_mib"})
AMOUNTS = frozenset({*USED, "work", "predicted_s", "lost_s", "lost_work", "checkpoints", "checkpoint_cost_s"})
# Of a job's row: what stands in which column.
OF_JOB = {name: name for name in (*TIMES, "work", "predicted_s", "due_s", "lost_s")} | {"planned_s": "planned_submit_s"}
LARGEST_RESULT = 1e15  # that a job says of itself
LONGEST = 1e10  # seconds; a clock that reads more counts something else
MOST_SLOTS = 10_000_000
DIGITS = 6  # to the microsecond: a plan that was written and read again is the same plan
LOSS = "loss_percent"  # the parameter of a workload over a line that loses packets
# Parameters of what strikes a stream, by how they begin, and of what is done against it; steps follow from the number of jobs.
OF_FAULT = "fault"
AGAINST = ("checkpoint_s", "retries", "patience_s")
FOLLOWS = ("steps", "warmup_steps")

Record = TypeVar("Record")
Unit = tuple[str, int]  # run and block: what is replicated
Condition = tuple[tuple[str, str], ...]  # what was asked for: parameters and their values, and the tweak set


class Times(NamedTuple):
    """All times of one job."""

    submit_s: float
    admit_s: float
    start_s: float
    end_s: float

    @property
    def response_s(self) -> float:
        return self.end_s - self.submit_s

    @property
    def held_s(self) -> float:
        return self.end_s - self.admit_s

    @property
    def ran_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Job:
    """One job; None is what never happened or was not recorded. Times are those of one monotonic clock, as read.

    A slot is taken from `admit_s`, or from `start_s` where nobody admits, to `end_s`; what lies between admission and start is start-up.
    `priority`: the lower goes first. `replicas` is how many slots it takes at once. With more than one of `attempts`, admission and start
    are the first one's and the end is the last one's: between them it held no slot for a while. `lost_s` is time in attempts whose work
    no checkpoint kept. `used` has what is known of `USED`: limits (`cores`, `memory_mib`) of each replica, the rest of all together.
    `result` are the numbers that it gave of itself.
    """

    number: int
    submit_s: float | None
    admit_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    outcome: str = ""
    class_: str = ""
    tenant: str = ""
    priority: int | None = None
    replicas: int = 1
    attempts: int = 1
    planned_s: float | None = None
    work: float | None = None
    predicted_s: float | None = None
    due_s: float | None = None
    lost_s: float | None = None
    used: Mapping[str, float] = field(default_factory=dict)
    result: Mapping[str, float] = field(default_factory=dict)

    @property
    def taken_s(self) -> float | None:
        return self.start_s if self.admit_s is None else self.admit_s

    @property
    def times(self) -> Times | None:
        if self.submit_s is None or self.admit_s is None or self.start_s is None or self.end_s is None:
            return None
        return Times(self.submit_s, self.admit_s, self.start_s, self.end_s)

    @property
    def done(self) -> bool:
        return self.outcome == "done"

    @property
    def done_at_once(self) -> bool:
        """Whether it ended well in its first attempt: what a later one took is not what a job takes."""
        return self.done and self.attempts == 1

    @property
    def response_s(self) -> float | None:
        if not self.done or self.submit_s is None or self.end_s is None or self.end_s < self.submit_s:
            return None
        return self.end_s - self.submit_s


@dataclass(frozen=True, slots=True)
class Attempt:
    job: int
    number: int
    node: str | None
    begin_s: float | None
    end_s: float | None
    outcome: str
    checkpoints: int | None = None
    cost_s: float | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    at_s: float
    until_s: float | None = None
    node: str | None = None
    job: int | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """A node that was lost, and when it was back; None if never."""

    node: str
    at_s: float
    back_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """One run of a stream of jobs. `group` names those of equal conditions, which are each other's replicates.

    `slots` is None, and `engine` and `policy` empty, where they are not known. `measured`: starts and ends are recorded; a trace of
    arrivals has none. Streams that share any of `drawn` had the same jobs, as those of one `unit` and tweak set. `fault` names what struck
    it, empty if nothing did; `checkpoint_s` and `retries` are what was done against that. `params` are its workload's, `cpus` how many
    CPUs the machine had, `classes` those of its jobs.
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
    fault: str = ""
    unit: Unit = ("", 0)
    workload: str = ""
    tweakset: str = STOCK
    params: Mapping[str, object] = field(default_factory=dict)
    cpus: int | None = None
    nodes: int = 1
    checkpoint_s: float = 0.0
    retries: int = 0
    attempts: tuple[Attempt, ...] = ()
    faults: tuple[Fault, ...] = ()
    outages: tuple[Outage, ...] = ()
    classes: tuple[Mapping[str, object], ...] = ()
    origin: str = ""

    @property
    def arrival_kind(self) -> str:
        return str(self.arrivals.get("kind", ""))

    @property
    def closed(self) -> bool:
        """Whether a job comes when another ends: an open queue's rate and waits are not its."""
        return self.arrivals.get("kind") == CLOSED

    @property
    def done_with_times(self) -> list[tuple[Job, Times]]:
        return [(job, times) for job in self.jobs if job.done_at_once and (times := job.times) is not None]

    @property
    def same_jobs(self) -> tuple[tuple[int, float | None, float | None], ...]:
        """What makes two streams' jobs the same: number, planned submission and size of each."""
        jobs = ((job.number, None if job.planned_s is None else round(job.planned_s, DIGITS), job.work) for job in self.jobs)
        return tuple(sorted(jobs, key=repr))

    @property
    def condition(self) -> Condition:
        """All that was asked for but faults and what is done against them; the copy of stock is stock."""
        return self.condition_without(OF_FAULT, *AGAINST)

    def condition_without(self, *without: str) -> Condition:
        """Return what was asked for but the parameters that begin so."""
        return condition(self.params, self.tweakset, *without, *FOLLOWS)

    @property
    def fault_params(self) -> dict[str, object]:
        """What is done to it and against it, as far as it was asked for."""
        of_fault = {name.removeprefix(f"{OF_FAULT}_"): value for name, value in self.params.items() if name.startswith(f"{OF_FAULT}_")}
        params = {**of_fault, "checkpoint_s": self.checkpoint_s, "retries": self.retries}
        return {name: value for name, value in params.items() if value not in {None, 0}}


def under(tweakset: str) -> str:
    return "" if tweakset in {STOCK, AGAIN} else f" under {tweakset}"


def condition(params: Mapping[str, object], tweakset: str, *without: str) -> Condition:
    """Return what something ran under, without the parameters that begin so."""
    known = {name: str(value) for name, value in params.items() if value is not None and not name.startswith(without)}
    return (*sorted(known.items()), *([] if tweakset in {STOCK, AGAIN} else [("tweak set", tweakset)]))


def params_of(run: Run, cell: Cell) -> Mapping[str, object]:
    """Return the parameters of a cell's workload."""
    return run.workloads[cell.workload].params if cell.workload in run.workloads else {}


def _tells(cell: Cell) -> bool:
    return ROWS in cell.report or STREAM in cell.report


def tells_of_jobs(run: Run) -> bool:
    return any(map(_tells, run.cells))


def loses_packets(run: Run) -> bool:
    return any(LOSS in workload.params for workload in run.workloads.values())


def streams(run: Run, refused: list[str]) -> list[Stream]:
    """Read every stream of a run, one per cell; each that cannot be used adds a line to `refused`.

    A block's seed draws its stream, so that a cell of `stock-again` has the jobs of `stock`: it is read only where stock was not measured.

    Raises: Refused, for a run without jobs.
    """
    if not tells_of_jobs(run):
        raise Refused(f"{run.origin}: no cell of it tells of a stream of jobs.")
    studies = {cell.study for cell in run.cells if _tells(cell)}
    cells = [cell for cell in run.cells if _tells(cell) or (cell.outcome != "measured" and cell.study in studies)]
    every = [*read_cells(run, cells, _stream, refused)]
    stock = {(stream.workload, stream.unit) for stream in every if stream.tweakset == STOCK}
    return [stream for stream in every if stream.tweakset != AGAIN or (stream.workload, stream.unit) not in stock]


def read_cells(run: Run, cells: Iterable[Cell], read: Callable[[Run, Cell], Record], refused: list[str]) -> Iterator[Record]:
    """Read cells; each that was not measured, or cannot be read, adds a line to `refused`."""
    for cell in cells:
        if cell.outcome != "measured":
            refused.append(f"{run.origin}: {cell.id} {cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}.")
            continue
        try:
            yield read(run, cell)
        except Unreadable as error:
            refused.append(str(error))


def plan(kind: object, planned_s: Sequence[float | None], work: Sequence[float | None]) -> Hashable:
    """What chance drew of a stream: when its jobs were to come or, where that is no matter of chance, their sizes. None of neither."""
    times = () if kind == DETERMINISTIC else _drawn(planned_s)
    return times or _drawn(work) or None


def _drawn(values: Iterable[float | None]) -> tuple[float, ...]:
    """Values to compare; none where not all are known, or all are equal."""
    known = [round(value, DIGITS) for value in values if value is not None]
    return tuple(known) if len(set(known)) > 1 else ()


def _stream(run: Run, cell: Cell) -> Stream:
    place = f"cell {cell.id}, report"
    about_rows, job_rows = cell.report.get(STREAM, ()), cell.report.get(ROWS, ())
    if not job_rows or len(about_rows) != 1:
        raise Unreadable(
            f"{run.origin}: {place}: has {len(job_rows)} rows of jobs and {len(about_rows)} of the stream; "
            "one of the stream and some jobs belong."
        )
    about = Fields(about_rows[0], run.origin, f"{place}.{STREAM}")
    slots, nodes = about.whole("slots"), about.whole("nodes") if about.has("nodes") else 1
    if not 1 <= slots <= MOST_SLOTS:
        about.refuse(f"has slots = {slots}, where 1 to {MOST_SLOTS} belong")
    if not 1 <= nodes <= slots:
        about.refuse(f"has {nodes} nodes for {slots} slots; each has one or more")
    arrivals, fault = about.optional_mapping("arrivals"), about.optional_fields(FAULT)
    jobs = tuple(starmap(_job, _rows(run, cell, ROWS)))
    drawn = plan(arrivals.get("kind"), [job.planned_s for job in jobs], [job.work for job in jobs])
    cpus = run.machine.get("cpu_count")
    return Stream(
        cell.id,
        cell.workload + under(cell.tweakset),
        jobs,
        slots,
        about.text("engine"),
        about.optional_text("policy") or "",
        arrivals,
        drawn=(("block", run.run_id, cell.block), *([("plan", drawn)] if drawn else [])),
        fault=fault.text(FAULT) if fault.value else "",
        unit=(run.run_id, cell.block),
        workload=cell.workload,
        tweakset=cell.tweakset,
        params=params_of(run, cell),
        cpus=cpus if isinstance(cpus, int) and not isinstance(cpus, bool) and cpus > 0 else None,
        nodes=nodes,
        checkpoint_s=about.up_to("checkpoint_s", LONGEST) or 0.0,
        retries=about.whole("retries") if about.has("retries") else 0,
        attempts=tuple(starmap(_attempt, _rows(run, cell, ATTEMPTS))),
        faults=tuple(starmap(_fault, _rows(run, cell, FAULT))),
        outages=_outages([*_rows(run, cell, NODES)]),
        classes=tuple(part.value for part in about.each("classes")) if about.has("classes") else (),
        origin=run.origin,
    )


def _rows(run: Run, cell: Cell, name: str) -> Iterator[tuple[Fields, dict[str, float]]]:
    for at, value in enumerate(cell.report.get(name, ())):
        row = Fields(value, run.origin, f"cell {cell.id}, report.{name}[{at}]")
        numbers = Fields({"row": value}, run.origin, row.place).known_numbers("row", CLOCK | AMOUNTS | {"priority"})
        for key, number in numbers.items():
            if key != "priority" and not (0 if key in AMOUNTS else -LONGEST) <= number <= LONGEST:
                row.refuse(f"has {key} = {number:g}, which cannot be")
        yield row, numbers


def _job(row: Fields, numbers: Mapping[str, float]) -> Job:
    priority = numbers.get("priority")
    if priority is not None and not (priority.is_integer() and abs(priority) <= LONGEST):
        row.refuse(f"has priority = {priority:g}, where a whole number belongs")
    result = row.known_numbers("result")
    for name in (name for name, value in result.items() if abs(value) > LARGEST_RESULT):
        row.refuse(f"has {name} = {result[name]:g}; a number up to {LARGEST_RESULT:g} belongs there")
    known: dict[str, Any] = {field: numbers.get(name) for field, name in OF_JOB.items()}
    known |= {field: row.optional_text(field.rstrip("_")) or "" for field in ("class_", "tenant")}
    known |= {name: max(1, row.whole(name)) if row.has(name) else 1 for name in ("replicas", "attempts")}
    return Job(
        row.whole("job"),
        outcome=row.one_of("outcome", OUTCOMES),
        priority=None if priority is None else int(priority),
        used={name: number for name, number in numbers.items() if name in USED},
        result=result,
        **known,
    )


def _attempt(row: Fields, numbers: Mapping[str, float]) -> Attempt:
    begin_s, end_s = numbers.get("admit_s", numbers.get("start_s")), numbers.get("end_s")
    checkpoints = int(numbers["checkpoints"]) if "checkpoints" in numbers else None
    about = row.whole("job"), row.whole("attempt"), row.optional_text("node")
    return Attempt(*about, begin_s, end_s, row.one_of("outcome", OUTCOMES), checkpoints, numbers.get("checkpoint_cost_s"))


def _at_s(row: Fields, numbers: Mapping[str, float]) -> float:
    if "at_s" not in numbers:
        row.refuse("has no at_s")
    return numbers["at_s"]


def _fault(row: Fields, numbers: Mapping[str, float]) -> Fault:
    job = row.whole("job") if row.has("job") else None
    return Fault(row.text("fault"), _at_s(row, numbers), numbers.get("until_s"), row.optional_text("node"), job)


def _outages(rows: Sequence[tuple[Fields, Mapping[str, float]]]) -> tuple[Outage, ...]:
    """Each loss of a node with its return. A return without a loss, or a second loss of what is lost, is no new outage."""
    lost: dict[str, float] = {}
    outages = []
    for row, numbers in sorted(rows, key=lambda both: both[1].get("at_s", 0.0)):
        node, what, at_s = row.text("node"), row.one_of("what", ("lost", "back")), _at_s(row, numbers)
        if what == "lost":
            lost.setdefault(node, at_s)
        elif node in lost:
            outages.append(Outage(node, lost.pop(node), at_s))
    return tuple(outages + [Outage(node, at_s) for node, at_s in lost.items()])


def in_order(streams: Iterable[Stream], refused: list[str]) -> list[Stream]:
    """Return the streams whose clocks went forward; each other adds a line to `refused`."""
    kept = []
    for stream in streams:
        times = [[time_s for name in TIMES if (time_s := getattr(job, name)) is not None] for job in stream.jobs]
        back = next((at for at, known in enumerate(times) if known != sorted(known)), None)
        if back is None:
            kept.append(stream)
        else:
            where = f"{stream.origin}: cell {stream.name}, report.{ROWS}[{back}]"
            refused.append(f"{where} has times that go back: one clock must read when a job was submitted, admitted, started and ended.")
    return kept


def streams_of(names: Sequence[str], refused: list[str]) -> list[Stream]:
    """Read the streams of the named runs, those `in_order`; each run or stream that cannot be used adds a line to `refused`.

    Raises: Refused, for none, and for runs of different machines.
    """
    every = read_each(of_one_machine(load_each(names, refused), refused), lambda run: streams(run, refused), refused)
    replicates = in_order([stream for _, of_run in every for stream in of_run], refused)
    if not replicates:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no stream of jobs.")
    return replicates


def of_one_machine(runs: Iterable[Run], refused: list[str]) -> Iterator[Run]:
    """Hand runs on as replicates: each once, and all of one machine; what differs between two is no matter of chance between blocks.

    Of a run that was resumed or copied the file with most in it is taken; each other adds a line to `refused`.
    Raises: Refused, at the first run of another machine.
    """
    machines, replicates = Machines(), list(runs)
    for run in replicates:
        if machines.number_of(run.machine):
            here, there = machines.known
            raise Refused(f"{run.origin}: is of another machine ({there}) than {replicates[0].origin} ({here}); name runs of one.")
    seen: dict[object, str] = {}
    for run in distinct_runs(replicates, refused):
        times = dict(times_of(run))
        if twin := next((seen[key] for key in times if key in seen), ""):
            refused.append(f"{run.origin}: has the very times of {twin}: a copy is no replicate, and is left out.")
        else:
            seen |= dict.fromkeys(times, run.origin)
            yield run


def distinct(streams: Sequence[Stream], notes: list[str]) -> list[Stream]:
    """Leave out streams that had the jobs of another at the same times, and note how many.

    Two runs of one seed have the same jobs, and a trace is the same in every block: what chance did to one it did to both.
    """
    seen: set[Hashable] = set()
    kept, copies = [], Counter[str]()
    for stream in streams:
        keys = {(stream.group, key) for key in stream.drawn}
        if keys & seen:
            copies[stream.group] += 1
        else:
            kept.append(stream)
        seen |= keys
    for group, count in copies.items():
        were = "stream had the jobs of another" if count == 1 else "streams had the jobs of others"
        notes.append(f"{group}: {count} {were} at the same times: a copy is no replicate, and is left out.")
    return kept
