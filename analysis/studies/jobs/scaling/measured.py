"""Scaling that was really done: measured jobs and laws out of files; replicas chosen for each job against others, on identical jobs."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.answer import Line, bullets, marked, of_parts, text_table
from analysis.formats.fields import Fields
from analysis.load import find, load, load_each, parsed
from analysis.studies.jobs import csv_file
from analysis.studies.jobs.estimates import FEWEST as FEWEST_STREAMS
from analysis.studies.jobs.profile import done_with_times
from analysis.studies.jobs.records import streams, tells_of_jobs
from analysis.studies.jobs.replicates import in_order, of_one_machine
from analysis.terms import Refused, Unreadable
from analysis.wording import digits
from control.scaling import TOLERANCE, Law, TimedJob, choose, held_out, time_s
from control.scaling import fits as fits_of

from .study import ScaledStream, ScalingArm, against, tables, within

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from analysis.answer import Answer, Part
    from analysis.studies.jobs.records import Job, Stream, Times
    from analysis.terms import Run
    from control.scaling import Choice, Fit

NEEDED = ("replicas", "time_s")


def points(names: Sequence[str]) -> tuple[list[TimedJob], list[str]]:
    """Read all that is named: CSV with `replicas`, `time_s` and, where sizes differ, `work`; saved runs of streams of jobs.

    Returns: the points, and what was left out, a sentence each. Raises: Refused, where nothing is left, and for runs of different machines.
    """
    left_out: list[str] = []
    paths = [path for name in names for path in ([Path(name)] if name.endswith(".csv") else find([name]))]
    measured = [point for path in paths if path.suffix == ".csv" for point in _csv(path)]
    for run in of_one_machine((load(path) for path in paths if path.suffix != ".csv"), left_out):
        measured += _run(run, left_out)
    if not measured:
        raise Refused(f"{', '.join(names)}: no job that ended with replicas and a time. {' '.join(left_out)}".rstrip())
    return measured, left_out


def _csv(path: Path) -> list[TimedJob]:
    names, lines = csv_file.parse(csv_file.text_of(path), path)
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise Unreadable(f"{path}: has no column {missing[0]!r}; it has {', '.join(names or ['none'])}.")
    return [_point(row, at) for at, row in lines]


def _run(run: Run, left_out: list[str]) -> list[TimedJob]:
    points = []
    for stream in streams(run, left_out) if tells_of_jobs(run) else ():
        done = [job for job in stream.jobs if job.outcome == "done" and job.work is not None]
        for job in done:
            where = f"{run.origin}: {stream.name}: job {job.number}"
            if job.start_s is None or job.end_s is None:
                raise Unreadable(f"{where} is done and has no start_s or end_s.")
            points.append(_point({"replicas": job.replicas, "work": job.work, "time_s": job.end_s - job.start_s}, where))
        if len(done) < len(stream.jobs):
            left_out.append(f"{stream.name}: {len(stream.jobs) - len(done)} of {len(stream.jobs)} jobs were not done, or tell no size.")
    return points


def _point(row: Mapping[str, Any], where: str) -> TimedJob:
    values = []
    for name in ("replicas", "work", "time_s"):
        said = row.get(name, 1.0 if name == "work" else None)
        try:
            value = float(said)
        except (TypeError, ValueError, OverflowError):
            value = -1.0
        if not 0 < value < 1e12 or (name == "replicas" and value != int(value)):
            raise Unreadable(f"{where}: {name} is {said!r}; a {'whole ' if name == 'replicas' else ''}number above 0 belongs there.")
        values.append(value)
    return TimedJob(int(values[0]), values[1], values[2])


def law(path: Path) -> Law:
    document = parsed(path)
    if isinstance(document, dict) and isinstance(document.get("fits"), list) and document["fits"]:
        document = document["fits"][0].get("law")
    if not isinstance(document, dict) or "cost_s" not in document:
        raise Unreadable(
            f"{path}: no law; `python -m analysis scale fit --json` writes one, or write cost_s, serial, crosstalk, startup_s."
        )
    names = [field.name for field in fields(Law)]
    unknown = [name for name in document if name not in names]
    if unknown:
        raise Unreadable(f"{path}: a law has no {unknown[0]!r}; it has {', '.join(names)}.")
    return law_of(document, str(path))


def law_of(numbers: Mapping[str, Any], where: str) -> Law:
    values = {}
    for name, value in numbers.items():
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

    record: Stream
    target_s: float | None = None
    laws: Mapping[str, Law] = field(default_factory=dict)
    reachable: float | None = None
    profile_node_s: float | None = None

    @property
    def done(self) -> list[tuple[Job, Times]]:
        return done_with_times(self.record.jobs)


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


def measured(names: Sequence[str], refused: list[str]) -> list[MeasuredStream]:
    every: list[MeasuredStream] = []
    for run in of_one_machine(load_each(names, refused), refused):
        if tells_of_jobs(run):
            every += of_run(run, in_order(streams(run, refused), refused))
        else:
            refused.append(f"{run.origin}: no cell of it tells of a stream of jobs.")
    if not every:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no run that tells of jobs.")
    return every


def of_run(run: Run, streams: Iterable[Stream]) -> list[MeasuredStream]:
    """Take streams of a run with what was told of how their replicas were chosen."""
    rows = {cell.id: cell.report.get("scale", ()) for cell in run.cells}
    return [_measured(stream, rows[stream.name]) for stream in streams]


def _measured(stream: Stream, rows: Sequence[Mapping[str, object]]) -> MeasuredStream:
    if not rows:
        return MeasuredStream(stream)
    about = Fields(rows[0], stream.origin, f"cell {stream.name}, report.scale")
    laws = {name: law_of(inner.fields("law").value, inner.place) for name, inner in about.items("laws")}
    return MeasuredStream(stream, about.positive("target_s"), laws, about.up_to("reachable", 1.0), about.positive("profile_node_s"))


def reports(streams: Sequence[MeasuredStream]) -> list[TargetReport]:
    keys = dict.fromkeys(
        (stream.record.engine, stream.record.slots or 0, stream.target_s) for stream in streams if stream.target_s is not None
    )
    if not keys:
        raise Refused("No stream had its replicas chosen (target_s=…): `python -m analysis queue` and `schedule` read other streams.")
    return [_report(streams, engine, slots, target_s) for engine, slots, target_s in keys if target_s is not None]


def _report(every: Sequence[MeasuredStream], engine: str, slots: int, target_s: float) -> TargetReport:
    beside = [
        stream for stream in every if (stream.record.engine, stream.record.slots) == (engine, slots) and stream.target_s in {None, target_s}
    ]
    tweaksets = sorted({stream.record.tweakset for stream in beside})
    if len(tweaksets) > 1:
        several = ", ".join(tweaksets)
        raise Refused(f"{engine} with {slots} slots: streams under several tweak sets ({several}) are never mixed; name runs of one.")
    by_arm: dict[str, dict[Hashable, MeasuredStream]] = {}
    for stream in beside:
        by_arm.setdefault(arm_of(stream), {})[stream.record.same_jobs] = stream
    order = [ELASTIC, *sorted(name for name in by_arm if name != ELASTIC)]
    shared = [key for key in by_arm[ELASTIC] if all(key in by_arm[name] for name in order)]
    where = f"{engine} with {slots} slots, target {target_s:g} s"
    if not shared:
        raise Refused(f"{where}: no jobs met every way of scaling; nothing can be compared.")
    paired = {name: [by_arm[name][key] for key in shared] for name in order}
    arms = [_arm(name, streams, target_s, where) for name, streams in paired.items()]
    chosen = paired[ELASTIC]
    numbers = {name: [{job.number for job, _ in stream.done} for stream in streams] for name, streams in paired.items()}
    unlike = tuple(name for name in order if numbers[name] != numbers[ELASTIC])
    ran_s = np.array([times.ran_s for stream in chosen for _, times in stream.done])
    return TargetReport(
        engine=engine,
        slots=slots,
        target_s=target_s,
        runs=len(shared),
        alone=len(beside) - len(shared) * len(order),
        lost=sum(len(stream.record.jobs) - len(stream.done) for streams in paired.values() for stream in streams),
        arms=(arms[0], *(arm if arm.name in unlike else against(arms[0], arm) for arm in arms[1:])),
        reachable=_mean(stream.reachable for stream in chosen),
        off=_mean(_off(stream) for stream in chosen),
        profile_node_s=_mean(stream.profile_node_s for stream in chosen),
        late=float((ran_s > target_s * (1 + TOLERANCE)).mean()),
        early=float((ran_s < target_s * (1 - TOLERANCE)).mean()),
        unlike=unlike,
    )


def arm_of(stream: MeasuredStream) -> str:
    """Name the way of scaling of a stream."""
    if stream.target_s is not None:
        return ELASTIC
    replicas = stream.record.params.get("replicas")
    return "as its class has it" if replicas is None else f"{replicas} for all"


def _arm(name: str, streams: Sequence[MeasuredStream], target_s: float, where: str) -> ScalingArm:
    done = [stream.done for stream in streams]
    if min(map(len, done)) < FEWEST:
        raise Refused(f"{where}: a stream of {name} has {min(map(len, done))} jobs that were done at once; {FEWEST} are needed.")
    replicas = float(np.mean([job.replicas for of_stream in done for job, _ in of_stream]))
    return ScalingArm(name, replicas, tuple(_scaled(of_stream, target_s) for of_stream in done))


def _scaled(done: Sequence[tuple[Job, Times]], target_s: float) -> ScaledStream:
    ran_s = np.array([times.ran_s for _, times in done])
    replicas = np.array([job.replicas for job, _ in done])
    response_s = np.array([times.response_s for _, times in done])
    return ScaledStream(
        within=within(ran_s, target_s),
        within_waited=within(response_s, target_s),
        node_s_per_job=float((ran_s * replicas).mean()),
        mean_wait_s=float((response_s - ran_s).mean()),
        p95_response_s=float(np.quantile(response_s, 0.95)),
    )


def _off(stream: MeasuredStream) -> float | None:
    known = [
        (float(time_s(stream.laws[job.class_], job.work, job.replicas)), times.ran_s)
        for job, times in stream.done
        if job.class_ in stream.laws and job.work is not None and times.ran_s > 0
    ]
    return _mean(abs(predicted_s / ran_s - 1) for predicted_s, ran_s in known)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


NAMES = {"amdahl": "Amdahl", "usl": "Gunther (USL)"}
LEGEND = (
    ("within", "part of the jobs that ran for the target ±10 %. waits incl.: that were done so soon after they were submitted."),
    ("node s", "replicas times time, a job; what was measured beforehand, to choose by, is not in it."),
    ("95 %", "interval over streams, paired: the same jobs at the same times under every way of scaling."),
)


def fitted(names: Sequence[str]) -> Answer:
    jobs, left_out = points(names)
    for line in left_out:
        print("left out:", line, file=sys.stderr)
    fits = [replace(fit, held_out=held_out(jobs, fit)) for fit in fits_of(jobs)]
    return of_parts({"fits": [*map(asdict, fits)]}, _fits_page(fits))


def _fits_page(fits: Sequence[Fit]) -> Iterator[Part]:
    yield Line(f"{fits[0].points} jobs; time = startup + cost·work·(1 + serial·(n-1) + crosstalk·n·(n-1))/n")
    yield ""
    for fit in fits:
        error = "" if fit.held_out is None else f", {fit.held_out:.1%} off where left out of the fit"
        yield Line(f"{NAMES[fit.name]}: AICc {fit.aicc:.1f}, points {fit.spread:.1%} off (sd){error}")
        rows = []
        for name, value in asdict(fit.law).items():
            if interval := fit.intervals.get(name):
                rows.append([f"  {name}", digits(value), f"{digits(interval[0], 3)} to {digits(interval[1], 3)}"])
        yield text_table(["", "value", "95 %"], rows)
        yield from (Line(f"  {note}") for note in fit.notes)
        yield ""


def choices(law: Law, target_s: float, most: int, sizes: Sequence[float]) -> Answer:
    chosen = [choose(law, work, target_s, most) for work in sizes]
    return of_parts({"law": asdict(law), "target_s": target_s, "choices": [*map(asdict, chosen)]}, _choices_page(target_s, chosen))


def _choices_page(target_s: float, choices: Sequence[Choice]) -> Iterator[Part]:
    yield Line(f"Replicas with which jobs take nearest {target_s:g} s")
    rows = [
        [f"{choice.work:g}", f"{choice.replicas}", digits(choice.predicted_s), "yes" if choice.within else f"no: {choice.why}"]
        for choice in choices
    ]
    yield text_table(["size", "replicas", "predicted s", "within 10 %"], rows)


def reported(names: Sequence[str]) -> Answer:
    refused: list[str] = []
    found = reports(measured(names, refused))
    return of_parts({"simulated": False, "reports": [*map(asdict, found)]}, _reports_page(found), refused)


def _reports_page(reports: Sequence[TargetReport]) -> Iterator[Part]:
    for report in reports:
        about = f"{report.slots} slots of {report.engine}, every job to run {report.target_s:g} s ±10 %; {report.runs} streams"
        yield Line(f"MEASURED: {about}.")
        yield ""
        yield from tables(report.arms)
        yield ""
        yield from bullets(_report_lines(report))
        yield ""
    yield from marked(LEGEND, "quiet")


def _report_lines(report: TargetReport) -> Iterator[str]:
    if report.reachable is not None:
        yield f"By the law that chose, {report.reachable:.1%} of the jobs have a number of replicas that fits."
    if report.off is not None:
        early, late = f"{report.early:.1%} of them took less than the band", f"{report.late:.1%} more"
        yield f"It was {report.off:.1%} off on average over its jobs; {early}, {late}."
    if report.profile_node_s is not None:
        yield f"Measuring beforehand took {report.profile_node_s:.3g} node-seconds a stream."
    if report.runs < FEWEST_STREAMS:
        yield f"Fewer than {FEWEST_STREAMS} streams: nothing has an interval. Run more blocks."
    if len(report.arms) < 2:
        yield "Nothing stands beside the choice: run the same jobs with --vary replicas=1,2,4."
    if report.alone:
        yield f"{report.alone} streams, whose jobs did not meet every way of scaling, are left out."
    if report.unlike:
        yield (
            f"Not held against the choice: {', '.join(report.unlike)}, of which other jobs were done at once. "
            "Whichever lost those off the target would gain by it."
        )
    if report.lost:
        yield f"{report.lost} jobs were not done in their first attempt and have no part in these figures."
