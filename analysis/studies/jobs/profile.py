"""Where the time of a job goes, by class and system, and which system runs a class soonest.

The time from submission to end is divided: waiting for a slot, starting up (from admission until the job's own work begins, by its own word
`startup_s` where it gives one), and then computing, held back by its CPU limit, and neither. Computing is CPU time over wall time of its
replicas, at most 1: a job of several threads is not more than busy. In data parts and gains are fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Columns, Section, Word, bullets, table_of
from analysis.terms import Refused

from .claims import CANT_TELL, Contrast, apart, claimed, claims_first, column, contrasts_of, faster, rows_of, verdict
from .estimates import Figure, figure, middle, over_runs

if TYPE_CHECKING:
    import pandas as pd

    from .records import Job, Stream, Times

WAITING, STARTING, COMPUTING, LIMITED, OTHER = "waiting", "start-up", "computing", "CPU limit", "other"
PARTS = (WAITING, STARTING, COMPUTING, LIMITED, OTHER)
SPARE = {LIMITED: 1, WAITING: 2, COMPUTING: 3, STARTING: 4, OTHER: 5}  # of a narrow page the largest go first
AT_WORK = "at work"  # the last three together, where CPU time is not known
NOTED = 0.05  # a share of waiting that somebody will ask about
LEGEND = (
    ("time s", "of a job with its slots, from admission to end; means of runs with their 95 % interval, where there are three runs."),
    ("%", "of the response time: waiting for a slot, start-up, computing, held back by the CPU limit, neither."),
    ("CPU", "CPU time over what the limit gives, or the machine has where there is none."),
    ("memory", "the peak of what counts against the limit, files in memory too, over it."),
    ("core s", "a job: its time times the CPUs it was given, used or not."),
)


@dataclass(frozen=True, slots=True)
class ClassProfile:
    """One class on one system, each figure the mean over `runs` of a run's mean over its jobs. None: not known.

    `time_s` is how long a job held its slots, `response_s` from submission on; `core_s` is time times the CPUs it was given (its limits, or
    the slots' share of the machine where it has none). `parts` are shares of the response time and sum to 1 where all are known. `cpu` is
    CPU time over that of its limit, or of the machine; `memory` the peak of what counts against the limit over it, the worst job of a run.
    `bottleneck` is the largest part, `share` what it is of the response time. In a `closed` stream, whose customers wait for each other
    because there are as many as slots whatever their replicas, both are of `time_s`, waiting being no part of it.
    """

    class_: str
    system: str
    runs: int
    jobs: int
    lost: int
    why_lost: str
    time_s: Figure
    response_s: Figure
    work_per_s: Figure | None
    core_s: Figure | None
    parts: Mapping[str, Figure]
    cpu: Figure | None
    memory: Figure | None
    bottleneck: str
    share: Figure | None
    closed: bool


@dataclass(frozen=True, slots=True)
class BestSystem:
    """The system on which a class takes least time, against the `next` best; `times` is how many times as long it takes there."""

    class_: str
    system: str
    next: str
    times: Contrast | None
    cheapest: str


def profile(streams: Sequence[Stream]) -> tuple[list[ClassProfile], list[BestSystem]]:
    """Profile each class of jobs on each system, the soonest system first, and hold it against the next.

    Raises: Refused, where no job was done at once with all its times.
    """
    import pandas as pd

    rows = [
        {"class_": job.class_, "system": stream.group, "run": stream.unit[0], "block": stream.unit[1], **_measures(stream, job, times)}
        for stream in streams
        for job, times in stream.done_with_times
    ]
    if not rows:
        raise Refused("No job was done in its first attempt with all its times: nothing can be profiled.")
    jobs = pd.DataFrame(rows, columns=[*rows[0], *(name for name in MEASURED if name not in rows[0])])
    jobs = jobs.astype(dict.fromkeys(MEASURED, float))
    classes = list(dict.fromkeys(job.class_ for stream in streams for job in stream.jobs))
    profiles = [
        _profile(str(class_), str(system), own, [stream for stream in streams if stream.group == system])
        for (class_, system), own in jobs.groupby(["class_", "system"], sort=False)
    ]
    profiles.sort(key=lambda row: (classes.index(row.class_), row.time_s.value))
    return profiles, _best(profiles, jobs)


def _profile(class_: str, system: str, jobs: pd.DataFrame, streams: Sequence[Stream]) -> ClassProfile:
    by_run = [jobs["run"], jobs["block"]]

    def mean(values: pd.Series[float], of_run: str = "mean") -> Figure | None:
        runs = getattr(values.groupby(by_run), of_run)(skipna=False)
        return over_runs(runs.dropna().tolist())

    known = {name: mean(jobs[name], "max" if name == "memory" else "mean") for name in MEASURED}
    closed = all(stream.closed for stream in streams)
    parts = {part: figure for part in PARTS if (figure := known[part]) is not None}
    inside = {part: figure.value for part, figure in parts.items() if not (closed and part == WAITING)}
    if COMPUTING not in parts and (at_work := known[AT_WORK]) is not None:
        inside[AT_WORK] = at_work.value
    bottleneck = max(inside, key=lambda part: inside[part]) if inside else OTHER
    whole = 1 - jobs[WAITING].fillna(0.0) * closed
    at_once = {id(job) for stream in streams for job, _ in stream.done_with_times}
    lost = [_why_lost(job) for stream in streams for job in stream.jobs if job.class_ == class_ and id(job) not in at_once]
    return ClassProfile(
        class_=class_,
        system=system,
        runs=len(jobs[["run", "block"]].drop_duplicates()),
        jobs=len(jobs),
        lost=len(lost),
        why_lost=", ".join(f"{count} {name}" for name, count in Counter(lost).items()),
        **{name: known[name] for name in MEASURES},  # type: ignore[arg-type]  # times are known of all jobs here
        parts=parts,
        bottleneck=bottleneck,
        share=mean(jobs[bottleneck] / whole.where(whole > 0)),
        closed=closed,
    )


def _best(profiles: Sequence[ClassProfile], jobs: pd.DataFrame) -> list[BestSystem]:
    """Hold the soonest system of each class against the next best."""
    systems = {class_: [row for row in profiles if row.class_ == class_] for class_ in dict.fromkeys(row.class_ for row in profiles)}
    rank = {(class_, row.system): name for class_, rows in systems.items() for name, row in zip(("soonest", "next"), rows, strict=False)}
    runs = jobs.groupby(["class_", "system", "run", "block"], sort=False)["time_s"].mean().reset_index()
    ranked = [row._asdict() | {"rank": rank[row.class_, row.system]} for row in rows_of(runs) if (row.class_, row.system) in rank]
    times = {row.class_: row for row in contrasts_of(ranked, "rank", "next", {"time_s": "log"}, by=["class_"])}
    result = []
    for class_, rows in systems.items():
        costs = [(row.core_s.value, row.system) for row in rows if row.core_s is not None]
        cheapest = min(costs, key=lambda cost: cost[0])[1] if costs else ""
        after = rows[1].system if rows[1:] else ""
        result.append(BestSystem(class_, rows[0].system, after, times.get(class_), cheapest))
    return result


MEASURES = ("time_s", "response_s", "work_per_s", "core_s", "cpu", "memory")
MEASURED = (*MEASURES, *PARTS, AT_WORK)


def _measures(stream: Stream, job: Job, times: Times) -> dict[str, float | None]:
    """What is measured of one job, None or missing where it is not known: its measures and the parts of its response time."""
    used, cores = job.used, job.used.get("cores")
    slots_cores = None if stream.cpus is None or not stream.slots else stream.cpus / stream.slots
    given = cores or slots_cores
    limit = cores * job.replicas if cores else stream.cpus
    memory_mib, peak_mib = used.get("memory_mib"), used.get("memory_peak_mib")
    parts = parts_of(job, times)
    return {
        "time_s": times.held_s,
        "response_s": times.response_s,
        "work_per_s": job.work / times.held_s if job.work is not None and times.held_s else None,
        "core_s": None if given is None else given * job.replicas * times.held_s,
        "cpu": None if limit is None or "cpu_s" not in used or times.ran_s <= 0 else used["cpu_s"] / (times.ran_s * limit),
        "memory": peak_mib / (memory_mib * job.replicas) if memory_mib and peak_mib is not None else None,
        AT_WORK: max(0.0, 1 - parts[WAITING] - parts[STARTING]) if parts else None,
        **parts,
    }


def parts_of(job: Job, times: Times) -> dict[str, float]:
    """Return the shares of a job's response time; empty where it took none, without what happens at work where that is not known."""
    whole_s, runs_s = times.response_s, times.ran_s
    if whole_s <= 0:
        return {}
    startup_s = min(runs_s, max(0.0, job.result.get("startup_s", 0.0)))
    waiting, starting = (times.admit_s - times.submit_s) / whole_s, (times.start_s - times.admit_s + startup_s) / whole_s
    at_work = max(0.0, 1 - (waiting + starting))
    before = {WAITING: waiting, STARTING: starting}
    if "cpu_s" not in job.used or runs_s <= 0:
        return before
    replica_s = runs_s * job.replicas
    busy = min(1.0, job.used["cpu_s"] / replica_s)
    limited = min(1 - busy, job.used.get("throttled_s", 0.0) / replica_s)
    return {**before, COMPUTING: busy * at_work, LIMITED: limited * at_work, OTHER: max(0.0, 1 - busy - limited) * at_work}


def _why_lost(job: Job) -> str:
    return job.outcome if not job.done else "done only in a later attempt" if job.attempts > 1 else "without all times"


def systems_of(streams: Sequence[Stream]) -> dict[str, str]:
    """Name systems by the parameters that differ between them; one alone has its whole name."""
    first = {stream.group: dict(stream.condition_without()) for stream in streams}
    return {group: name or group for group, name in zip(first, apart([*first.values()]), strict=True)}


def answer(streams: Sequence[Stream], refused: Sequence[str]) -> Answer:
    """On which system each class is faster than on the next best, and a table a class."""
    rows, best = profile(streams)
    names = systems_of(streams)
    systems = claims_first(best, _word)
    first = [(_word(system), f"{system.class_ or 'jobs'} on {names[system.system]}") for system in systems]
    return Answer(
        title=claimed(first, "on the next best system") if len(names) > 1 else f"One system alone: {first[0][1]}.",
        sections=[_class(system, [row for row in rows if row.class_ == system.class_], names) for system in systems],
        legend=LEGEND,
        data={
            "profile": rows,
            "best": best,
        },
        refused=refused,
    )


def _word(best: BestSystem) -> Word:
    return CANT_TELL if best.next and (best.times is None or best.times.value is None) else verdict(best.times)


def _class(best: BestSystem, rows: Sequence[ClassProfile], names: Mapping[str, str]) -> Section:
    whole = "{:.0f}".format
    columns: Columns = [
        column("system", write=names.__getitem__, left=True),
        column("time s\n[95 %]", "time_s", figure),
        column("work\n/s", "work_per_s", middle),
        column("core\ns", "core_s", middle),
        column("CPU\n%", "cpu", lambda cpu: whole(100 * cpu.value)),
        column("memory\n%", "memory", lambda memory: whole(100 * memory.value)),
        column("bottleneck", left=True),
        *(
            (Column(f"{name}\n%", name, lambda part: whole(100 * part.value), spare=SPARE[name]), partial(_part, name=name))
            for name in PARTS
        ),
    ]
    jobs, runs = sum(row.jobs for row in rows), max(row.runs for row in rows)
    return Section(f"{best.class_ or 'jobs'}: {jobs} jobs in {runs} runs", [table_of(columns, rows), *bullets(_lines(best, rows, names))])


def _part(row: ClassProfile, name: str) -> Figure | None:
    return row.parts.get(name)


def _lines(best: BestSystem, rows: Sequence[ClassProfile], names: Mapping[str, str]) -> Iterator[str]:
    waiting = [names[row.system] for row in rows if row.closed and WAITING in row.parts and row.parts[WAITING].value >= NOTED]
    if waiting:
        others = "jobs wait for others of the stream, which are as many as its slots"
        yield f"{', '.join(waiting)}: {others}: no part of time s, nor a bottleneck."
    if best.next:
        yield f"Soonest on {names[best.system]}; {faster(best.times, names[best.next])}."
    if best.cheapest and best.next and best.cheapest != best.system:
        yield f"Fewest core seconds a job: {names[best.cheapest]}."
    yield from (
        f"{names[row.system]}: {row.lost} of {row.lost + row.jobs} jobs are not counted: {row.why_lost}." for row in rows if row.lost
    )
