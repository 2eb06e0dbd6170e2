"""Make series of one value per run, and find changes at one false-alarm rate for all together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from analysis.checks import must_be_sound
from analysis.labels import TOLD_RATE, Machines
from analysis.pairing import metric_named
from analysis.plain import PLACE, moment
from analysis.stats.changepoint import LEVEL, SHORTEST, ChangePoint, change_points, odd_end
from analysis.stats.effect import benjamini_hochberg
from analysis.terms import Cell, Metric, NotComparable, Refused, Run, SavedWorkload
from analysis.wording import SHOWN_NAMES
from control.names import first_few

# The only tweak set's name in formats without tweak sets, which is not informative.
AS_RUN = "as-run"


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """A run's place in time; `started_utc` is ISO 8601 in UTC, so that its text sorts by time."""

    run_id: str
    started_utc: str
    origin: str
    commit: str | None


class RunPoint(NamedTuple):
    """A run's value in a series: geometric mean over blocks, in the metric's unit or a ratio."""

    mark: ChangeMark
    value: float


@dataclass(frozen=True, slots=True)
class RunSeries:
    """One metric of a workload under a tweak set on one kind of machine, in time order.

    `variant`: the parameters (`batch=16`) that distinguish workloads of one name. `relative_to`:
    the tweak set that each value was divided by.
    """

    study: str
    workload: str
    variant: str
    tweakset: str
    metric: Metric
    machine: str
    points: tuple[RunPoint, ...]
    relative_to: str | None = None

    @property
    def name(self) -> str:
        variant = f" ({self.variant})" if self.variant else ""
        tweakset = f", {self.tweakset}" if self.tweakset != AS_RUN else ""
        relative = f" relative to {self.relative_to}" if self.relative_to else ""
        return f"{self.workload}{variant}{tweakset}{relative}"


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A lasting change of a series; `found.index` is the first run on the new level.

    `gain`, `low` and `high` are fractions, above 0 is better. `before` and `after` are the levels,
    in the metric's unit. `found` is the same on the log of the values.
    """

    series: RunSeries
    found: ChangePoint
    gain: float
    low: float
    high: float
    before: float
    after: float

    @property
    def last_before(self) -> ChangeMark:
        return self.series.points[self.found.index - 1].mark

    @property
    def first(self) -> ChangeMark:
        return self.series.points[self.found.index].mark

    @property
    def verdict(self) -> Literal["improved", "regressed"]:
        return "improved" if self.gain > 0 else "regressed"

    @property
    def runs_since(self) -> int:
        return len(self.series.points) - self.found.index


@dataclass(frozen=True, slots=True)
class JudgedSeries:
    """A series, its changes, and the p for no change; `p_adjusted` is for all series together.

    `p_adjusted` is Benjamini-Hochberg's: a series above the level has no changes. `reason` is set
    if it was not judged. `odd_last` counts the last runs that are outliers on one side and no level
    yet; `odd_gain`: the mildest one's distance from the median of the others.
    """

    series: RunSeries
    changes: tuple[LevelChange, ...] = ()
    p: float | None = None
    p_adjusted: float | None = None
    reason: str | None = None
    odd_last: int = 0
    odd_gain: float = 0.0


@dataclass(frozen=True, slots=True)
class History:
    """The series of several runs; `notes` list what was omitted or kept separate, one line each.

    `judged` are the same series with their changes: `judge` adds them.
    """

    runs: int
    first_utc: str
    last_utc: str
    series: tuple[RunSeries, ...]
    notes: tuple[str, ...] = ()
    judged: tuple[JudgedSeries, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def changes(self) -> list[LevelChange]:
        every = [change for judged in self.judged for change in judged.changes]
        every.sort(key=lambda change: abs(change.found.shift), reverse=True)
        every.sort(key=lambda change: change.first.started_utc, reverse=True)
        return every


UNDATED = "runs without a date, whose order is unknown"
THROUGHPUT = "throughput_samples_per_s"
# For cells that took turns; the low quantile; or its nearest equivalent in files without rounds.
STEP_TIMES = ("step_time_round_adjusted_s", "step_time_p10_s", "step_time_median_s")


class _Key(NamedTuple):
    """The key of all points of a series: `params` as JSON, with the design; `machine` number."""

    study: str
    workload: str
    params: str
    tweakset: str
    metric: str
    machine: int


def gather(
    runs: Iterable[Run], metric: str | None = None, relative_to: str | None = None
) -> History:
    """Make series of throughput and a low quantile of step time, or of one metric.

    Raises: Refused, for a metric or tweak set that no run has.
    """
    gatherer = _Gatherer((metric,) if metric else (THROUGHPUT, *STEP_TIMES), relative_to)
    for run in runs:
        gatherer.add(run)
    return gatherer.history()


class _Gatherer:
    def __init__(self, metrics: tuple[str, ...], relative_to: str | None) -> None:
        self.requested, self.relative_to = metrics, relative_to
        self.machines = Machines()
        self.marks: dict[tuple[str, str], ChangeMark] = {}
        self.points: dict[_Key, list[RunPoint]] = defaultdict(list)
        self.left_out: dict[str, tuple[int, str]] = {}
        self.benchmarks_left_out: dict[str, None] = {}
        self.metrics: set[str] = set()
        self.rates: dict[str, Metric] = {}  # by workload, with their units
        self.tweaksets: set[str] = set()

    def add(self, run: Run) -> None:
        started = _utc(run.started_utc)
        if started is None:
            self._leave_out(UNDATED, run.origin)
            return
        if run.is_switched:
            self._leave_out(
                "runs whose settings were alternated inside processes: their cells are not whole "
                "runs of a tweak set",
                run.origin,
            )
            return
        mark = ChangeMark(run.run_id, started, run.origin, run.commit)
        first = self.marks.setdefault((run.run_id, started), mark)
        if first is not mark:
            self._leave_out("copies of other runs", f"{run.origin} is {first.origin}")
            return
        self.tweaksets |= run.tweaksets.keys()
        self.rates |= {
            name: known.primary
            for name, known in run.workloads.items()
            if known.primary and known.primary.name == TOLD_RATE
        }
        self.benchmarks_left_out |= dict.fromkeys(run.left_out)
        for key, values in self._logs(run).items():
            self.points[key].append(RunPoint(mark, math.exp(math.fsum(values) / len(values))))

    def _logs(self, run: Run) -> dict[_Key, list[float]]:
        machine = self.machines.number_of(run.machine)
        usable = [
            cell
            for cell in run.cells
            if cell.outcome == "measured" and self._can_be_used(run, cell)
        ]
        control = {
            (cell.study, cell.workload, cell.block): cell
            for cell in usable
            if cell.tweakset == self.relative_to
        }
        logs: dict[_Key, list[float]] = defaultdict(list)
        self.metrics.update(*(cell.metrics for cell in usable))
        for cell in usable:
            if cell.tweakset == self.relative_to:
                continue
            beside = control.get((cell.study, cell.workload, cell.block))
            if self.relative_to and beside is None:
                self._leave_out(
                    f"cells without {self.relative_to} in their block", f"{run.origin}: {cell.id}"
                )
                continue
            # Throughput and step times of a self-reporting program are by our clock, and may have a
            # fixed length.
            by_rate = TOLD_RATE in cell.metrics and len(self.requested) > 1
            params = _params(run.workloads[cell.workload], turns=bool(cell.slices_s))
            for name in (TOLD_RATE,) if by_rate else self.requested:
                value = cell.metrics.get(name, 0.0)
                denominator = beside.metrics.get(name, 0.0) if beside else 1.0
                if value > 0 and denominator > 0:
                    key = _Key(cell.study, cell.workload, params, cell.tweakset, name, machine)
                    logs[key].append(math.log(value / denominator))
        return logs

    def _can_be_used(self, run: Run, cell: Cell) -> bool:
        if cell.workload in run.by_place:
            self._leave_out(
                "benchmarks of one name that differ only in their place in the file",
                f"{run.origin}: {cell.workload}",
            )
            return False
        try:
            must_be_sound(run.tweaksets[cell.tweakset], [cell])
        except NotComparable as reason:
            example = f"{run.origin}: {str(reason).removesuffix('.')}"
            self._leave_out("cells that cannot be compared", example)
            return False
        return True

    def _leave_out(self, what: str, example: str) -> None:
        count, first = self.left_out.get(what, (0, example))
        self.left_out[what] = count + 1, first

    def history(self) -> History:
        if self.relative_to and self.relative_to not in self.tweaksets:
            raise Refused(
                f"no run has a tweak set {self.relative_to!r} to be relative to; available: "
                f"{_listed(self.tweaksets)}."
            )
        if len(self.requested) == 1 and self.metrics and self.requested[0] not in self.metrics:
            raise Refused(
                f"no run has a metric {self.requested[0]!r}; available: {_listed(self.metrics)}."
            )
        marks = sorted(self.marks.values(), key=_when)
        keys = sorted(key for key in self.points if not self._stands_behind(key))
        variants = _variants({(key.workload, key.params) for key in keys})
        return History(
            runs=len(marks),
            first_utc=marks[0].started_utc if marks else "",
            last_utc=marks[-1].started_utc if marks else "",
            series=tuple(self._series(key, variants[key.workload, key.params]) for key in keys),
            notes=(
                *(
                    f"left out, {what}: {count} (the first: {example})."
                    for what, (count, example) in self.left_out.items()
                ),
                *self.benchmarks_left_out,
                *self._kept_apart(variants),
            ),
        )

    def _stands_behind(self, key: _Key) -> bool:
        """Return whether another step time covers more runs, or as many and takes precedence."""
        if len(self.requested) == 1 or key.metric not in STEP_TIMES:
            return False
        return key.metric != max(
            STEP_TIMES, key=lambda name: len(self.points.get(key._replace(metric=name), ()))
        )

    def _series(self, key: _Key, variant: str) -> RunSeries:
        points = sorted(self.points[key], key=lambda point: _when(point.mark))
        return RunSeries(
            study=key.study,
            workload=key.workload,
            variant=variant,
            tweakset=key.tweakset,
            metric=self.rates.get(key.workload, metric_named(key.metric))
            if key.metric == TOLD_RATE
            else metric_named(key.metric),
            machine=str(self.machines.known[key.machine]),
            points=tuple(points),
            relative_to=self.relative_to,
        )

    def _kept_apart(self, variants: Iterable[tuple[str, str]]) -> list[str]:
        lines = []
        if len(self.machines.known) > 1:
            names = "; ".join(map(str, self.machines.known))
            lines.append(
                f"{len(self.machines.known)} machines, each with separate series: {names}."
            )
        counts = Counter(workload for workload, _ in variants)
        if several := ", ".join(sorted(name for name, count in counts.items() if count > 1)):
            lines.append(f"run with several sets of parameters, each a separate series: {several}.")
        return lines


WHOLE, IN_TURNS = '{"cells":"whole"}', '{"cells":"in turns"}'  # of a workload without parameters


def _params(workload: SavedWorkload, *, turns: bool) -> str:
    if not workload.params:
        return IN_TURNS if turns else WHOLE
    return msgspec.json.encode(
        {**workload.params, "cells": "in turns" if turns else "whole"}, enc_hook=str, order="sorted"
    ).decode()


def _when(mark: ChangeMark) -> tuple[str, str]:
    return mark.started_utc, mark.origin


def _utc(text: str) -> str | None:
    """Return a time as ISO 8601 in UTC to the second, or a given place: both sort as text.

    None if there is neither.
    """
    if text.startswith(PLACE):
        return text
    stamp = moment(text)
    return stamp.isoformat(timespec="seconds") if stamp else None


def _variants(pairs: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return, by workload and parameters, those parameters that differ under the workload."""
    records = defaultdict[str, list[dict[str, object]]](list)
    for workload, text in pairs:
        records[workload].append(msgspec.json.decode(text))
    return {
        (workload, text): ", ".join(
            f"{key}={value}"
            for key, value in msgspec.json.decode(text).items()
            if any(params.get(key) != value for params in records[workload])
        )
        for workload, text in pairs
    }


def _listed(names: Iterable[str]) -> str:
    return first_few(sorted(names), SHOWN_NAMES) or "none"


def judge(history: History, refused: Iterable[str] = ()) -> History:
    """Look for changes in every series that is long enough.

    The series form one screen, so p is adjusted for all of them (Benjamini and Hochberg).
    """
    judged = [_judged(series) for series in history.series]
    indices = [at for at, series in enumerate(judged) if series.p is not None]
    adjusted = benjamini_hochberg([series.p for series in judged if series.p is not None])
    for at, p_adjusted in zip(indices, adjusted, strict=True):
        changes = judged[at].changes if p_adjusted <= LEVEL else ()
        judged[at] = _with_odd_runs(replace(judged[at], changes=changes, p_adjusted=p_adjusted))
    return replace(history, judged=tuple(judged), refused=tuple(refused))


def _judged(series: RunSeries) -> JudgedSeries:
    if len(series.points) < SHORTEST:
        return JudgedSeries(
            series, reason=f"{len(series.points)} runs; at least {SHORTEST} are required"
        )
    changes = change_points([math.log(point.value) for point in series.points])
    return JudgedSeries(
        series, tuple(_change(series, point) for point in changes.points), changes.p
    )


def _with_odd_runs(judged: JudgedSeries) -> JudgedSeries:
    logs = [math.log(point.value) for point in judged.series.points]
    count = odd_end(np.array(logs))
    began = judged.changes[-1].found.index if judged.changes else 0
    if not count or began >= len(logs) - count:
        return judged
    sign = 1.0 if judged.series.metric.better == "higher" else -1.0
    level = median(logs[began:-count])
    mildest = min((log - level for log in logs[-count:]), key=abs)
    return replace(judged, odd_last=count, odd_gain=math.expm1(sign * mildest))


def _change(series: RunSeries, point: ChangePoint) -> LevelChange:
    sign = 1.0 if series.metric.better == "higher" else -1.0
    gain, *ends = (math.expm1(sign * shift) for shift in (point.shift, point.low, point.high))
    return LevelChange(
        series, point, gain, min(ends), max(ends), math.exp(point.before), math.exp(point.after)
    )


def regressions(history: History, recent: int) -> list[LevelChange]:
    return [
        change
        for change in history.changes
        if change.verdict == "regressed" and change.runs_since <= recent
    ]
