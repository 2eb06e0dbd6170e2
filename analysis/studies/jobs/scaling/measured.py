"""Scaling that was really done: measured jobs and laws out of files; replicas chosen for each job against others, on identical jobs."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.formats.fields import Fields
from analysis.load import find, load, parsed
from analysis.opening import read_whole
from analysis.studies.jobs.profiles.one_machine import of_one_machine
from analysis.studies.jobs.profiles.rows import told as told_by
from analysis.terms import Refused, Unreadable
from control.scaling import TOLERANCE, Law, Point, time_s

from .study import ScaledStream, ScalingArm, against, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.studies.jobs.profiles.rows import Ran, Told
    from analysis.terms import Run


NEEDED = ("replicas", "time_s")


def points(names: Sequence[str]) -> tuple[list[Point], list[str]]:
    """Read all that is named: CSV with `replicas`, `time_s` and, where sizes differ, `work`; saved runs of streams of jobs.

    Returns: the points, and what was left out, a sentence each. Raises: Refused, where nothing is left, and for runs of different machines.
    """
    left_out: list[str] = []
    paths = [path for name in names for path in ([Path(name)] if name.endswith(".csv") else find([name]))]
    found = [point for path in paths if path.suffix == ".csv" for point in _csv(path)]
    for run in of_one_machine((load(path) for path in paths if path.suffix != ".csv"), left_out):
        found += _run(run, left_out)
    if not found:
        raise Refused(f"{', '.join(names)}: no job that ended with replicas and a time. {' '.join(left_out)}".rstrip())
    return found, left_out


def _csv(path: Path) -> list[Point]:
    try:
        lines = csv.DictReader(io.StringIO(read_whole(path).decode("utf-8-sig"), newline=""), strict=True)
        missing = [name for name in NEEDED if name not in (lines.fieldnames or ())]
        if missing:
            raise Unreadable(f"{path}: has no column {missing[0]!r}; it has {', '.join(lines.fieldnames or ['none'])}.")
        return [_point(line, f"{path}: line {lines.line_num}") for line in lines]
    except (csv.Error, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: is no CSV in UTF-8 ({error}).") from None


def _run(run: Run, left_out: list[str]) -> list[Point]:
    found = []
    for cell in run.cells:
        rows = cell.report.get("job", ())
        done = [row for row in rows if row.get("outcome") == "done" and isinstance(row.get("work"), int | float)]
        for at, row in enumerate(done):
            times = [row.get(name) for name in ("start_s", "end_s")]
            if not all(isinstance(one, int | float) for one in times):
                raise Unreadable(f"{run.origin}: {cell.id}: job row {at} is done and has no start_s or end_s.")
            found.append(_point({**row, "time_s": times[1] - times[0]}, f"{run.origin}: {cell.id}: job {row.get('job')}"))  # type: ignore[operator]
        if len(done) < len(rows):
            left_out.append(f"{cell.id}: {len(rows) - len(done)} of {len(rows)} jobs were not done, or tell no size.")
    return found


def _point(row: Mapping[str, Any], where: str) -> Point:
    values = []
    for name in ("replicas", "work", "time_s"):
        said = row.get(name, 1.0) if name == "work" else row.get(name)
        try:
            value = float(said)  # type: ignore[arg-type]  # whatever it is, it is said below
        except (TypeError, ValueError, OverflowError):
            value = -1.0
        if not 0 < value < 1e12 or (name == "replicas" and value != int(value)):
            raise Unreadable(f"{where}: {name} is {said!r}; a {'whole ' if name == 'replicas' else ''}number above 0 belongs there.")
        values.append(value)
    return Point(int(values[0]), values[1], values[2])


def law(path: Path) -> Law:
    """Read the law that was fitted best, or one written by hand: {"cost_s": 100, "serial": 0.02, …}. Raises: Unreadable."""
    said = parsed(path)
    if isinstance(said, dict) and isinstance(said.get("fits"), list) and said["fits"]:
        said = said["fits"][0].get("law")
    if not isinstance(said, dict) or "cost_s" not in said:
        raise Unreadable(
            f"{path}: no law; `python -m analysis scale fit --json` writes one, or write cost_s, serial, crosstalk, startup_s."
        )
    names = [field.name for field in fields(Law)]
    unknown = [name for name in said if name not in names]
    if unknown:
        raise Unreadable(f"{path}: a law has no {unknown[0]!r}; it has {', '.join(names)}.")
    return law_of(said, str(path))


def law_of(said: Mapping[str, Any], where: str) -> Law:
    """Make a law of numbers. Raises: Refused, which is none."""
    values = {}
    for name, value in said.items():
        most = 1.0 if name in {"serial", "crosstalk"} else 1e12
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise Refused(f"{where}: {name} is {value!r}; a number from 0 to {most:g} belongs there.")
        values[name] = float(value)
    if values["cost_s"] == 0:
        raise Refused(f"{where}: cost_s is 0: no work takes no time.")
    return Law(**values)


ELASTIC = "chosen for each"
FEWEST = 5


@dataclass(frozen=True, slots=True)
class MeasuredStream:
    """One stream. `target_s` is there where replicas were chosen, with what the choice knew: its law by class, what measuring it took."""

    told: Told
    target_s: float | None = None
    laws: Mapping[str, Law] = field(default_factory=dict)
    reachable: float | None = None
    profile_node_s: float | None = None


@dataclass(frozen=True, slots=True)
class TargetReport:
    """One target on one engine. `runs` are those that every arm had, `alone` the streams beside; `lost` jobs were not done at once.

    `arms` begin with the choice. `reachable` is the part of the jobs for which the choice expected a number of replicas that fits;
    `off` the mean of |predicted/measured − 1| of the time of the jobs it chose for, None where no law was told; `profile_node_s` is what
    was measured beforehand took, for each stream. `late` and `early` are the parts of its jobs that took more and
    less than the band. Of arms that are `unlike` the choice other jobs were done: they are not held against it.
    """

    engine: str
    slots: int
    target_s: float
    runs: int
    alone: int
    lost: int
    arms: tuple[ScalingArm, ...]
    reachable: float | None
    off: float | None
    profile_node_s: float | None
    late: float
    early: float
    unlike: tuple[str, ...] = ()


def measured(run: Run, refused: list[str]) -> list[MeasuredStream]:
    """Read every stream of a run. Raises: Refused, for one that tells of no jobs."""
    rows = {cell.id: cell.report.get("scale", ()) for cell in run.cells}
    return [_measured(one, rows[one.cell], run.origin) for one in told_by(run, refused)]


def reports(streams: Sequence[MeasuredStream]) -> list[TargetReport]:
    """Hold the choice against every other way, by engine, slots and target. Raises: Refused, where nothing was chosen."""
    keys = dict.fromkeys((one.told.engine, one.told.slots, one.target_s) for one in streams if one.target_s is not None)
    if not keys:
        raise Refused("No stream had its replicas chosen (target_s=…): `python -m analysis queue` and `schedule` read other streams.")
    return [_report(streams, engine, slots, target_s) for engine, slots, target_s in keys if target_s is not None]


def _measured(one: Told, rows: Sequence[Mapping[str, object]], origin: str) -> MeasuredStream:
    if not rows:
        return MeasuredStream(one)
    about = Fields(rows[0], origin, f"cell {one.cell}, report.scale")
    laws = {name: law_of(inner.fields("law").value, inner.place) for name, inner in about.items("laws")}
    return MeasuredStream(one, about.positive("target_s"), laws, about.up_to("reachable", 1.0), about.positive("profile_node_s"))


def _report(streams: Sequence[MeasuredStream], engine: str, slots: int, target_s: float) -> TargetReport:
    beside = [one for one in streams if (one.told.engine, one.told.slots) == (engine, slots) and one.target_s in {None, target_s}]
    sets = sorted({one.told.tweakset for one in beside})
    if len(sets) > 1:
        raise Refused(
            f"{engine} with {slots} slots: streams under several tweak sets ({', '.join(sets)}) are never mixed; name runs of one."
        )
    by_arm: dict[str, dict[str, MeasuredStream]] = {}
    for one in beside:
        by_arm.setdefault(ELASTIC if one.target_s is not None else _named(one.told), {})[_jobs(one.told)] = one
    order = [ELASTIC, *sorted(name for name in by_arm if name != ELASTIC)]
    shared = [key for key in by_arm[ELASTIC] if all(key in by_arm[name] for name in order)]
    where = f"{engine} with {slots} slots, target {target_s:g} s"
    if not shared:
        raise Refused(f"{where}: no jobs met every way of scaling; nothing can be compared.")
    streams_of = {name: [by_arm[name][key] for key in shared] for name in order}
    arms = [_arm(name, some, target_s, where) for name, some in streams_of.items()]
    chosen = streams_of[ELASTIC]
    unlike = tuple(name for name, some in streams_of.items() if [_done(one) for one in some] != [_done(one) for one in chosen])
    ran_s = np.array([_ran_s(job) for one in chosen for job in one.told.jobs if job.done])
    return TargetReport(
        engine=engine,
        slots=slots,
        target_s=target_s,
        runs=len(shared),
        alone=len(beside) - len(shared) * len(order),
        lost=sum(not job.done for some in streams_of.values() for one in some for job in one.told.jobs),
        arms=(arms[0], *(one if one.name in unlike else against(arms[0], one) for one in arms[1:])),
        reachable=_mean(one.reachable for one in chosen),
        off=_mean(_off(one) for one in chosen),
        profile_node_s=_mean(one.profile_node_s for one in chosen),
        late=float((ran_s > target_s * (1 + TOLERANCE)).mean()),
        early=float((ran_s < target_s * (1 - TOLERANCE)).mean()),
        unlike=unlike,
    )


def _done(one: MeasuredStream) -> set[int]:
    return {job.number for job in one.told.jobs if job.done}


def _arm(name: str, streams: Sequence[MeasuredStream], target_s: float, where: str) -> ScalingArm:
    done = [[job for job in one.told.jobs if job.done] for one in streams]
    if min(map(len, done)) < FEWEST:
        raise Refused(f"{where}: a stream of {name} has {min(map(len, done))} jobs that were done at once; {FEWEST} are needed.")
    return ScalingArm(
        name, float(np.mean([job.replicas for some in done for job in some])), tuple(_scaled(some, target_s) for some in done)
    )


def _scaled(jobs: Sequence[Ran], target_s: float) -> ScaledStream:
    ran_s = np.array([_ran_s(job) for job in jobs])
    replicas = np.array([job.replicas for job in jobs])
    response_s = np.array([job.took["end_s"] - job.took["submit_s"] for job in jobs])
    return ScaledStream(
        within=within(ran_s, target_s),
        within_waited=within(response_s, target_s),
        node_s_per_job=float((ran_s * replicas).mean()),
        mean_wait_s=float((response_s - ran_s).mean()),
        p95_response_s=float(np.quantile(response_s, 0.95)),
    )


def _off(one: MeasuredStream) -> float | None:
    """How far the law was off, on average over the jobs that it chose for."""
    known = [job for job in one.told.jobs if job.done and job.class_ in one.laws and "work" in job.took]
    predicted_s = [float(time_s(one.laws[job.class_], job.took["work"], job.replicas)) for job in known]
    return _mean(abs(said_s / _ran_s(job) - 1) for said_s, job in zip(predicted_s, known, strict=True) if _ran_s(job) > 0)


def _ran_s(job: Ran) -> float:
    return job.took["end_s"] - job.took["start_s"]


def _named(one: Told) -> str:
    replicas = one.params.get("replicas")
    return "as its class has it" if replicas is None else f"{replicas} for all"


def _jobs(one: Told) -> str:
    """What makes two streams the same: every job's number, planned submission and size; to the microsecond."""
    return repr(sorted((job.number, round(job.took.get("planned_submit_s", -1.0), 6), job.took.get("work")) for job in one.jobs))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
