"""Where the time of a job goes, by class and system, and which system runs a class soonest.

The time from submission to end is divided: waiting for a slot, starting up (from admission until the job's own work begins, by its own word
`startup_s` where it gives one), and then computing, held back by its CPU limit, and neither. Computing is CPU time over wall time of its
replicas, at most 1: a job of several threads is not more than busy.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from analysis.answer import Line, bullets, marked, of_parts, text_table
from analysis.plain import one_line
from analysis.terms import Refused

from .estimates import average, gain, over_runs, unknown_gain
from .output import NONE, faster, figure, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from analysis.answer import Answer, Part
    from analysis.terms import Effect

    from .estimates import Figure
    from .records import Job, Stream, Times, Unit

WAITING, STARTING, COMPUTING, LIMITED, OTHER = "waiting", "start-up", "computing", "CPU limit", "other"
PARTS = (WAITING, STARTING, COMPUTING, LIMITED, OTHER)
AT_WORK = "at work"  # the last three together, where CPU time was not told
TIME = "job_time_s"


@dataclass(frozen=True, slots=True)
class ClassProfile:
    """One class on one system, each figure the mean over `runs` of a run's mean over its jobs. None: not told.

    `time_s` is how long a job held its slots, `response_s` from submission on; `core_s` is time times the CPUs it was given (its limits, or
    the slots' share of the machine where it has none). `parts` are shares of the response time and sum to 1 where all are known. `cpu` is
    CPU time over that of its limit, or of the machine; `memory` the peak of what counts against the limit over it, the worst job of a run.
    `bottleneck` is the largest part, `share` what it is of the response time. In a `closed` stream, whose customers wait for each other
    because there are as many as slots whatever their replicas, both are of `time_s`, waiting being no part of it. `values` are `time_s`
    by run.
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
    values: Mapping[Unit, float]


@dataclass(frozen=True, slots=True)
class BestSystem:
    """The system on which a class takes least time, against the `next` best; `effect` is its gain, None where `why` says."""

    class_: str
    system: str
    next: str
    effect: Effect | None
    cheapest: str
    why: str = ""


def profile(streams: Sequence[Stream]) -> tuple[list[ClassProfile], list[BestSystem]]:
    by_system: dict[str, list[Stream]] = {}
    for stream in streams:
        by_system.setdefault(stream.group, []).append(stream)
    classes = list(dict.fromkeys(job.class_ for stream in streams for job in stream.jobs))
    rows = [row for class_ in classes for system, its in by_system.items() if (row := _row(class_, system, its)) is not None]
    if not rows:
        raise Refused("No job was done in its first attempt and told all its times: nothing can be profiled.")
    rows.sort(key=lambda row: (classes.index(row.class_), row.time_s.value))
    return rows, [_best([row for row in rows if row.class_ == class_]) for class_ in dict.fromkeys(row.class_ for row in rows)]


def done_with_times(jobs: Iterable[Job]) -> list[tuple[Job, Times]]:
    return [(job, times) for job in jobs if job.done_at_once and (times := job.times) is not None]


def _row(class_: str, system: str, streams: Sequence[Stream]) -> ClassProfile | None:
    jobs = {stream.unit: [job for job in stream.jobs if job.class_ == class_] for stream in streams}
    done = {unit: ended for unit, of_run in jobs.items() if (ended := done_with_times(of_run))}
    if not done:
        return None
    cpus = {stream.unit: stream.cpus for stream in streams}
    share = {stream.unit: None if stream.cpus is None or not stream.slots else stream.cpus / stream.slots for stream in streams}

    def figure(of: Callable[[Job, Times, Unit], float | None], of_run: Callable[[Sequence[float]], float] = average) -> Figure | None:
        values = [[of(job, times, unit) for job, times in ended] for unit, ended in done.items()]
        return over_runs([of_run([value for value in run if value is not None]) for run in values if None not in run])

    times_s, responses_s = figure(lambda _, times, __: times.held_s), figure(lambda _, times, __: times.response_s)
    assert times_s is not None  # noqa: S101 some job is done
    assert responses_s is not None  # noqa: S101 as above
    parts = {part: its for part in PARTS if (its := figure(_part(part))) is not None}
    counted = {id(job) for ended in done.values() for job, _ in ended}
    lost = [job for of_run in jobs.values() for job in of_run if id(job) not in counted]
    closed = all(stream.closed for stream in streams)
    inside = {part: its.value for part, its in parts.items() if not (closed and part == WAITING)}
    at_work = figure(_part(AT_WORK)) if COMPUTING not in parts else None
    inside |= {} if at_work is None else {AT_WORK: at_work.value}
    bottleneck = max(inside, key=lambda part: inside[part]) if inside else OTHER
    return ClassProfile(
        class_=class_,
        system=system,
        runs=len(done),
        jobs=sum(map(len, done.values())),
        lost=len(lost),
        why_lost=_why(lost),
        time_s=times_s,
        response_s=responses_s,
        work_per_s=figure(lambda job, times, _: job.work / times.held_s if job.work is not None and times.held_s else None),
        core_s=figure(lambda job, times, unit: _core_s(job, times, share[unit])),
        parts=parts,
        cpu=figure(lambda job, times, unit: _cpu(job, times, cpus[unit])),
        memory=figure(lambda job, _, __: _memory(job), max),
        bottleneck=bottleneck,
        share=figure(lambda job, times, _: _share(job, times, bottleneck, closed=closed)),
        closed=closed,
        values={unit: average([times.held_s for _, times in ended]) for unit, ended in done.items()},
    )


def _best(rows: Sequence[ClassProfile]) -> BestSystem:
    costs = [(row.core_s.value, row.system) for row in rows if row.core_s is not None]
    cheapest = min(costs, key=lambda cost: cost[0])[1] if costs else ""
    if len(rows) < 2:
        return BestSystem(rows[0].class_, rows[0].system, "", None, cheapest)
    first, second = rows[:2]
    effect = gain(TIME, second.values, first.values)
    why = unknown_gain(second.values, first.values) if effect is None else ""
    return BestSystem(first.class_, first.system, second.system, effect, cheapest, why)


def _why(lost: Iterable[Job]) -> str:
    counts: dict[str, int] = {}
    for job in lost:
        name = job.outcome if job.outcome != "done" else "done only in a later attempt" if job.attempts > 1 else "told no times"
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _parts(job: Job, times: Times) -> dict[str, float]:
    """The shares of a job's response time; empty where it took none, without what happens at work where that is not told."""
    whole_s, runs_s = times.response_s, times.ran_s
    if whole_s <= 0:
        return {}
    startup_s = min(runs_s, max(0.0, job.result.get("startup_s", 0.0)))
    before = {
        WAITING: (times.admit_s - times.submit_s) / whole_s,
        STARTING: (times.start_s - times.admit_s + startup_s) / whole_s,
    }
    at_work = max(0.0, 1 - sum(before.values()))
    if "cpu_s" not in job.used or runs_s <= 0:
        return before
    replica_s = runs_s * job.replicas
    busy = min(1.0, job.used["cpu_s"] / replica_s)
    limited = min(1 - busy, job.used.get("throttled_s", 0.0) / replica_s)
    return {**before, COMPUTING: busy * at_work, LIMITED: limited * at_work, OTHER: max(0.0, 1 - busy - limited) * at_work}


def _part(name: str) -> Callable[[Job, Times, Unit], float | None]:
    return lambda job, times, _: _of(_parts(job, times), name)


def _of(parts: dict[str, float], name: str) -> float | None:
    return max(0.0, 1 - parts[WAITING] - parts[STARTING]) if name == AT_WORK and parts else parts.get(name)


def _share(job: Job, times: Times, part: str, *, closed: bool) -> float | None:
    parts = _parts(job, times)
    whole = 1 - parts[WAITING] if closed and parts else 1.0
    value = _of(parts, part)
    return value / whole if value is not None and whole > 0 else None


def _core_s(job: Job, times: Times, share: float | None) -> float | None:
    cores = job.used.get("cores") or share
    return None if cores is None else cores * job.replicas * times.held_s


def _cpu(job: Job, times: Times, cpus: int | None) -> float | None:
    limit = job.used["cores"] * job.replicas if job.used.get("cores") else cpus
    return None if limit is None or "cpu_s" not in job.used or times.ran_s <= 0 else job.used["cpu_s"] / (times.ran_s * limit)


def _memory(job: Job) -> float | None:
    limit, peak = job.used.get("memory_mib"), job.used.get("memory_peak_mib")
    return peak / (limit * job.replicas) if limit and peak is not None else None


UNDER = " under "


def short(systems: Sequence[str]) -> dict[str, str]:
    names = list(dict.fromkeys(systems))
    split = {name: name.partition(UNDER) for name in names}
    parts = {name: [part for part in workload.split(":")[1:] if "=" in part] for name, (workload, _, _) in split.items()}
    same = set.intersection(*map(set, parts.values())) if parts else set()
    shorter = {}
    for name, (workload, under, tweakset) in split.items():
        own = " ".join(part for part in parts[name] if part not in same)
        shorter[name] = f"{own or (workload.partition(':')[0] if len(names) == 1 else 'as classes have it')}{under}{tweakset}"
    return shorter if len(set(shorter.values())) == len(names) else {name: name for name in names}


PROFILE_LEGEND = (
    ("time s", "of a job with its slots, from admission to end; means of runs with their 95 % interval, where there are three runs."),
    ("%", "of the response time: waiting for a slot, start-up, computing, held back by the CPU limit, neither."),
    ("CPU", "CPU time over what the limit gives, or the machine has where there is none."),
    ("memory", "the peak of what counts against the limit, files in memory too, over it."),
    ("core s", "a job: its time times the CPUs it was given, used or not."),
)
NOTED = 0.05  # a share of waiting that somebody will ask about


def answer(streams: Sequence[Stream], refused: Sequence[str]) -> Answer:
    """In its data parts are fractions, effects gains as fractions, `values` by run."""
    rows, best = profile(streams)
    profiles = [
        {**asdict(row), "values": [{"run": run, "block": block, "time_s": time_s} for (run, block), time_s in row.values.items()]}
        for row in rows
    ]
    return of_parts({"profile": profiles, "best": [*map(asdict, best)]}, _page(rows, best), refused)


def _page(rows: Sequence[ClassProfile], best: Sequence[BestSystem]) -> Iterator[Part]:
    """A table a class, and the best system of each."""
    called = short([row.system for row in rows])
    for system in best:
        own = [row for row in rows if row.class_ == system.class_]
        jobs, runs = sum(row.jobs for row in own), max(row.runs for row in own)
        yield Line(f"{one_line(system.class_) or 'jobs'}: {jobs} jobs in {runs} runs", tone="strong")
        yield text_table(["system", "time s [95 %]", "work/s", "core s", "CPU", "memory"], [_figures(row, called) for row in own])
        yield text_table(["", *(f"{part} %" for part in PARTS), "bottleneck"], [_shares(row, called) for row in own])
        yield from bullets(_profile_lines(system, own, called))
        yield ""
    yield from marked(PROFILE_LEGEND, "quiet")


def _figures(row: ClassProfile, called: Mapping[str, str]) -> list[str]:
    shares = [NONE if share is None else f"{share.value:.0%}" for share in (row.cpu, row.memory)]
    return [called[row.system], figure(row.time_s), value_of(row.work_per_s), value_of(row.core_s), *shares]


def _shares(row: ClassProfile, called: Mapping[str, str]) -> list[str]:
    shares = [NONE if part not in row.parts else f"{100 * row.parts[part].value:.0f}" for part in PARTS]
    return [called[row.system], *shares, row.bottleneck]


def _profile_lines(best: BestSystem, rows: Sequence[ClassProfile], called: Mapping[str, str]) -> Iterator[str]:
    waiting = [called[row.system] for row in rows if row.closed and WAITING in row.parts and row.parts[WAITING].value >= NOTED]
    if waiting:
        others = "jobs wait for others of the stream, which are as many as its slots"
        yield f"{', '.join(waiting)}: {others}: no part of time s, nor a bottleneck."
    if best.next:
        yield f"Soonest on {called[best.system]}, {faster(best.effect, best.why)} {called[best.next]}."
    if best.cheapest and best.next and best.cheapest != best.system:
        yield f"Fewest core seconds a job: {called[best.cheapest]}."
    for row in rows:
        if row.lost:
            yield f"{called[row.system]}: {row.lost} of {row.lost + row.jobs} jobs are not counted: {row.why_lost}."
