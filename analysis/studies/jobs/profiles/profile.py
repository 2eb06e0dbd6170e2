"""Where the time of a job goes, by class and system, and which system runs a class soonest.

The time from submission to end is divided: waiting for a slot, starting up (from admission until the job's own work begins, by its own word
`startup_s` where it gives one), and then computing, held back by its CPU limit, and neither. Computing is CPU time over wall time of its
replicas, at most 1: a job of several threads is not more than busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.studies.jobs.estimates import gain, mean_value, over_runs, unknown_gain
from analysis.terms import Refused

from .rows import system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from analysis.studies.jobs.estimates import Figure
    from analysis.terms import Effect

    from .rows import Ran, Told


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
    values: Mapping[tuple[str, int], float]


@dataclass(frozen=True, slots=True)
class BestSystem:
    """The system on which a class takes least time, against the `next` best; `effect` is its gain, None where `why` says."""

    class_: str
    system: str
    next: str
    effect: Effect | None
    cheapest: str
    why: str = ""


def profile(streams: Sequence[Told]) -> tuple[list[ClassProfile], list[BestSystem]]:
    """Profile every class on every system, the soonest first. Raises: Refused, where no job was done."""
    by_system: dict[str, list[Told]] = {}
    for one in streams:
        by_system.setdefault(system(one), []).append(one)
    classes = list(dict.fromkeys(job.class_ for one in streams for job in one.jobs))
    rows = [row for class_ in classes for name, mine in by_system.items() if (row := _row(class_, name, mine)) is not None]
    if not rows:
        raise Refused("No job was done in its first attempt and told all its times: nothing can be profiled.")
    rows.sort(key=lambda row: (classes.index(row.class_), row.time_s.value))
    return rows, [_best([row for row in rows if row.class_ == class_]) for class_ in dict.fromkeys(row.class_ for row in rows)]


def _row(class_: str, name: str, streams: Sequence[Told]) -> ClassProfile | None:
    jobs = {one.unit: [job for job in one.jobs if job.class_ == class_] for one in streams}
    done = {unit: [job for job in some if job.done] for unit, some in jobs.items()}
    done = {unit: some for unit, some in done.items() if some}
    if not done:
        return None
    share = {one.unit: None if one.cpus is None else one.cpus / one.slots for one in streams}
    cpus = {one.unit: one.cpus for one in streams}

    def figure(
        of: Callable[[Ran, tuple[str, int]], float | None], of_run: Callable[[Sequence[float]], float] = mean_value
    ) -> Figure | None:
        told = [[of(job, unit) for job in some] for unit, some in done.items()]
        return over_runs([of_run([one for one in some if one is not None]) for some in told if some and None not in some])

    times_s, responses_s = figure(lambda job, _: _held_s(job)), figure(lambda job, _: _response_s(job))
    assert times_s is not None  # noqa: S101 some job is done
    assert responses_s is not None  # noqa: S101 as above
    parts = {part: found for part in PARTS if (found := figure(_part(part))) is not None}
    lost = [job for some in jobs.values() for job in some if not job.done]
    closed = all(one.closed for one in streams)
    inside = {part: one.value for part, one in parts.items() if not (closed and part == WAITING)}
    at_work = figure(_part(AT_WORK)) if COMPUTING not in parts else None
    inside |= {} if at_work is None else {AT_WORK: at_work.value}
    bottleneck = max(inside, key=lambda part: inside[part]) if inside else OTHER
    return ClassProfile(
        class_=class_,
        system=name,
        runs=len(done),
        jobs=sum(map(len, done.values())),
        lost=len(lost),
        why_lost=_why(lost),
        time_s=times_s,
        response_s=responses_s,
        work_per_s=figure(lambda job, _: None if "work" not in job.took else job.took["work"] / _held_s(job) if _held_s(job) else None),
        core_s=figure(lambda job, unit: _core_s(job, share[unit])),
        parts=parts,
        cpu=figure(lambda job, unit: _cpu(job, cpus[unit])),
        memory=figure(lambda job, _: _memory(job), max),
        bottleneck=bottleneck,
        share=figure(lambda job, _: _share(job, bottleneck, closed=closed)),
        closed=closed,
        values={unit: mean_value([_held_s(job) for job in some]) for unit, some in done.items()},
    )


def _best(rows: Sequence[ClassProfile]) -> BestSystem:
    """The first of the rows against the second; a job that was lost counts against nothing here and is said beside it."""
    costs = [row for row in rows if row.core_s is not None]
    cheapest = min(costs, key=lambda row: row.core_s.value if row.core_s else 0.0).system if costs else ""
    if len(rows) < 2:
        return BestSystem(rows[0].class_, rows[0].system, "", None, cheapest)
    first, second = rows[:2]
    effect = gain(TIME, second.values, first.values)
    why = unknown_gain(second.values, first.values) if effect is None else ""
    return BestSystem(first.class_, first.system, second.system, effect, cheapest, why)


def _why(lost: Iterable[Ran]) -> str:
    """How jobs ended that are not counted: `2 killed, 1 failed`."""
    counts: dict[str, int] = {}
    for job in lost:
        name = job.outcome if job.outcome != "done" else "done only in a later attempt" if job.attempts > 1 else "told no times"
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _held_s(job: Ran) -> float:
    return job.took["end_s"] - job.took["admit_s"]


def _response_s(job: Ran) -> float:
    return job.took["end_s"] - job.took["submit_s"]


def _parts(job: Ran) -> dict[str, float]:
    """The shares of a job's response time; empty where it took none, without what happens at work where that is not told."""
    whole_s = _response_s(job)
    if whole_s <= 0:
        return {}
    runs_s = job.took["end_s"] - job.took["start_s"]
    startup_s = min(runs_s, max(0.0, job.result.get("startup_s", 0.0)))
    found = {
        WAITING: (job.took["admit_s"] - job.took["submit_s"]) / whole_s,
        STARTING: (job.took["start_s"] - job.took["admit_s"] + startup_s) / whole_s,
    }
    at_work = max(0.0, 1 - sum(found.values()))
    if "cpu_s" not in job.took or runs_s <= 0:
        return found
    replica_s = runs_s * job.replicas
    busy = min(1.0, job.took["cpu_s"] / replica_s)
    limited = min(1 - busy, job.took.get("throttled_s", 0.0) / replica_s)
    return {**found, COMPUTING: busy * at_work, LIMITED: limited * at_work, OTHER: max(0.0, 1 - busy - limited) * at_work}


def _part(name: str) -> Callable[[Ran, tuple[str, int]], float | None]:
    return lambda job, _: _of(_parts(job), name)


def _of(parts: dict[str, float], name: str) -> float | None:
    return max(0.0, 1 - parts[WAITING] - parts[STARTING]) if name == AT_WORK and parts else parts.get(name)


def _share(job: Ran, part: str, *, closed: bool) -> float | None:
    """A part of the response time, or of the time without waiting."""
    found = _parts(job)
    whole = 1 - found[WAITING] if closed and found else 1.0
    value = _of(found, part)
    return value / whole if value is not None and whole > 0 else None


def _core_s(job: Ran, share: float | None) -> float | None:
    cores = job.took.get("cores") or share
    return None if cores is None else cores * job.replicas * _held_s(job)


def _cpu(job: Ran, cpus: int | None) -> float | None:
    limit = job.took["cores"] * job.replicas if job.took.get("cores") else cpus
    runs_s = job.took["end_s"] - job.took["start_s"]
    return None if limit is None or "cpu_s" not in job.took or runs_s <= 0 else job.took["cpu_s"] / (runs_s * limit)


def _memory(job: Ran) -> float | None:
    return (
        None
        if not job.took.get("memory_mib") or "memory_peak_mib" not in job.took
        else job.took["memory_peak_mib"] / (job.took["memory_mib"] * job.replicas)
    )


UNDER = " under "


def short(systems: Sequence[str]) -> dict[str, str]:
    """Name → its parameters that not all have alike, and its tweak set; `all alike` where nothing differs."""
    names = list(dict.fromkeys(systems))
    split = {name: name.partition(UNDER) for name in names}
    parts = {name: [part for part in head.split(":")[1:] if "=" in part] for name, (head, _, _) in split.items()}
    same = set.intersection(*map(set, parts.values())) if parts else set()
    found = {}
    for name, (head, under, tweakset) in split.items():
        words = [part for part in parts[name] if part not in same]
        said = " ".join(words) or (head.partition(":")[0] if len(names) == 1 else "as classes have it")
        found[name] = f"{said}{under}{tweakset}"
    return found if len(set(found.values())) == len(names) else {name: name for name in names}
