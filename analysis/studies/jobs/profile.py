"""The time of a job by class and system, and the fastest system per class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Columns, Section, Word, bullets, table_of
from analysis.terms import Refused
from analysis.wording import counted

from .claims import (
    CANT_TELL,
    FASTER,
    Contrast,
    claims_first,
    column,
    contrasts_of,
    faster,
    names_of,
    rows_of,
    verdict,
)
from .estimates import Figure, figure, middle, over_runs
from .records import USED, Times

if TYPE_CHECKING:
    import pandas as pd

    from .records import JobRun, Stream

WAITING, STARTING, COMPUTING, LIMITED, OTHER = (
    "waiting",
    "start-up",
    "computing",
    "CPU limit",
    "other",
)
PARTS = (WAITING, STARTING, COMPUTING, LIMITED, OTHER)
SPARE = {LIMITED: 1, WAITING: 2, COMPUTING: 3, STARTING: 4, OTHER: 5}  # largest dropped first
PLACE = ("class_", "system", "run", "block")
OF_JOB = ("replicas", "work", "startup_s", "machine")
MEASURES = ("time_s", "response_s", "work_per_s", "cpu", "memory")
AT_WORK = "at work"  # the last three together, if CPU time is unknown
NOTED = 0.05  # a share of waiting worth a note
LEGEND = (
    ("time s", "time that a job holds its slots; mean over runs."),
    ("%", "of the response time; other: none of the other parts."),
    ("CPU", "CPU time as a share of the job's limit, or of the machine if there is no limit."),
    ("memory", "peak over limit; cached files count."),
)


@dataclass(frozen=True, slots=True)
class ClassProfile:
    """One class on one system; figures are means over `runs` of means over jobs, None if unknown.

    `time_s` is the time that a job held its slots. `parts` are shares of the response time. `cpu`
    is CPU time over that of its limit, or of the machine; `memory` the peak over its limit.
    `bottleneck` is the largest part, `share` its share. In a `closed` stream, whose customers wait
    for each other, both leave out waiting.
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
    parts: Mapping[str, Figure]
    cpu: Figure | None
    memory: Figure | None
    bottleneck: str
    share: Figure | None
    closed: bool


def profile(streams: Sequence[Stream]) -> tuple[list[ClassProfile], dict[str, Contrast]]:
    """Profile each class of jobs on each system, the fastest system first.

    Returns: the profiles; and by class, the ratio of its times on the fastest and the next best
        system.
    Raises: Refused, if no job finished in its first attempt with all its times.
    """
    jobs = _jobs(streams)
    if not len(jobs):
        raise Refused(
            "No job finished in its first attempt with all its times, so nothing can be profiled."
        )
    classes = list(dict.fromkeys(job.class_ for stream in streams for job in stream.jobs))
    profiles = [
        _profile(
            str(class_), str(system), own, [stream for stream in streams if stream.group == system]
        )
        for (class_, system), own in jobs.groupby(["class_", "system"], sort=False)
    ]
    profiles.sort(key=lambda row: (classes.index(row.class_), row.time_s.value))
    ranks: dict[object, str] = {}
    for class_ in classes:
        systems = [(class_, row.system) for row in profiles if row.class_ == class_]
        ranks |= dict(zip(systems, ("soonest", "next"), strict=False))
    runs = rows_of(
        jobs.groupby(["class_", "system", "run", "block"], sort=False)["time_s"]
        .mean()
        .reset_index()
    )
    ranked = [
        row._asdict() | {"rank": ranks[row.class_, row.system]}
        for row in runs
        if (row.class_, row.system) in ranks
    ]
    return profiles, {
        row.class_: row
        for row in contrasts_of(ranked, "rank", "next", {"time_s": "log"}, by=["class_"])
    }


def _jobs(streams: Sequence[Stream]) -> pd.DataFrame:
    import pandas as pd

    rows = [
        {
            "class_": job.class_,
            "system": stream.group,
            "run": stream.unit[0],
            "block": stream.unit[1],
            **times._asdict(),
            **job.used,
            "replicas": job.replicas,
            "work": job.work,
            "startup_s": job.result.get("startup_s", 0.0),
            "machine": stream.cpus,
        }
        for stream in streams
        for job, times in stream.done_with_times
    ]
    jobs = pd.DataFrame(rows, columns=[*PLACE, *Times._fields, *sorted(USED), *OF_JOB]).astype(
        dict.fromkeys([*USED, *OF_JOB], float)
    )
    cores, held_s, ran_s = (
        jobs["cores"].where(jobs["cores"] > 0),
        jobs["end_s"] - jobs["admit_s"],
        jobs["end_s"] - jobs["start_s"],
    )
    jobs["time_s"], jobs["response_s"] = held_s, jobs["end_s"] - jobs["submit_s"]
    jobs["work_per_s"] = jobs["work"] / held_s.where(held_s > 0)
    jobs["cpu"] = jobs["cpu_s"] / (
        ran_s.where(ran_s > 0) * (cores * jobs["replicas"]).fillna(jobs["machine"])
    )
    limit_mib = jobs["memory_mib"].where(jobs["memory_mib"] > 0) * jobs["replicas"]
    jobs["memory"] = jobs["memory_peak_mib"] / limit_mib
    return jobs.join(parts_of(jobs))


def parts_of(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of each job's response time; parts of work need the CPU time."""
    import pandas as pd

    ran_s, whole_s = jobs["end_s"] - jobs["start_s"], jobs["end_s"] - jobs["submit_s"]
    whole_s = whole_s.where(whole_s > 0)
    waiting = (jobs["admit_s"] - jobs["submit_s"]) / whole_s
    starting = (
        jobs["start_s"] - jobs["admit_s"] + jobs["startup_s"].clip(lower=0).clip(upper=ran_s)
    ) / whole_s
    at_work = (1 - waiting - starting).clip(lower=0)
    replica_s = ran_s.where(ran_s > 0) * jobs["replicas"]
    busy = (jobs["cpu_s"] / replica_s).clip(upper=1)
    limited = (jobs["throttled_s"].fillna(0) / replica_s).clip(upper=1 - busy).where(busy.notna())
    shares = {COMPUTING: busy, LIMITED: limited, OTHER: (1 - busy - limited).clip(lower=0)}
    return pd.DataFrame(
        {
            WAITING: waiting,
            STARTING: starting,
            **{part: share * at_work for part, share in shares.items()},
            AT_WORK: at_work,
        }
    )


def _profile(
    class_: str, system: str, jobs: pd.DataFrame, streams: Sequence[Stream]
) -> ClassProfile:
    by_run = [jobs["run"], jobs["block"]]

    def mean(values: pd.Series[float], of_run: str = "mean") -> Figure | None:
        return over_runs(getattr(values.groupby(by_run), of_run)(skipna=False).dropna().tolist())

    known = {
        name: mean(jobs[name], "max" if name == "memory" else "mean")
        for name in (*MEASURES, *PARTS, AT_WORK)
    }
    closed = all(stream.closed for stream in streams)
    parts = {part: figure for part in PARTS if (figure := known[part]) is not None}
    at_work = {} if COMPUTING in parts or known[AT_WORK] is None else {AT_WORK: known[AT_WORK]}
    inside = {
        part: figure.value
        for part, figure in (parts | at_work).items()
        if figure and not (closed and part == WAITING)
    }
    bottleneck = max(inside, key=lambda part: inside[part]) if inside else OTHER
    whole = 1 - jobs[WAITING].fillna(0.0) * closed
    lost = [
        _why_lost(job)
        for stream in streams
        for job in stream.jobs
        if job.class_ == class_ and not (job.done_at_once and job.times)
    ]
    return ClassProfile(
        class_=class_,
        system=system,
        runs=len(jobs[["run", "block"]].drop_duplicates()),
        jobs=len(jobs),
        lost=len(lost),
        why_lost=", ".join(f"{count} {name}" for name, count in Counter(lost).items()),
        **{name: known[name] for name in MEASURES},  # type: ignore[arg-type]  # all are known
        parts=parts,
        bottleneck=bottleneck,
        share=mean(jobs[bottleneck] / whole.where(whole > 0)),
        closed=closed,
    )


def _why_lost(job: JobRun) -> str:
    return (
        job.outcome
        if not job.done
        else "finished only in a later attempt"
        if job.attempts > 1
        else "without all times"
    )


def answer(streams: Sequence[Stream], refused: Sequence[str]) -> Answer:
    """Return each class's fastest system, if shown, and a table per class."""
    rows, times = profile(streams)
    names = names_of(streams)
    classes = [
        [row for row in rows if row.class_ == class_]
        for class_ in dict.fromkeys(row.class_ for row in rows)
    ]
    classes = claims_first(classes, lambda own: _word(own, times))
    return Answer(
        title=_title(classes, names, times),
        sections=[_class(own, names, times.get(own[0].class_)) for own in classes],
        legend=LEGEND,
        data={"profile": rows, "times": times},
        refused=refused,
    )


def _title(
    classes: Sequence[Sequence[ClassProfile]],
    names: Mapping[str, str],
    times: Mapping[str, Contrast],
) -> str:
    if len(names) == 1:
        return f"Only one system: {next(iter(names.values()))}."
    parts: dict[str, list[str]] = {}
    for own in classes:
        name = own[0].class_ or "jobs"
        if _word(own, times) is FASTER:
            parts.setdefault("Faster than on the next best system", []).append(
                f"{name} on {names[own[0].system]}"
            )
        else:
            parts.setdefault("No system is shown to be the fastest", []).append(name)
    return " ".join(f"{what}: {'; '.join(listed)}." for what, listed in parts.items())


def _word(rows: Sequence[ClassProfile], times: Mapping[str, Contrast]) -> Word:
    contrast = times.get(rows[0].class_)
    return (
        CANT_TELL
        if rows[1:] and (contrast is None or contrast.value is None)
        else verdict(contrast)
    )


def _class(
    rows: Sequence[ClassProfile], names: Mapping[str, str], times: Contrast | None
) -> Section:
    columns: Columns = [
        column("system", write=names.__getitem__, left=True),
        column("time s\n[95 %]", "time_s", figure),
        column("work\n/s", "work_per_s", middle),
        column("CPU\n%", "cpu", _percent),
        column("memory\n%", "memory", _percent),
        column("bottleneck", left=True),
        *(
            (Column(f"{name}\n%", name, _percent, spare=SPARE[name]), partial(_part, name=name))
            for name in PARTS
        ),
    ]
    jobs, runs = sum(row.jobs for row in rows), max(row.runs for row in rows)
    title = f"{rows[0].class_ or 'jobs'}: {counted(jobs, 'job')} in {counted(runs, 'run')}"
    return Section(title, [table_of(columns, rows), *bullets(_lines(rows, names, times))])


def _percent(share: Figure) -> str:
    return f"{100 * share.value:.0f}"


def _part(row: ClassProfile, name: str) -> Figure | None:
    return row.parts.get(name)


def _lines(
    rows: Sequence[ClassProfile], names: Mapping[str, str], times: Contrast | None
) -> Iterator[str]:
    waiting = [
        names[row.system]
        for row in rows
        if row.closed and WAITING in row.parts and row.parts[WAITING].value >= NOTED
    ]
    if waiting:
        others = "jobs wait only for others of their stream, which has as many as there are slots"
        yield f"{', '.join(waiting)}: {others}; not part of time s, and no bottleneck."
    if rows[1:]:
        yield f"{names[rows[0].system]}: {faster(times, names[rows[1].system])}."
    yield from (
        (
            f"{names[row.system]}: {row.lost} of {row.lost + row.jobs} jobs are not counted: "
            f"{row.why_lost}."
        )
        for row in rows
        if row.lost
    )
