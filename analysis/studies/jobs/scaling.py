"""Replicas of jobs: laws fitted to measured times, and choices per job compared with one number."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from analysis.answer import Answer, Column, Columns, Line, Section, Table, Word, bullets, table_of
from analysis.contrasts import FEWEST
from analysis.formats.checked import Part
from analysis.load import load_each, parsed, read_each
from analysis.terms import Refused, Run, Unreadable
from analysis.wording import counted, digits, probability
from control.called import JUDGE
from control.saved import Positive  # noqa: TC001  # msgspec reads by it
from control.scaling import TOLERANCE, Law, TimedJob, choose, held_out, time_s
from control.scaling import fits as fits_of

from . import csv_file
from .claims import Contrast, claimed, claims_first, column, contrasts_of, leading, verdict
from .estimates import as_number, average, average_of_known, figure, share, value_of
from .records import Stream, in_order, of_one_machine, streams

if TYPE_CHECKING:
    from analysis.contrasts import Scale

ELASTIC = "chosen for each"
FEWEST_JOBS = 5
NAMES = {"amdahl": "Amdahl", "usl": "Gunther (USL)"}
MORE, FEWER = Word("more", "good"), Word("fewer", "bad")
LEGEND = (
    ("within", "share of jobs that ran for the target ±10 %."),
    ("node s", "replicas times run time, per job, excluding the measurements beforehand."),
    ("95 %", "interval over streams of the same jobs, paired, against the choice for each job."),
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
        nothing = f"{', '.join(names)}: no finished job with replicas and a time."
        raise Refused(" ".join([nothing, *left_out]))
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
    return Part(document, str(path), "law", "correct the file").made(Law)


@dataclass(frozen=True, slots=True)
class ScalingArm:
    """One way of scaling; `means` are over streams, each counted once.

    `within` is its share of jobs that ran for the target less the choice's, `node_s` its
    node-seconds over the choice's: None for the choice, and for an arm with other jobs.
    """

    name: str
    means: Mapping[str, float]
    within: Contrast | None = None
    node_s: Contrast | None = None


METRICS: dict[str, Scale] = {"within": "raw", "node_s_per_job": "log"}


def _figures(stream: Stream, target_s: float) -> dict[str, float]:
    done = stream.done_with_times
    within = [abs(times.ran_s / target_s - 1) <= TOLERANCE for _, times in done]
    return {
        "within": average([float(one) for one in within]),
        "node_s_per_job": average([times.ran_s * job.replicas for job, times in done]),
        "mean_wait_s": average([times.start_s - times.submit_s for _, times in done]),
        "replicas": average([job.replicas for job, _ in done]),
    }


@dataclass(frozen=True, slots=True)
class MeasuredStream:
    """One stream; `target_s` is there where replicas were chosen, with what the choice knew."""

    record: Stream
    target_s: float | None = None
    laws: Mapping[str, Law] = field(default_factory=dict)
    reachable: float | None = None
    profile_node_s: float | None = None

    @property
    def arm(self) -> str:
        """How replicas were chosen: per job, by class, or one number for all."""
        replicas = self.record.params.get("replicas")
        fixed = "set by its class" if replicas is None else f"{replicas} for all"
        return ELASTIC if self.target_s is not None else fixed


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
    law: Law


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
        laws = {name: one["law"] for name, one in about["laws"].items()}
        more = about.get("reachable"), about["profile_node_s"]
        result.append(MeasuredStream(stream, about["target_s"], laws, *more))
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
    return [_report(streams, *key) for key in keys]


def _report(
    every: Sequence[MeasuredStream], engine: str, slots: int, target_s: float
) -> TargetReport:
    beside = [
        one
        for one in every
        if (one.record.engine, one.record.slots) == (engine, slots)
        and one.target_s in {None, target_s}
    ]
    where = f"{engine} with {slots} slots, target {target_s:g} s"
    tweaksets = sorted({stream.record.tweakset for stream in beside})
    if len(tweaksets) > 1:
        raise Refused(f"{where}: tweak sets {', '.join(tweaksets)}; name runs of one.")
    by_arm: dict[str, dict[Hashable, MeasuredStream]] = {}
    for stream in beside:
        by_arm.setdefault(stream.arm, {})[stream.record.same_jobs] = stream
    order = [ELASTIC, *sorted(name for name in by_arm if name != ELASTIC)]
    shared = [key for key in by_arm[ELASTIC] if all(key in by_arm[name] for name in order)]
    if not shared:
        raise Refused(
            f"{where}: no jobs ran with every way of scaling, so nothing can be compared."
        )
    met = {name: [by_arm[name][key].record for key in shared] for name in order}
    done = {name: [one.done_with_times for one in own] for name, own in met.items()}
    fewest = min(len(jobs) for own in done.values() for jobs in own)
    if fewest < FEWEST_JOBS:
        raise Refused(
            f"{where}: a stream has {fewest} jobs done in their first attempt; at least "
            f"{FEWEST_JOBS} are needed."
        )
    rows = {name: [_figures(one, target_s) for one in own] for name, own in met.items()}
    numbers = {
        name: [{job.number for job, _ in jobs} for jobs in own] for name, own in done.items()
    }
    unlike = tuple(name for name in order if numbers[name] != numbers[ELASTIC])
    compared = [
        {"arm": name, "stream": at, **row}
        for name in order
        if name not in unlike
        for at, row in enumerate(rows[name])
    ]
    found = contrasts_of(compared, "arm", ELASTIC, METRICS, within=["stream"])
    of_arm = {(row.arm, row.metric): row for row in found}
    chosen = [by_arm[ELASTIC][key] for key in shared]
    submitted = sum(len(one.jobs) for own in met.values() for one in own)
    return TargetReport(
        engine=engine,
        slots=slots,
        target_s=target_s,
        runs=len(shared),
        alone=len(beside) - len(shared) * len(order),
        lost=submitted - sum(len(jobs) for own in done.values() for jobs in own),
        arms=tuple(
            ScalingArm(
                name,
                {metric: average([row[metric] for row in rows[name]]) for metric in rows[name][0]},
                *(of_arm.get((name, metric)) for metric in METRICS),
            )
            for name in order
        ),
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
    fits = [replace(fit, held_out=held_out(jobs, fit)) for fit in fits_of(jobs)]
    columns: Columns = [
        (Column("", "parameter", left=True), lambda row: row[0]),
        (Column("value", write=digits), lambda row: row[1]),
        (
            Column("95 %", "interval"),
            lambda row: row[2] and " to ".join(digits(end, 3) for end in row[2]),
        ),
    ]
    sections = []
    for fit in fits:
        rows = [
            (name, value, fit.intervals[name])
            for name, value in asdict(fit.law).items()
            if name in fit.intervals
        ]
        criterion = f"AICc {fit.aicc:.1f}, " if math.isfinite(fit.aicc) else ""
        error = "" if fit.held_out is None else f", {fit.held_out:.1%} off on held-out points"
        title = f"{NAMES[fit.name]}: {criterion}points {fit.spread:.1%} off (sd){error}"
        sections.append(Section(title, [table_of(columns, rows), *map(Line, fit.notes)]))
    formula = [Line("time = startup + cost·work·(1 + serial·(n-1) + crosstalk·n·(n-1))/n")]
    best = fits[0]
    off = (
        f"points {best.spread:.1%} off (sd)"
        if best.held_out is None
        else f"{best.held_out:.1%} off on held-out points"
    )
    title = f"{NAMES[best.name]} fits {best.points} jobs best, {off}."
    return Answer(title, formula, sections, data={"fits": fits}, refused=left_out)


def choices(law: Law, target_s: float, most: int, sizes: Sequence[float]) -> Answer:
    chosen = [choose(law, work, target_s, most) for work in sizes]
    columns: Columns = [
        column("size", "work", "{:g}".format, left=True),
        column("replicas"),
        column("predicted s", "predicted_s", digits),
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
    data = {"simulated": False, "reports": result}
    return Answer(title, [*map(Line, more)], sections, (), LEGEND, data=data, refused=refused)


def _word(arm: ScalingArm) -> Word | None:
    return None if arm.name == ELASTIC else verdict(arm.within, MORE, FEWER, 0.0)


def _found(arms: Sequence[ScalingArm], where: str = "") -> str:
    chosen, *others = arms
    within = {arm.name: share(arm.means["within"], 1) for arm in arms}
    verdicts = [
        (word, f"{arm.name} ({within[arm.name]})") for arm in others if (word := _word(arm))
    ]
    most = f"Replicas {chosen.name}{where}: {within[ELASTIC]} of the jobs run for the target."
    return f"{most} {claimed(verdicts)}".rstrip()


def _report_lines(report: TargetReport) -> Iterator[str]:
    if report.reachable is not None:
        yield f"By the law used, {report.reachable:.1%} of the jobs can meet the target."
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
    if report.unlike:
        yield (
            f"Not compared with the choice: {', '.join(report.unlike)}. Other jobs were done in "
            "their first attempt, and an arm that lost jobs off the target would seem better."
        )
    if report.lost:
        yield f"{report.lost} jobs were not done in their first attempt: not in these figures."


def _table(arms: Sequence[ScalingArm]) -> Table:
    def mean(name: str) -> Any:
        return lambda arm: arm.means[name]

    columns: Columns = [
        column("replicas", of="name", left=True),
        (Column("mean", "replicas_mean", "{:.1f}".format), mean("replicas")),
        (Column("within", "within", partial(share, decimals=1)), mean("within")),
        (Column("jobs on\ntarget", "verdict", left=True), _word),
        (
            Column("points more than\nchoice [95 %]", "points", partial(figure, scale=100)),
            lambda arm: arm.within if value_of(arm.within) is not None else None,
        ),
        (Column("node s\nper job", "node_s_per_job", digits), mean("node_s_per_job")),
        column("times the\nchoice's [95 %]", "node_seconds", figure, of="node_s"),
        (Column("p", write=probability, spare=1), lambda arm: arm.node_s and arm.node_s.p),
        (Column("mean\nwait s", "mean_wait_s", digits, spare=2), mean("mean_wait_s")),
    ]
    return table_of(columns, claims_first(arms, _word))
