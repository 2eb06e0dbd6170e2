"""Read streams of jobs from saved runs, for every question about jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)

from msgspec import Meta

from analysis.arms import distinct as distinct_runs
from analysis.arms import times_of
from analysis.checks import lost_cells
from analysis.formats.checked import Part
from analysis.labels import Machines
from analysis.load import load_each, read_each
from analysis.terms import AGAIN, STOCK, Cell, Refused, Run, Unreadable
from analysis.wording import counted
from control.saved import Count, Ordinal

# Of a cell's report.
ROWS, STREAM, ATTEMPTS, FAULT, NODES = ("job", "stream", "attempt", "fault", "node")
CLOSED, DETERMINISTIC = "closed", "deterministic"  # kinds of arrivals
TIMES = ("submit_s", "admit_s", "start_s", "end_s")
USED = frozenset({"cpu_s", "throttled_s", "max_rss_mib", "memory_peak_mib", "cores", "memory_mib"})
LARGEST_RESULT = 1e15  # that a job says of itself
LONGEST = 1e10  # seconds; a clock that reads more counts something else
MOST_SLOTS = 10_000_000
DIGITS = 6  # to the microsecond: a plan that was written and read again is the same plan
LOSS = "loss_percent"  # the parameter of a workload over a line that loses packets
# Parameters of what strikes a stream, by how they begin, and of what is done against it; steps
# follow from the number of jobs.
OF_FAULT = "fault"
AGAINST = ("checkpoint_s", "retries", "patience_s")
FOLLOWS = ("steps", "warmup_steps")

Clock = Annotated[float, Meta(ge=-LONGEST, le=LONGEST)]
Amount = Annotated[float, Meta(ge=0, le=LONGEST)]
Record = TypeVar("Record")
Unit = tuple[str, int]  # run and block: what is replicated
# What was asked for: parameters and their values, and the tweak set.
Condition = tuple[tuple[str, str], ...]


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
    def ran_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class JobRun:
    """One job; times are those of one monotonic clock, None if something did not happen.

    A slot is taken from `admit_s`, or from `start_s` where nobody admits, to `end_s`. `replicas` is
    how many slots it takes at once. With more than one of `attempts`, admission and start are the
    first one's and the end is the last one's. `lost_s` is time in attempts whose work no checkpoint
    kept. `used` has what is known of `USED`, `result` the job's own numbers.
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
        times = self.submit_s, self.admit_s, self.start_s, self.end_s
        known = [time for time in times if time is not None]
        return Times(*known) if len(known) == len(times) else None

    @property
    def done(self) -> bool:
        return self.outcome == "done"

    @property
    def done_at_once(self) -> bool:
        """Return whether the job finished in its first attempt; others are not representative."""
        return self.done and self.attempts == 1

    @property
    def response_s(self) -> float | None:
        if (
            not self.done
            or self.submit_s is None
            or self.end_s is None
            or self.end_s < self.submit_s
        ):
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
    at_s: Clock
    until_s: Clock | None = None
    node: str | None = None
    job: int | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """A node that was lost, and when it came back; None if never."""

    node: str
    at_s: float
    back_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """One run of a stream of jobs.

    `group` names those of equal conditions, which are each other's replicates. Streams that share
    any of `drawn` had the same jobs, as those of one `unit` and tweak set. `measured`: starts and
    ends are recorded; a trace of arrivals has none.
    """

    name: str
    group: str
    jobs: tuple[JobRun, ...]
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
        """Return whether jobs arrive when others end; an open queue's models do not apply then."""
        return self.arrivals.get("kind") == CLOSED

    @property
    def done_with_times(self) -> list[tuple[JobRun, Times]]:
        return [
            (job, times)
            for job in self.jobs
            if job.done_at_once and (times := job.times) is not None
        ]

    @property
    def same_jobs(self) -> tuple[tuple[int, float | None, float | None], ...]:
        """Return the identity of a stream's jobs: number, planned submission and size of each."""
        jobs = (
            (job.number, None if job.planned_s is None else round(job.planned_s, DIGITS), job.work)
            for job in self.jobs
        )
        return tuple(sorted(jobs, key=repr))

    @property
    def condition(self) -> Condition:
        """Everything requested but faults and measures against them; stock-again is stock."""
        return self.condition_without(OF_FAULT, *AGAINST)

    def condition_without(self, *without: str) -> Condition:
        """Return what was requested, except parameters with these prefixes."""
        return condition(self.params, self.tweakset, *without, *FOLLOWS)

    @property
    def fault_params(self) -> dict[str, object]:
        of_fault = {
            name.removeprefix(f"{OF_FAULT}_"): value
            for name, value in self.params.items()
            if name.startswith(f"{OF_FAULT}_")
        }
        params = {**of_fault, "checkpoint_s": self.checkpoint_s, "retries": self.retries}
        return {name: value for name, value in params.items() if value not in {None, 0}}


def under(tweakset: str) -> str:
    return "" if tweakset in {STOCK, AGAIN} else f" under {tweakset}"


def condition(params: Mapping[str, object], tweakset: str, *without: str) -> Condition:
    """Return the conditions of a cell or stream, without parameters that have these prefixes."""
    known = {
        name: str(value)
        for name, value in params.items()
        if value is not None and not name.startswith(without)
    }
    return (
        *sorted(known.items()),
        *([] if tweakset in {STOCK, AGAIN} else [("tweak set", tweakset)]),
    )


def params_of(run: Run, cell: Cell) -> Mapping[str, object]:
    return run.workloads[cell.workload].params if cell.workload in run.workloads else {}


def _tells(cell: Cell) -> bool:
    return ROWS in cell.report or STREAM in cell.report


def tells_of_jobs(run: Run) -> bool:
    return any(map(_tells, run.cells))


def loses_packets(run: Run) -> bool:
    return any(LOSS in workload.params for workload in run.workloads.values())


def streams(run: Run, refused: list[str], *, copies: bool = False) -> list[Stream]:
    """Read every stream of a run, one per cell; each that cannot be used adds a line to `refused`.

    A block's seed draws its stream, so a cell of `stock-again` has the jobs of `stock`: it is read
    only where stock was not measured, or with `copies`. Raises: Refused, for a run without jobs.
    """
    if not tells_of_jobs(run):
        raise Refused(f"{run.origin}: no cell has a stream of jobs.")
    studies = {cell.study for cell in run.cells if _tells(cell)}
    cells = [
        cell
        for cell in run.cells
        if _tells(cell) or (cell.outcome != "measured" and cell.study in studies)
    ]
    every = [*read_cells(run, cells, _stream, refused)]
    if copies:
        return every
    stock = {(stream.workload, stream.unit) for stream in every if stream.tweakset == STOCK}
    return [
        stream
        for stream in every
        if stream.tweakset != AGAIN or (stream.workload, stream.unit) not in stock
    ]


def read_cells(
    run: Run, cells: Iterable[Cell], read: Callable[[Run, Cell], Record], refused: list[str]
) -> Iterator[Record]:
    """Read cells; add a line to `refused` for each that was not measured or cannot be read."""
    cells = list(cells)
    refused += lost_cells(run, cells)
    for cell in cells:
        if cell.outcome != "measured":
            continue
        try:
            yield read(run, cell)
        except Unreadable as error:
            refused.append(str(error))


def plan(kind: object, planned_s: Sequence[float | None], work: Sequence[float | None]) -> Hashable:
    """Return the random part of a stream: planned arrivals, else sizes, if either is random."""
    times = () if kind == DETERMINISTIC else _drawn(planned_s)
    return times or _drawn(work) or None


def _drawn(values: Iterable[float | None]) -> tuple[float, ...]:
    known = [round(value, DIGITS) for value in values if value is not None]
    return tuple(known) if len(set(known)) > 1 else ()


Outcome = Literal["done", "failed", "killed", "never started", "never ended"]


class StreamRow(TypedDict):
    """A cell's report of its stream; here and below, other fields are ignored."""

    slots: Annotated[int, Meta(ge=1, le=MOST_SLOTS)]
    engine: str
    policy: NotRequired[str | None]
    arrivals: NotRequired[dict[str, Any] | None]
    fault: NotRequired[dict[str, Any] | None]
    nodes: NotRequired[Ordinal]
    checkpoint_s: NotRequired[Amount | None]
    retries: NotRequired[Count]
    classes: NotRequired[tuple[dict[str, Any], ...]]


class AttemptRow(TypedDict):
    job: Count
    attempt: Count
    outcome: Outcome
    node: NotRequired[str | None]
    admit_s: NotRequired[Clock | None]
    start_s: NotRequired[Clock | None]
    end_s: NotRequired[Clock | None]
    checkpoints: NotRequired[Count | None]
    checkpoint_cost_s: NotRequired[Amount | None]


class NodeRow(TypedDict):
    node: str
    what: Literal["lost", "back"]
    at_s: Clock


# Of a job's row: what stands in which column.
JobRow = TypedDict(
    "JobRow",
    {
        "job": Required[Count],
        "outcome": Required[Outcome],
        "class": str | None,
        "tenant": str | None,
        "priority": Annotated[int, Meta(ge=-(10**10), le=10**10)] | None,
        "replicas": Count | None,
        "attempts": Count | None,
        "result": dict[
            str, Annotated[float, Meta(ge=-LARGEST_RESULT, le=LARGEST_RESULT)] | str | None
        ]
        | None,
        **dict.fromkeys((*TIMES, "planned_submit_s", "due_s"), Clock | None),  # type: ignore[misc]
        **dict.fromkeys((*USED, "work", "predicted_s", "lost_s"), Amount | None),
    },
    total=False,
)


def _stream(run: Run, cell: Cell) -> Stream:
    report = Part(cell.report, run.origin, f"cell {cell.id}, report")
    if not cell.report.get(ROWS) or len(cell.report.get(STREAM, ())) != 1:
        report.refuse("must have one row of the stream, and jobs", "measure it again")
    about = report.at(STREAM, 0).read(StreamRow)
    if about.get("nodes", 1) > about["slots"]:
        report.at(STREAM, 0).refuse(
            f"has {about.get('nodes')} nodes but only {about['slots']} slots"
        )
    rows = {
        name: [*report.at(name).each()] if name in cell.report else []
        for name in (ROWS, ATTEMPTS, FAULT, NODES)
    }
    arrivals, jobs, cpus = (
        about.get("arrivals") or {},
        tuple(job_of(row.read(JobRow)) for row in rows[ROWS]),
        run.machine.get("cpu_count"),
    )
    drawn = plan(arrivals.get("kind"), [job.planned_s for job in jobs], [job.work for job in jobs])
    fault = about.get("fault") or {}
    if fault and not isinstance(fault.get(FAULT), str):
        report.at(STREAM, 0).refuse("has a fault without a name")
    return Stream(
        cell.id,
        cell.workload + under(cell.tweakset),
        jobs,
        about["slots"],
        about["engine"],
        about.get("policy") or "",
        arrivals,
        drawn=(("block", run.run_id, cell.block), *([("plan", drawn)] if drawn else [])),
        fault=fault.get(FAULT, ""),
        unit=(run.run_id, cell.block),
        workload=cell.workload,
        tweakset=cell.tweakset,
        params=params_of(run, cell),
        cpus=cpus if isinstance(cpus, int) and not isinstance(cpus, bool) and cpus > 0 else None,
        nodes=about.get("nodes", 1),
        checkpoint_s=about.get("checkpoint_s") or 0.0,
        retries=about.get("retries", 0),
        attempts=tuple(map(_attempt, rows[ATTEMPTS])),
        faults=tuple(row.made(Fault, name=row.value.get("fault")) for row in rows[FAULT]),
        outages=_outages([row.read(NodeRow) for row in rows[NODES]]),
        classes=about.get("classes", ()),
        origin=run.origin,
    )


def job_of(row: JobRow) -> JobRun:
    known: dict[str, Any] = {**row}
    result = known.get("result") or {}
    return JobRun(
        known["job"],
        **{
            name: known.get(name)
            for name in (*TIMES, "work", "predicted_s", "due_s", "lost_s", "priority")
        },
        planned_s=known.get("planned_submit_s"),
        outcome=known["outcome"],
        class_=known.get("class") or "",
        tenant=known.get("tenant") or "",
        replicas=known.get("replicas") or 1,
        attempts=known.get("attempts") or 1,
        used={name: known[name] for name in USED if known.get(name) is not None},
        result={
            name: float(value) for name, value in result.items() if isinstance(value, int | float)
        },
    )


def _attempt(row: Part) -> Attempt:
    known = row.read(AttemptRow)
    begin_s = known.get("admit_s")
    begin_s = known.get("start_s") if begin_s is None else begin_s
    ends = (
        begin_s,
        known.get("end_s"),
        known["outcome"],
        known.get("checkpoints"),
        known.get("checkpoint_cost_s"),
    )
    return Attempt(known["job"], known["attempt"], known.get("node"), *ends)


def _outages(rows: Sequence[NodeRow]) -> tuple[Outage, ...]:
    lost: dict[str, float] = {}
    outages = []
    for row in sorted(rows, key=itemgetter("at_s")):
        if row["what"] == "lost":
            lost.setdefault(row["node"], row["at_s"])
        elif row["node"] in lost:
            outages.append(Outage(row["node"], lost.pop(row["node"]), row["at_s"]))
    return tuple(outages + [Outage(node, at_s) for node, at_s in lost.items()])


def in_order(streams: Iterable[Stream], refused: list[str]) -> list[Stream]:
    """Return the streams whose clocks went forward; add the others to `refused`."""
    kept = []
    for stream in streams:
        times = [
            [time_s for name in TIMES if (time_s := getattr(job, name)) is not None]
            for job in stream.jobs
        ]
        back = next((at for at, known in enumerate(times) if known != sorted(known)), None)
        if back is None:
            kept.append(stream)
        else:
            where = f"{stream.origin}: cell {stream.name}, report.{ROWS}[{back}]"
            refused.append(
                f"{where} has times that go back: one clock must time a job's submission, "
                "admission, start and end."
            )
    return kept


def streams_of(names: Sequence[str], refused: list[str]) -> list[Stream]:
    """Read the streams of the named runs, `in_order`; each unusable one adds to `refused`.

    Raises: Refused, for none, and for runs of different machines.
    """
    every = read_each(
        of_one_machine(load_each(names, refused), refused),
        lambda run: streams(run, refused),
        refused,
    )
    replicates = in_order([stream for _, of_run in every for stream in of_run], refused)
    if not replicates:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no stream of jobs.")
    return replicates


def of_one_machine(runs: Iterable[Run], refused: list[str]) -> Iterator[Run]:
    """Yield runs that are replicates: each once, and all of one machine.

    A difference between machines is not chance between blocks. Of a resumed or copied run, the
    file with most in it is taken; each other adds a line to `refused`.
    Raises: Refused, at the first run of another machine.
    """
    machines, replicates = Machines(), list(runs)
    for run in replicates:
        if machines.number_of(run.machine):
            here, there = machines.known
            raise Refused(
                f"{run.origin}: ran on another machine ({there}) than {replicates[0].origin} "
                f"({here}); name runs of one machine."
            )
    seen: dict[object, str] = {}
    for run in distinct_runs(replicates, refused):
        times = dict(times_of(run))
        if twin := next((seen[key] for key in times if key in seen), ""):
            refused.append(
                f"{run.origin}: left out as a copy, not a replicate: it has exactly the times of "
                f"{twin}."
            )
        else:
            seen |= dict.fromkeys(times, run.origin)
            yield run


def distinct(streams: Sequence[Stream], notes: list[str]) -> list[Stream]:
    """Drop streams that repeat an earlier stream's jobs and times, and note how many.

    Two runs of one seed have the same jobs, and a trace is the same in every block: what chance did
    to one it did to both.
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
        notes.append(
            f"{group}: {counted(count, 'stream')} left out as copies, not replicates: jobs and "
            "times equal another's."
        )
    return kept
