"""Replicas of jobs: laws fitted to measured times, and choices per job compared with one number."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from analysis.answer import Answer, Column, Columns, Line, Section, Table, Word, bullets, table_of
from analysis.contrasts import FEWEST, SAME, Scale, contrasts
from analysis.formats.checked import Part
from analysis.load import load_each, parsed, read_each
from analysis.terms import Refused, Run, Unreadable
from analysis.wording import counted, digits, probability
from control.called import JUDGE
from control.saved import Positive  # noqa: TC001  # msgspec reads by it
from control.scaling import TOLERANCE, Law, TimedJob, choose, held_out, time_s
from control.scaling import fits as fits_of
from control.t_test import ALPHA

from . import csv_file
from .claims import CANT_TELL, NOT_COMPARABLE, leading
from .estimates import Figure, as_number, average, average_of_known, figure, share
from .records import Stream, in_order, of_one_machine, streams

if TYPE_CHECKING:
    import pandas as pd

LAW = tuple(field.name for field in fields(Law))
ELASTIC = "chosen for each"
FEWEST_JOBS = 5
NAMES = {"amdahl": "Amdahl", "usl": "Gunther (USL)"}
LEGEND = (
    ("within", "share of jobs that ran for the target ±10 %."),
    ("node s", "replicas times run time, per job, excluding the measurements beforehand."),
    ("95 %", "interval over streams, paired: the same jobs under every way of scaling."),
)


def points(names: Sequence[str]) -> tuple[list[TimedJob], list[str]]:
    """Read CSV with `replicas`, `time_s` and, if sizes differ, `work`; and saved job streams.

    Returns: the points, and what was left out, a sentence each. Raises: Refused, if nothing is
        left, and for runs of different machines.
    """
    from .prediction.reading import SERVICE, rows_of

    lists = [name for name in names if name.endswith(".csv")]
    tables = [
        csv_file.rows(csv_file.text_of(Path(name)), name, ("replicas", "time_s")) for name in lists
    ]
    result = [_timed(row, at) for _, lines in tables for at, row in lines]
    runs = [name for name in names if name not in lists]
    rows, _, left_out = rows_of(runs, SERVICE) if runs else ([], SERVICE, [])
    sized = [row for row in rows if "work" in row.factors]
    result += [_timed({**row.factors, "time_s": row.value}, row.run) for row in sized]
    if missing := len(rows) - len(sized):
        left_out.append(f"{missing} of {len(rows)} jobs have no size.")
    if not result:
        raise Refused(
            f"{', '.join(names)}: no finished job with replicas and a time. "
            f"{' '.join(left_out)}".rstrip()
        )
    return result, left_out


def _timed(row: Mapping[str, Any], where: str) -> TimedJob:
    values = []
    for name, default in (("replicas", None), ("work", 1.0), ("time_s", None)):
        value = as_number(row.get(name, default))
        if value is None or not 0 < value < 1e12 or (name == "replicas" and value != int(value)):
            kind = "whole " if name == "replicas" else ""
            raise Unreadable(
                f"{where}: {name} is {row.get(name, default)!r}; it must be a {kind}number above 0."
            )
        values.append(value)
    return TimedJob(int(values[0]), values[1], values[2])


def law(path: Path) -> Law:
    document = parsed(path)
    if isinstance(document, dict) and isinstance(document.get("fits"), list) and document["fits"]:
        document = document["fits"][0].get("law")
    if not isinstance(document, dict) or "cost_s" not in document:
        raise Unreadable(
            f"{path}: not a law; `{JUDGE} scale fit --json` writes one, with cost_s, serial, "
            "crosstalk, startup_s."
        )
    if unknown := [name for name in document if name not in LAW]:
        raise Unreadable(f"{path}: a law has no {unknown[0]!r}; it has {', '.join(LAW)}.")
    return law_of(document, str(path))


def law_of(numbers: Mapping[str, Any], where: str) -> Law:
    for name, value in numbers.items():
        most = 1.0 if name in {"serial", "crosstalk"} else 1e12
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise Refused(f"{where}: {name} is {value!r}; it must be a number from 0 to {most:g}.")
    if numbers["cost_s"] == 0:
        raise Refused(f"{where}: cost_s is 0; it must be above 0.")
    return Law(**{name: float(value) for name, value in numbers.items()})


@dataclass(frozen=True, slots=True)
class ScalingArm:
    """One way of scaling, compared per stream with the choice for each job.

    `more_within` is the choice's share of jobs that ran for the target less this arm's; `p` is
    after Holm over all arms. `node_seconds` is the choice's ÷ this arm's. All are None for the
    choice itself, and for an arm with other jobs.
    """

    name: str
    streams: Sequence[Mapping[str, float]]
    more_within: Figure | None = None
    p: float | None = None
    node_seconds: Figure | None = None
    p_node_seconds: float | None = None

    def mean(self, name: str) -> float:
        return average([stream[name] for stream in self.streams])

    @property
    def shown(self) -> bool:
        return (self.more_within is not None and self.more_within.why == SAME) or (
            self.p is not None and self.p < ALPHA
        )


# Of a stream: the share of jobs that ran for the target ±10 %, what a job took of the nodes, the
# jobs' mean wait, and their mean number of replicas.
METRICS = ("within", "node_s_per_job", "mean_wait_s", "replicas")


def _jobs_of(stream: Stream, target_s: float) -> pd.DataFrame:
    """Return a row for each job that finished in its first attempt."""
    import pandas as pd

    rows = [
        (job.number, times.ran_s, times.start_s - times.submit_s, job.replicas)
        for job, times in stream.done_with_times
    ]
    jobs = pd.DataFrame(rows, columns=["number", "ran_s", "mean_wait_s", "replicas"])
    jobs["within"] = ((jobs["ran_s"] / target_s - 1).abs() <= TOLERANCE).astype(float)
    jobs["node_s_per_job"] = jobs["ran_s"] * jobs["replicas"]
    return jobs


def compared(frame: pd.DataFrame, unlike: Collection[str] = ()) -> tuple[ScalingArm, ...]:
    """Compare the choice with each other way of scaling, over streams of the same jobs.

    frame: a row per stream and way of scaling (the column `arm`), `stream` numbers those of the
        same jobs, and METRICS. Ways that are `unlike` are not compared.
    """
    arms = {
        str(name): ScalingArm(
            str(name),
            [dict(zip(METRICS, row, strict=True)) for row in own[[*METRICS]].to_numpy().tolist()],
        )
        for name, own in frame.groupby("arm", sort=False)
    }
    others = [name for name in arms if name != ELASTIC and name not in unlike]
    if not others:
        return tuple(arms.values())
    scales: dict[str, Scale] = {"within": "raw", "node_s_per_job": "log"}
    found = contrasts(frame[~frame["arm"].isin(unlike)], "arm", ELASTIC, scales, within=("stream",))
    for name in others:
        within, node_s = found[found["arm"] == name].to_dict("records")
        arms[name] = replace(
            arms[name],
            more_within=_of_choice(within, lambda less: -less),
            p=_known(within["p_adjusted"]),
            node_seconds=_of_choice(node_s, lambda times: 1 / times),
            p_node_seconds=_known(node_s["p"]),
        )
    return tuple(arms.values())


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _of_choice(contrast: Mapping[Any, Any], turned: Callable[[float], float]) -> Figure | None:
    ends = [_known(contrast[name]) for name in ("value", "high", "low")]
    value, low, high = (None if end is None else turned(end) for end in ends)
    return None if value is None else Figure(value, low, high, why=contrast["missing"])


@dataclass(frozen=True, slots=True)
class MeasuredStream:
    """One stream.

    `target_s` is there where replicas were chosen, with what the choice knew: its law by class,
    what measuring it took.
    """

    record: Stream
    target_s: float | None = None
    laws: Mapping[str, Law] = field(default_factory=dict)
    reachable: float | None = None
    profile_node_s: float | None = None

    @property
    def arm(self) -> str:
        """How replicas were chosen: per job, by class, or one number for all."""
        replicas = self.record.params.get("replicas")
        return (
            ELASTIC
            if self.target_s is not None
            else "set by its class"
            if replicas is None
            else f"{replicas} for all"
        )


@dataclass(frozen=True, slots=True)
class TargetReport:
    """One target on one engine; `arms` begin with the choice.

    `runs` are those that every arm had, `alone` the streams beside; `lost` jobs were not done at
    once. `reachable` is the share of jobs for which the choice expected a number of replicas that
    fits; `off` the mean error of the law's times; `profile_node_s` what measuring beforehand took,
    for each stream. Of arms that are `unlike` the choice other jobs were done.
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
    unlike: tuple[str, ...] = ()


def measured(names: Sequence[str], refused: list[str]) -> list[MeasuredStream]:
    runs = of_one_machine(load_each(names, refused), refused)
    every = read_each(
        runs, lambda run: of_run(run, in_order(streams(run, refused), refused)), refused
    )
    return [stream for _, of_each in every for stream in of_each]


class LawRow(TypedDict):
    law: dict[str, Any]


class ScaleRow(TypedDict):
    """A cell's report of its choice of replicas."""

    target_s: Positive
    laws: dict[str, LawRow]
    profile_node_s: Positive
    reachable: NotRequired[Annotated[float, Meta(ge=0, le=1)] | None]


def of_run(run: Run, streams: Iterable[Stream]) -> list[MeasuredStream]:
    """Return a run's streams with the record of how their replicas were chosen."""
    rows = {cell.id: cell.report.get("scale", ()) for cell in run.cells}
    result = []
    for stream in streams:
        if not (scale := rows[stream.name]):
            result.append(MeasuredStream(stream))
            continue
        place = f"cell {stream.name}, report.scale"
        about = Part(scale[0], stream.origin, place).read(ScaleRow)
        laws = {
            name: law_of(one["law"], f"{stream.origin}: {place}.laws[{name!r}]")
            for name, one in about["laws"].items()
        }
        result.append(
            MeasuredStream(
                stream, about["target_s"], laws, about.get("reachable"), about["profile_node_s"]
            )
        )
    return result


def reports(streams: Sequence[MeasuredStream]) -> list[TargetReport]:
    keys = dict.fromkeys(
        (one.record.engine, one.record.slots or 0, one.target_s)
        for one in streams
        if one.target_s is not None
    )
    if not keys:
        raise Refused(
            f"No stream has chosen replicas (target_s=…); use `{JUDGE} queue` or `schedule` for "
            "other streams."
        )
    return [
        _report(streams, engine, slots, target_s)
        for engine, slots, target_s in keys
        if target_s is not None
    ]


def _report(
    every: Sequence[MeasuredStream], engine: str, slots: int, target_s: float
) -> TargetReport:
    import pandas as pd

    beside = [
        one
        for one in every
        if (one.record.engine, one.record.slots) == (engine, slots)
        and one.target_s in {None, target_s}
    ]
    tweaksets = sorted({stream.record.tweakset for stream in beside})
    if len(tweaksets) > 1:
        raise Refused(
            f"{engine} with {slots} slots: several tweak sets ({', '.join(tweaksets)}); "
            "name runs of one."
        )
    by_arm: dict[str, dict[Hashable, MeasuredStream]] = {}
    for stream in beside:
        by_arm.setdefault(stream.arm, {})[stream.record.same_jobs] = stream
    order = [ELASTIC, *sorted(name for name in by_arm if name != ELASTIC)]
    shared = [key for key in by_arm[ELASTIC] if all(key in by_arm[name] for name in order)]
    where = f"{engine} with {slots} slots, target {target_s:g} s"
    if not shared:
        raise Refused(
            f"{where}: no jobs ran with every way of scaling, so nothing can be compared."
        )
    rows, jobs, numbers = [], 0, {}
    for name in order:
        of_arm = [_jobs_of(by_arm[name][key].record, target_s) for key in shared]
        if (fewest := min(map(len, of_arm))) < FEWEST_JOBS:
            raise Refused(
                f"{where}: a stream of {name} has {fewest} jobs done in their first "
                f"attempt; at least {FEWEST_JOBS} are needed."
            )
        for at, done in enumerate(of_arm):
            rows.append({"arm": name, "stream": at, **done.mean()})
        jobs += sum(map(len, of_arm))
        numbers[name] = [set(done["number"]) for done in of_arm]
    unlike = tuple(name for name in order if numbers[name] != numbers[ELASTIC])
    chosen = [by_arm[ELASTIC][key] for key in shared]
    return TargetReport(
        engine=engine,
        slots=slots,
        target_s=target_s,
        runs=len(shared),
        alone=len(beside) - len(shared) * len(order),
        lost=sum(len(by_arm[name][key].record.jobs) for name in order for key in shared)
        - jobs,
        arms=compared(pd.DataFrame(rows), unlike),
        reachable=average_of_known(stream.reachable for stream in chosen),
        off=average_of_known(map(_off, chosen)),
        profile_node_s=average_of_known(stream.profile_node_s for stream in chosen),
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
    off = (
        f"points {best.spread:.1%} off (sd)"
        if best.held_out is None
        else f"{best.held_out:.1%} off on held-out points"
    )
    columns: Columns = [
        (Column("", "parameter", left=True), lambda row: row[0]),
        (Column("value", write=digits), lambda row: row[1]),
        (
            Column("95 %", "interval"),
            lambda row: row[2] and " to ".join(digits(end, 3) for end in row[2]),
        ),
    ]
    for fit in fits:
        error = "" if fit.held_out is None else f", {fit.held_out:.1%} off on held-out points"
        rows = [
            (name, value, fit.intervals[name])
            for name, value in asdict(fit.law).items()
            if name in fit.intervals
        ]
        criterion = f"AICc {fit.aicc:.1f}, " if math.isfinite(fit.aicc) else ""
        title = f"{NAMES[fit.name]}: {criterion}points {fit.spread:.1%} off (sd){error}"
        sections.append(Section(title, [table_of(columns, rows), *map(Line, fit.notes)]))
    formula = [Line("time = startup + cost·work·(1 + serial·(n-1) + crosstalk·n·(n-1))/n")]
    name, jobs_fitted = NAMES[best.name], f"{best.points} jobs"
    only = f"{name} is the only law that {jobs_fitted} can identify"
    first = f"{name} fits {jobs_fitted} best" if len(fits) > 1 else only
    return Answer(f"{first}, {off}.", formula, sections, data={"fits": fits})


def choices(law: Law, target_s: float, most: int, sizes: Sequence[float]) -> Answer:
    chosen = [choose(law, work, target_s, most) for work in sizes]
    columns: Columns = [
        (Column("size", "work", "{:g}".format, left=True), lambda choice: choice.work),
        (Column("replicas"), lambda choice: choice.replicas),
        (Column("predicted s", "predicted_s", digits), lambda choice: choice.predicted_s),
        (
            Column("within 10 %", "within", left=True),
            lambda choice: "yes" if choice.within else "no",
        ),
    ]
    fit = f"{sum(choice.within for choice in chosen)} of {counted(len(chosen), 'size')}"
    return Answer(
        f"{fit} can run for {target_s:g} s ±10 %, with the nearest number of replicas.",
        sections=[Section("", [table_of(columns, chosen)])],
        data={"law": law, "target_s": target_s, "choices": chosen},
    )


def reported(streams: Sequence[MeasuredStream], refused: Sequence[str]) -> Answer:
    """Compare, per target, how many jobs meet it with replicas chosen per job."""
    result = reports(streams)
    lines, sections = [], []
    for report in result:
        where = (
            f"{report.slots} slots of {report.engine}, every job to run {report.target_s:g} s ±10 %"
        )
        lines.append(_found(report.arms, f" ({where})" if len(result) > 1 else ""))
        head = Line(f"MEASURED: {where}; {counted(report.runs, 'stream')}.")
        sections.append(Section("", [head, _table(report.arms), *bullets(_report_lines(report))]))
    title, *more = leading(lines)
    return Answer(
        title,
        [*map(Line, more)],
        sections,
        (),
        LEGEND,
        data={"simulated": False, "reports": result},
        refused=refused,
    )


def _word(arm: ScalingArm) -> Word | None:
    if arm.name == ELASTIC:
        return None
    if arm.more_within is None:
        return NOT_COMPARABLE
    more = arm.shown * arm.more_within.value
    return Word("more", "good") if more > 0 else Word("fewer", "bad") if more < 0 else CANT_TELL


def _found(arms: Sequence[ScalingArm], where: str = "") -> str:
    chosen, *others = arms
    verdicts = [
        ((_word(arm) or CANT_TELL).text, f"{arm.name} ({share(arm.mean('within'), 1)})")
        for arm in others
    ]
    names = {word: ", ".join(name for its, name in verdicts if its == word) for word, _ in verdicts}
    claims = "".join(
        f", {word} than with {names.pop(word)}" for word in ("more", "fewer") if word in names
    )
    rest = "".join(f" {word[0].upper()}{word[1:]}: {their}." for word, their in names.items())
    return (
        f"Replicas {chosen.name}{where}: {share(chosen.mean('within'), 1)} of the jobs run for "
        f"the target{claims}.{rest}"
    )


def _report_lines(report: TargetReport) -> Iterator[str]:
    if report.reachable is not None:
        yield (f"By the law used, {report.reachable:.1%} of the jobs can meet the target.")
    if report.off is not None:
        yield f"The law was {report.off:.1%} off on average."
    if report.profile_node_s is not None:
        yield f"Measuring beforehand took {report.profile_node_s:.3g} node-seconds per stream."
    if report.runs < FEWEST:
        yield f"Fewer than {FEWEST} streams: no intervals. Run more blocks."
    if len(report.arms) < 2:
        yield "Nothing to compare the choice with: run the same jobs with --vary replicas=1,2,4."
    if report.alone:
        yield f"{report.alone} streams left out: their jobs did not run with every way of scaling."
    if unlike := ", ".join(report.unlike):
        yield (
            f"Not compared with the choice: {unlike}. Other jobs were done in their first attempt, "
            "and an arm that lost jobs off the target would seem better."
        )
    if report.lost:
        yield (
            f"{report.lost} jobs were not done in their first attempt and are not in these figures."
        )


def _points(of: Figure | None) -> Figure | None:
    return (
        None
        if of is None or of.low is None or of.high is None
        else Figure(100 * of.value, 100 * of.low, 100 * of.high)
    )


def _table(arms: Sequence[ScalingArm]) -> Table:
    columns: Columns = [
        (Column("replicas", left=True), lambda arm: arm.name),
        (Column("mean", "replicas_mean", "{:.1f}".format), lambda arm: arm.mean("replicas")),
        (Column("within", "within", partial(share, decimals=1)), lambda arm: arm.mean("within")),
        (Column("choice\nhas", "verdict", left=True), _word),
        (Column("points more\n[95 %]", "points", figure), lambda arm: _points(arm.more_within)),
        (
            Column("node s\nper job", "node_s_per_job", digits),
            lambda arm: arm.mean("node_s_per_job"),
        ),
        (
            Column("choice takes\ntimes [95 %]", "node_seconds", figure),
            lambda arm: arm.node_seconds,
        ),
        (Column("p", write=probability, spare=1), lambda arm: arm.p_node_seconds),
        (Column("mean\nwait s", "mean_wait_s", digits, spare=2), lambda arm: arm.mean("mean_wait_s")),
    ]
    return table_of(columns, sorted(arms, key=lambda arm: _word(arm) in {CANT_TELL, NOT_COMPARABLE}))
