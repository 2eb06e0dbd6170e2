"""How many replicas a job gets: laws fitted to measured times, and replicas chosen for each job against one number for all, same jobs.

In the data of answers effects are gains as fractions, of the choice for each job over the way they stand with.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.answer import Answer, Column, Columns, Line, Section, Table, Word, bullets, table_of
from analysis.formats.fields import Fields
from analysis.load import find, load, load_each, parsed, read_each
from analysis.stats.estimate import change_in
from analysis.terms import Refused, Run, Unreadable
from analysis.wording import digits, probability
from control.called import JUDGE
from control.scaling import TOLERANCE, Law, TimedJob, choose, held_out, time_s
from control.scaling import fits as fits_of
from control.t_test import ALPHA

from . import csv_file
from .claims import CANT_TELL, NOT_COMPARABLE, leading
from .estimates import FEWEST, Figure, Ratio, as_number, average_of_known, figure, holm_by_key, over_runs, plural, ratio_of, share
from .records import Stream, in_order, of_one_machine, streams, tells_of_jobs

if TYPE_CHECKING:
    from .simulation import Floats

LAW = tuple(field.name for field in fields(Law))
ELASTIC = "chosen for each"
FEWEST_JOBS = 5
NAMES = {"amdahl": "Amdahl", "usl": "Gunther (USL)"}
LEGEND = (
    ("within", "part of the jobs that ran for the target ±10 %. waits incl.: that were done so soon after they were submitted."),
    ("node s", "replicas times time, a job; what was measured beforehand, to choose by, is not in it."),
    ("95 %", "interval over streams, paired: the same jobs at the same times under every way of scaling."),
)


def points(names: Sequence[str]) -> tuple[list[TimedJob], list[str]]:
    """Read CSV with `replicas`, `time_s` and, where sizes differ, `work`; and saved runs of streams of jobs.

    Returns: the points, and what was left out, a sentence each. Raises: Refused, where nothing is left, and for runs of different machines.
    """
    left_out: list[str] = []
    paths = [path for name in names for path in ([Path(name)] if name.endswith(".csv") else find([name]))]
    tables = [csv_file.rows(csv_file.text_of(path), path, ("replicas", "time_s")) for path in paths if path.suffix == ".csv"]
    result = [_timed(row, at) for _, lines in tables for at, row in lines]
    for run in of_one_machine((load(path) for path in paths if path.suffix != ".csv"), left_out):
        for stream in streams(run, left_out) if tells_of_jobs(run) else ():
            done = [job for job in stream.jobs if job.done and job.work is not None]
            for job in done:
                where = f"{run.origin}: {stream.name}: job {job.number}"
                if job.start_s is None or job.end_s is None:
                    raise Unreadable(f"{where} is done and has no start_s or end_s.")
                result.append(_timed({"replicas": job.replicas, "work": job.work, "time_s": job.end_s - job.start_s}, where))
            if missing := len(stream.jobs) - len(done):
                left_out.append(f"{stream.name}: {missing} of {len(stream.jobs)} jobs were not done, or have no size.")
    if not result:
        raise Refused(f"{', '.join(names)}: no job that ended with replicas and a time. {' '.join(left_out)}".rstrip())
    return result, left_out


def _timed(row: Mapping[str, Any], where: str) -> TimedJob:
    values = []
    for name, default in (("replicas", None), ("work", 1.0), ("time_s", None)):
        value = as_number(row.get(name, default))
        if value is None or not 0 < value < 1e12 or (name == "replicas" and value != int(value)):
            kind = "whole " if name == "replicas" else ""
            raise Unreadable(f"{where}: {name} is {row.get(name, default)!r}; a {kind}number above 0 belongs there.")
        values.append(value)
    return TimedJob(int(values[0]), values[1], values[2])


def law(path: Path) -> Law:
    document = parsed(path)
    if isinstance(document, dict) and isinstance(document.get("fits"), list) and document["fits"]:
        document = document["fits"][0].get("law")
    if not isinstance(document, dict) or "cost_s" not in document:
        raise Unreadable(f"{path}: no law; `{JUDGE} scale fit --json` writes one, of cost_s, serial, crosstalk, startup_s.")
    if unknown := [name for name in document if name not in LAW]:
        raise Unreadable(f"{path}: a law has no {unknown[0]!r}; it has {', '.join(LAW)}.")
    return law_of(document, str(path))


def law_of(numbers: Mapping[str, Any], where: str) -> Law:
    for name, value in numbers.items():
        most = 1.0 if name in {"serial", "crosstalk"} else 1e12
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise Refused(f"{where}: {name} is {value!r}; a number from 0 to {most:g} belongs there.")
    if numbers["cost_s"] == 0:
        raise Refused(f"{where}: cost_s is 0: no work takes no time.")
    return Law(**{name: float(value) for name, value in numbers.items()})


@dataclass(frozen=True, slots=True)
class ScaledStream:
    """One stream under one way of scaling.

    `within` is the part of the jobs that ran for the target ±10 %, `within_waited` that of those that were done so soon after submission;
    `node_s_per_job` what a job took of the nodes; times in seconds, `p95_response_s` with the wait.
    """

    within: float
    within_waited: float
    node_s_per_job: float
    mean_wait_s: float
    p95_response_s: float


def _scaled(ran_s: Floats, response_s: Floats, replicas: Floats, target_s: float) -> ScaledStream:
    within, within_waited = (float((np.abs(times_s / target_s - 1) <= TOLERANCE).mean()) for times_s in (ran_s, response_s))
    node_s = float((ran_s * replicas).mean())
    return ScaledStream(within, within_waited, node_s, float((response_s - ran_s).mean()), float(np.quantile(response_s, 0.95)))


@dataclass(frozen=True, slots=True)
class ScalingArm:
    """One way of scaling: by seed, the mean replicas, and against the choice for each: `more_within` is how much larger a part that has.

    Its `p` is after Holm over the ways of scaling, None where it is the same in all seeds. `node_seconds` is how many times those of
    this one the choice takes. None for the choice itself.
    """

    name: str
    replicas: float
    seeds: tuple[ScaledStream, ...]
    more_within: Figure | None = None
    node_seconds: Ratio | None = None
    p: float | None = None

    def mean(self, name: str) -> float:
        return float(np.mean([getattr(seed, name) for seed in self.seeds]))


def compared(arms: Sequence[ScalingArm], unlike: Container[str] = ()) -> tuple[ScalingArm, ...]:
    """Hold the first, the choice, against each of the others that met the same jobs."""
    chosen = arms[0]
    result = [arm if arm.name in unlike or len(chosen.seeds) < FEWEST else _against(chosen, arm) for arm in arms[1:]]
    p = holm_by_key({arm.name: arm.p for arm in result})
    return (chosen, *(replace(arm, p=p.get(arm.name)) for arm in result))


def _against(chosen: ScalingArm, other: ScalingArm) -> ScalingArm:
    more = [own.within - theirs.within for own, theirs in zip(chosen.seeds, other.seeds, strict=True)]
    before, after = ({("", at): seed.node_s_per_job for at, seed in enumerate(arm.seeds)} for arm in (other, chosen))
    return replace(other, more_within=over_runs(more), node_seconds=ratio_of(before, after), p=change_in(more, log=False).p)


@dataclass(frozen=True, slots=True)
class MeasuredStream:
    """One stream. `target_s` is there where replicas were chosen, with what the choice knew: its law by class, what measuring it took."""

    record: Stream
    target_s: float | None = None
    laws: Mapping[str, Law] = field(default_factory=dict)
    reachable: float | None = None
    profile_node_s: float | None = None

    @property
    def arm(self) -> str:
        """The way of scaling."""
        replicas = self.record.params.get("replicas")
        return ELASTIC if self.target_s is not None else "as its class has it" if replicas is None else f"{replicas} for all"


@dataclass(frozen=True, slots=True)
class TargetReport:
    """One target on one engine. `runs` are those that every arm had, `alone` the streams beside; `lost` jobs were not done at once.

    `arms` begin with the choice. `reachable` is the part of the jobs for which the choice expected a number of replicas that fits;
    `off` the mean of |predicted/measured - 1| of the time of the jobs it chose for, None where no law is recorded; `profile_node_s` is
    what was measured beforehand took, for each stream. `late` and `early` are the parts of its jobs that took more and less than the band.
    Of arms that are `unlike` the choice other jobs were done: they are not compared with it.
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
    runs = of_one_machine(load_each(names, refused), refused)
    every = read_each(runs, lambda run: of_run(run, in_order(streams(run, refused), refused)), refused)
    return [stream for _, of_each in every for stream in of_each]


def of_run(run: Run, streams: Iterable[Stream]) -> list[MeasuredStream]:
    """Return streams of a run with what is recorded of how their replicas were chosen."""
    rows = {cell.id: cell.report.get("scale", ()) for cell in run.cells}
    result = []
    for stream in streams:
        if not (scale := rows[stream.name]):
            result.append(MeasuredStream(stream))
            continue
        about = Fields(scale[0], stream.origin, f"cell {stream.name}, report.scale")
        laws = {name: law_of(inner.fields("law").value, inner.place) for name, inner in about.items("laws")}
        reachable, node_s = about.up_to("reachable", 1.0), about.positive("profile_node_s")
        result.append(MeasuredStream(stream, about.positive("target_s"), laws, reachable, node_s))
    return result


def reports(streams: Sequence[MeasuredStream]) -> list[TargetReport]:
    keys = dict.fromkeys((one.record.engine, one.record.slots or 0, one.target_s) for one in streams if one.target_s is not None)
    if not keys:
        raise Refused(f"No stream had its replicas chosen (target_s=…): `{JUDGE} queue` and `schedule` read other streams.")
    return [_report(streams, engine, slots, target_s) for engine, slots, target_s in keys if target_s is not None]


def _report(every: Sequence[MeasuredStream], engine: str, slots: int, target_s: float) -> TargetReport:
    beside = [one for one in every if (one.record.engine, one.record.slots) == (engine, slots) and one.target_s in {None, target_s}]
    tweaksets = sorted({stream.record.tweakset for stream in beside})
    if len(tweaksets) > 1:
        raise Refused(f"{engine} with {slots} slots: tweak sets ({', '.join(tweaksets)}) are never mixed; name runs of one.")
    by_arm: dict[str, dict[Hashable, MeasuredStream]] = {}
    for stream in beside:
        by_arm.setdefault(stream.arm, {})[stream.record.same_jobs] = stream
    order = [ELASTIC, *sorted(name for name in by_arm if name != ELASTIC)]
    shared = [key for key in by_arm[ELASTIC] if all(key in by_arm[name] for name in order)]
    where = f"{engine} with {slots} slots, target {target_s:g} s"
    if not shared:
        raise Refused(f"{where}: no jobs met every way of scaling; nothing can be compared.")
    paired = {name: [by_arm[name][key] for key in shared] for name in order}
    done = {name: [stream.record.done_with_times for stream in streams] for name, streams in paired.items()}
    arms = []
    for name, of_arm in done.items():
        if (fewest := min(map(len, of_arm))) < FEWEST_JOBS:
            raise Refused(f"{where}: a stream of {name} has {fewest} jobs that were done at once; {FEWEST_JOBS} are needed.")
        columns = [np.array([(times.ran_s, times.response_s, job.replicas) for job, times in jobs]).T for jobs in of_arm]
        mean_replicas = float(np.mean(np.concatenate([replicas for _, _, replicas in columns])))
        scaled = tuple(_scaled(ran_s, response_s, replicas, target_s) for ran_s, response_s, replicas in columns)
        arms.append(ScalingArm(name, mean_replicas, scaled))
    numbers = {name: [{job.number for job, _ in jobs} for jobs in of_arm] for name, of_arm in done.items()}
    unlike = tuple(name for name in order if numbers[name] != numbers[ELASTIC])
    ran_s = np.array([times.ran_s for jobs in done[ELASTIC] for _, times in jobs])
    return TargetReport(
        engine=engine,
        slots=slots,
        target_s=target_s,
        runs=len(shared),
        alone=len(beside) - len(shared) * len(order),
        lost=sum(len(stream.record.jobs) - len(jobs) for name in order for stream, jobs in zip(paired[name], done[name], strict=True)),
        arms=compared(arms, unlike),
        reachable=average_of_known(stream.reachable for stream in paired[ELASTIC]),
        off=average_of_known(map(_off, paired[ELASTIC])),
        profile_node_s=average_of_known(stream.profile_node_s for stream in paired[ELASTIC]),
        late=float((ran_s > target_s * (1 + TOLERANCE)).mean()),
        early=float((ran_s < target_s * (1 - TOLERANCE)).mean()),
        unlike=unlike,
    )


def _off(stream: MeasuredStream) -> float | None:
    return average_of_known(
        abs(float(time_s(stream.laws[job.class_], job.work, job.replicas)) / times.ran_s - 1)
        for job, times in stream.record.done_with_times
        if job.class_ in stream.laws and job.work is not None and times.ran_s > 0
    )


def fitted(names: Sequence[str]) -> Answer:
    jobs, left_out = points(names)
    for line in left_out:
        print("left out:", line, file=sys.stderr)
    fits = [replace(fit, held_out=held_out(jobs, fit)) for fit in fits_of(jobs)]
    best, sections = fits[0], []
    off = f"points {best.spread:.1%} off (sd)" if best.held_out is None else f"{best.held_out:.1%} off where left out of the fit"
    columns: Columns = [
        (Column("", "parameter", left=True), lambda row: row[0]),
        (Column("value", write=digits), lambda row: row[1]),
        (Column("95 %", "interval"), lambda row: f"{digits(row[2][0], 3)} to {digits(row[2][1], 3)}"),
    ]
    for fit in fits:
        error = "" if fit.held_out is None else f", {fit.held_out:.1%} off where left out of the fit"
        rows = [(name, value, fit.intervals[name]) for name, value in asdict(fit.law).items() if name in fit.intervals]
        title = f"{NAMES[fit.name]}: AICc {fit.aicc:.1f}, points {fit.spread:.1%} off (sd){error}"
        sections.append(Section(title, [table_of(columns, rows), *map(Line, fit.notes)]))
    formula = [Line("time = startup + cost·work·(1 + serial·(n-1) + crosstalk·n·(n-1))/n")]
    return Answer(f"{NAMES[best.name]} fits {best.points} jobs best, {off}.", formula, sections, data={"fits": fits})


def choices(law: Law, target_s: float, most: int, sizes: Sequence[float]) -> Answer:
    chosen = [choose(law, work, target_s, most) for work in sizes]
    columns: Columns = [
        (Column("size", "work", "{:g}".format, left=True), lambda choice: choice.work),
        (Column("replicas"), lambda choice: choice.replicas),
        (Column("predicted s", "predicted_s", digits), lambda choice: choice.predicted_s),
        (Column("within 10 %", "within", left=True), lambda choice: "yes" if choice.within else f"no: {choice.why}"),
    ]
    fit = f"{sum(choice.within for choice in chosen)} of {plural(len(chosen), 'size')}"
    return Answer(
        f"{fit} can run for {target_s:g} s ±10 %, with the replicas that come nearest.",
        sections=[Section("", [table_of(columns, chosen)])],
        data={"law": law, "target_s": target_s, "choices": chosen},
    )


def reported(streams: Sequence[MeasuredStream], refused: Sequence[str]) -> Answer:
    """Whether more jobs run for the target with replicas chosen for each, target by target."""
    result = reports(streams)
    lines, sections = [], []
    for report in result:
        where = f"{report.slots} slots of {report.engine}, every job to run {report.target_s:g} s ±10 %"
        lines.append(_found(report.arms, f" ({where})" if len(result) > 1 else ""))
        head = Line(f"MEASURED: {where}; {report.runs} streams.")
        sections.append(Section("", [head, *_tables(report.arms), *bullets(_report_lines(report))]))
    title, *more = leading(lines)
    return Answer(title, [*map(Line, more)], sections, (), LEGEND, data={"simulated": False, "reports": result}, refused=refused)


def _word(arm: ScalingArm) -> Word | None:
    """Whether more jobs, or fewer, run for the target with the choice than so."""
    if arm.name == ELASTIC:
        return None
    if arm.more_within is None:
        return CANT_TELL if len(arm.seeds) < FEWEST else NOT_COMPARABLE
    more = (arm.p is None or arm.p < ALPHA) * arm.more_within.value
    return Word("more", "good") if more > 0 else Word("fewer", "bad") if more < 0 else CANT_TELL


def _found(arms: Sequence[ScalingArm], where: str = "") -> str:
    chosen, *others = arms
    verdicts = [((_word(arm) or CANT_TELL).text, f"{arm.name} ({share(arm.mean('within'), 1)})") for arm in others]
    names = {word: ", ".join(name for its, name in verdicts if its == word) for word, _ in verdicts}
    claims = "".join(f", {word} than with {names.pop(word)}" for word in ("more", "fewer") if word in names)
    rest = "".join(f" {word[0].upper()}{word[1:]}: {their}." for word, their in names.items())
    return f"Replicas {chosen.name}{where}: {share(chosen.mean('within'), 1)} of the jobs run for the target{claims}.{rest}"


def _report_lines(report: TargetReport) -> Iterator[str]:
    if report.reachable is not None:
        yield f"By the law that chose, {report.reachable:.1%} of the jobs have a number of replicas that fits."
    if report.off is not None:
        off = f"It was {report.off:.1%} off on average over its jobs"
        yield f"{off}; {report.early:.1%} of them took less than the band, {report.late:.1%} more."
    if report.profile_node_s is not None:
        yield f"Measuring beforehand took {report.profile_node_s:.3g} node-seconds a stream."
    if report.runs < FEWEST:
        yield f"Fewer than {FEWEST} streams: nothing has an interval. Run more blocks."
    if len(report.arms) < 2:
        yield "Nothing stands beside the choice: run the same jobs with --vary replicas=1,2,4."
    if report.alone:
        yield f"{report.alone} streams, whose jobs did not meet every way of scaling, are left out."
    if unlike := ", ".join(report.unlike):
        yield f"Not compared with the choice: {unlike}, of which other jobs were done at once: who lost those off the target would gain."
    if report.lost:
        yield f"{report.lost} jobs were not done in their first attempt and have no part in these figures."


def _points(of: Figure | None) -> Figure | None:
    return None if of is None or of.low is None or of.high is None else Figure(100 * of.value, 100 * of.low, 100 * of.high)


def _tables(arms: Sequence[ScalingArm]) -> list[Table]:
    """The ways of scaling, and what the choice for each has more of than each; those with another word than can't tell first."""
    columns: Columns = [
        (Column("replicas", left=True), lambda arm: arm.name),
        (Column("mean", "replicas_mean", "{:.1f}".format), lambda arm: arm.replicas),
        (Column("within", "within", partial(share, decimals=1)), lambda arm: arm.mean("within")),
        (Column("choice\nhas", "verdict", left=True), _word),
        (Column("points more\n[95 %]", "points", figure), lambda arm: _points(arm.more_within)),
        (Column("node s\na job", "node_s_per_job", digits), lambda arm: arm.mean("node_s_per_job")),
        (Column("choice takes\ntimes [95 %]", "node_seconds", figure), lambda arm: arm.node_seconds),
        (Column("p", write=probability, spare=1), lambda arm: arm.node_seconds and arm.node_seconds.p),
    ]
    waits: Columns = [
        columns[0],
        (Column("within, waits incl.", "within_waited", partial(share, decimals=1)), lambda arm: arm.mean("within_waited")),
        (Column("mean wait s", "mean_wait_s", digits), lambda arm: arm.mean("mean_wait_s")),
        (Column("p95 response s", "p95_response_s", digits), lambda arm: arm.mean("p95_response_s")),
    ]
    return [table_of(columns, sorted(arms, key=lambda arm: _word(arm) in {CANT_TELL, NOT_COMPARABLE})), table_of(waits, arms)]
