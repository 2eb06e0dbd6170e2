"""A monitored run as a whole: the A/A and arms of every workload.

Each monitor is compared with none, and none with none again, which shows whether a workload was
quiet enough for conclusions. The comparison of tweak sets is reused: paired by block, on log
ratios, Holm over the study. Its gains are converted to costs here: overheads are fractions of the
arm without a monitor (0.013 is 1.3 % more), above 0 if the monitor costs.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from analysis.compare import CompareOptions, compare
from analysis.stats.estimate import Change, Mean, cost_of, mean_of
from analysis.terms import AGAIN, Comparison, Effect, Refused, Run, Verdict
from analysis.verdict import outlasts
from analysis.wording import LARGEST, unsigned

from .records import ALL_CPU, ENERGY, INSIDE, INTERVAL, MonitoredCell, rate_of, read

PLACEBO = "placebo"
KINDS = (INSIDE, "beside", "around")
COPY = "none again (A/A)"
WALL = "step_time_mean_s"
FINE = 0.10  # a smaller overhead has two decimals
# Half an A/A interval; above it, "no effect" is not claimed for a workload. This is the study's
# limit, not the margin.
WIDEST = 0.03
State = Literal["quiet", "underpowered", "differs", "missing"]
SAID: dict[State, str] = {
    "quiet": "A/A holds",
    "underpowered": "underpowered",
    "differs": "A/A DIFFERS",
    "missing": "no A/A",
}
PEAK = "peak_rss_bytes"
OWN = ("cpu_s", "samples", PEAK, "written_bytes", "start_s", "stop_s")  # reported as medians


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadFigure(Change):
    """An overhead with its 95 % interval over `n` blocks; `p_equivalent` tests the margin."""

    p_equivalent: float | None = None

    @property
    def amount(self) -> str:
        return f"{self._percent(self.value)} %"

    @property
    def ends(self) -> str:
        return f"[{self._percent(self.low)}, {self._percent(self.high)}]"

    @property
    def cell(self) -> str:
        """Return value and interval for a column in percent: `+0.12 [-0.04, 0.43]`."""
        return f"{self._percent(self.value)} {self.ends.replace('+', '')}"

    def __str__(self) -> str:
        return f"{self.amount} {self.ends}, n {self.n}"

    def _percent(self, fraction: float) -> str:
        if abs(fraction) >= LARGEST:
            return f"{fraction * 100:+.1e}"
        decimals = 2 if max(abs(self.value), abs(self.low), abs(self.high)) < FINE else 1
        return f"{round(fraction * 100, decimals) + 0.0:+.{decimals}f}"


class LoadRange(NamedTuple):
    """Mean, smallest and largest 1-minute load average of an arm's cells."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredArm:
    """One monitor under one workload, against none.

    `label` is its name in tables; `base` is empty for arms without a monitor. `cpu` is for the
    measured steps (the primary metric), `wall` their wall time, `total` all CPU from the process's
    start to its exit plus the monitor's own processes, `energy` the meter's reading, `placebo` the
    primary metric against the placebo (inside monitors). `verdict` is the common word after the A/A
    check, `said` the word in tables. `lost` counts missing cells by reason.

    The monitor's own usage is in `core` and `own`; None or absent is unknown (`missing` has the
    reasons). `core`: its processes' CPU seconds, with the report but without the start, per second
    at work, or all of them per lifetime if the start is unknown (1 is a whole core); an inside
    monitor has none: the workload includes it. `own` are medians over blocks: `memory_bytes` its
    own peak plus the growth of the workload's peak, `start_s` until it monitors, `stop_s` from the
    last step until its end, `outside_s` the process's extra time outside its measured steps
    compared with none, and more of `OWN`.
    """

    tweakset: str
    label: str
    base: str = ""
    kind: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    version: str | None = None
    rate_per_s: float | None = None
    n: int
    blocks: int
    verdict: Verdict
    said: str
    cpu: OverheadFigure | None = None
    wall: OverheadFigure | None = None
    total: OverheadFigure | None = None
    energy: OverheadFigure | None = None
    placebo: OverheadFigure | None = None
    mde: float | None = None
    core: Mean | None = None
    own: Mapping[str, float] = field(default_factory=dict)
    load: LoadRange | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def claims(self) -> bool:
        """Return whether a cost or saving is claimed."""
        return self.verdict in {"regressed", "improved"} and self.cpu is not None


@dataclass(frozen=True, slots=True)
class Control:
    """The A/A check, none against none again; `half` is half the width of its 95 % interval."""

    state: State
    figure: OverheadFigure | None
    half: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Overhead:
    """All findings on one workload of one study; `base` is the primary metric without a monitor.

    `units` names what `n` counts: blocks, or the units in which monitors took turns.
    """

    study: str
    workload: str
    margin: float
    metric: str
    base: float | None
    family: int
    control: Control
    arms: tuple[MonitoredArm, ...]
    units: str = "blocks"


def overheads(run: Run) -> list[Overhead]:
    """Return the cost of monitoring, for every workload of a run.

    Raises: Refused, for a run without monitors.
    """
    if not run.is_monitored:
        raise Refused(
            f"{run.origin}: no cell reports a monitor; "
            "`pytest benchmarks/bench_monitoring_overhead.py --benchmark-save=NAME` makes such a "
            "run."
        )
    run, cells = read(run)
    rows = compare(run, None, CompareOptions(metrics=(WALL, ALL_CPU, ENERGY)))
    placebos = _against_placebo(run, cells)
    result = []
    for place in ((study, workload) for study in run.studies for workload in run.workloads):
        arms: dict[str, list[MonitoredCell]] = {run.baseline: []}
        for cell in (cell for cell in cells if (cell.cell.study, cell.cell.workload) == place):
            arms.setdefault(cell.cell.tweakset, []).append(cell)
        if any(arms.values()):
            own = {row.tweakset: row for row in rows if (row.study, row.workload) == place}
            result.append(_workload(run, place, arms, own, placebos))
    return result


def _workload(
    run: Run,
    place: tuple[str, str],
    cells: Mapping[str, Sequence[MonitoredCell]],
    rows: Mapping[str, Comparison],
    placebos: Mapping[tuple[str, str, str], OverheadFigure],
) -> Overhead:
    study, workload = place
    measured = {name: [cell for cell in own if cell.measured] for name, own in cells.items()}
    control = control_of(rows.get(AGAIN))
    names = _in_order(rows, measured, run)
    labels = _labels(measured, names)
    none = measured[run.baseline]
    stock = MonitoredArm(
        tweakset=run.baseline,
        label="none",
        n=len(none),
        blocks=len(cells[run.baseline]),
        verdict="not comparable",
        said="the reference for others",
    )
    arms = [_with_cells(stock, cells[run.baseline], none)]
    for name in names:
        arm = replace(
            _judged(rows[name], control, labels[name]),
            placebo=placebos.get((*place, name)),
            base=run.tweaksets[name].monitor.partition(":")[0],
        )
        if not measured[name]:
            arm = replace(
                arm,
                said="skipped"
                if all(cell.cell.outcome == "skipped" for cell in cells[name])
                else "failed",
            )
        arms.append(_with_cells(arm, cells[name], none))
    turns = [row for row in rows.values() if row.processes]
    units = "blocks"  # counted by n; processes if monitors took turns inside them
    if turns:
        units = (
            "processes" if all(row.pairs == row.processes for row in turns) else "pairs of segments"
        )
    return Overhead(
        study=study,
        workload=workload,
        margin=run.studies[study].margin,
        metric=run.studies[study].primary.name,
        base=next((row.primary.baseline for row in rows.values() if row.primary is not None), None),
        family=max((row.family for row in rows.values()), default=0),
        control=control,
        arms=tuple(arms),
        units=units,
    )


def _labels(cells: Mapping[str, Sequence[MonitoredCell]], names: Iterable[str]) -> dict[str, str]:
    """Return unique names of arms: a monitor with its interval or rate, `psutil_thread 0.01 s`."""
    result = {name: COPY if name == AGAIN else _label(name, cells[name]) for name in names}
    return result if len(set(result.values())) == len(result) else {name: name for name in result}


def _label(name: str, cells: Sequence[MonitoredCell]) -> str:
    rate, by = rate_of(cells[0].params) if cells else (None, None)
    if rate is None:
        return name
    often = f"{float(str(cells[0].params[str(by)])):g}"
    others = [part for part in name.split(":")[1:] if part.partition("=")[0] != by]
    return ":".join([f"{cells[0].base} {often} {'s' if by == INTERVAL else 'Hz'}", *others])


def _in_order(
    names: Iterable[str], cells: Mapping[str, Sequence[MonitoredCell]], run: Run
) -> list[str]:
    """Return arms in order: none again, placebos, inside, beside, around; by monitor, then rate."""

    def place(name: str) -> tuple[object, ...]:
        first = cells[name][0] if cells[name] else None
        base = first.base if first else run.tweaksets[name].monitor.partition(":")[0] or name
        kind = KINDS.index(first.kind) if first and first.kind in KINDS else len(KINDS)
        return (
            name != AGAIN,
            base != PLACEBO,
            kind,
            base,
            (first.rate_per_s if first else None) or 0.0,
            name,
        )

    return sorted(names, key=place)


def _with_cells(
    arm: MonitoredArm, every: Sequence[MonitoredCell], none: Sequence[MonitoredCell]
) -> MonitoredArm:
    """Add the facts of an arm's cells: its monitor and usage, the load, missing values."""
    cells = [cell for cell in every if cell.measured]
    loads = [cell.usage["load_average_1min"] for cell in cells if "load_average_1min" in cell.usage]
    lost = [cell.cell for cell in every if not cell.measured]
    missing: dict[str, str] = {}
    for name, reason in (entry for cell in cells for entry in cell.missing.items()):
        missing.setdefault(name, reason)
    arm = replace(
        arm,
        load=LoadRange(statistics.fmean(loads), min(loads), max(loads)) if loads else None,
        missing=missing,
        lost=Counter(
            f"{cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}."
            for cell in lost
        ),
    )
    if not cells:
        return arm
    first = cells[0]
    arm = replace(
        arm,
        base=first.base,
        kind=first.kind,
        params=first.params,
        version=first.version,
        rate_per_s=first.rate_per_s,
    )
    if first.name is None:
        return arm
    without = {cell.cell.block: cell for cell in none}
    pairs = [(cell, without[cell.cell.block]) for cell in cells if cell.cell.block in without]
    own = {name: _median([cell.monitor.get(name) for cell in cells]) for name in OWN}
    own["outside_s"] = _median([_minus(cell.outside_s, other.outside_s) for cell, other in pairs])
    grown, peak = (
        _median([_minus(cell.usage.get(PEAK), other.usage.get(PEAK)) for cell, other in pairs]),
        own[PEAK],
    )
    if grown is not None and (peak is not None or first.kind == INSIDE):
        own["memory_bytes"] = grown + (peak or 0.0)
    core = mean_of([share for cell in cells if (share := cell.core_share) is not None])
    return replace(
        arm, core=core, own={name: value for name, value in own.items() if value is not None}
    )


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def control_of(comparison: Comparison | None) -> Control:
    """Judge a workload's A/A by its own unadjusted 95 % interval: it guards the others."""
    aa = figure(comparison.primary, comparison.p_adjusted) if comparison is not None else None
    if aa is None:
        reason = comparison.reason.rstrip(".") if comparison is not None else f"there is no {AGAIN}"
        return Control(
            "missing",
            None,
            None,
            f"No A/A: {reason}. How far equal cells differ is unknown: no overhead is called "
            "absent.",
        )
    half = (aa.high - aa.low) / 2
    if aa.low > 0 or aa.high < 0:
        return Control(
            "differs",
            aa,
            half,
            f"A/A DIFFERS: none against none again {aa}. NOTHING IS CLAIMED FROM THIS WORKLOAD.",
        )
    if half > WIDEST:
        wide = f"half-width {unsigned(half)}, more than {unsigned(WIDEST)}"
        return Control(
            "underpowered",
            aa,
            half,
            f"The A/A is too wide: {aa}: {wide}. No overhead is called absent here.",
        )
    return Control("quiet", aa, half, f"A/A holds: none against none again {aa}.")


def _judged(row: Comparison, control: Control, label: str) -> MonitoredArm:
    """Make an arm from its comparison and the A/A: verdict, and word in the table."""
    cpu, verdict = figure(row.primary, row.p_adjusted), row.verdict
    untold = control.state in {"underpowered", "missing"}
    if row.tweakset == AGAIN or cpu is None:
        said = SAID[control.state] if row.tweakset == AGAIN else "not comparable"
    elif control.state == "differs":
        said = "not claimed"
    elif verdict == "equivalent":
        said = SAID[control.state] if untold else f"within ±{unsigned(row.margin)}"
    elif verdict == "regressed" and not outlasts(row):
        said = f"costs, under {unsigned(row.margin)}" if cpu.high < row.margin else "costs"
    elif verdict == "improved" and not outlasts(row):
        said = "less than none"
    else:
        said = "underpowered" if control.state == "underpowered" else "not shown"
    if control.state == "differs":
        verdict = "not comparable"
    elif verdict == "equivalent" and untold and row.tweakset != AGAIN:
        verdict = "inconclusive"
    others = {effect.metric.name: figure(effect) for effect in row.others}
    return MonitoredArm(
        tweakset=row.tweakset,
        label=label,
        n=row.pairs,
        blocks=row.blocks,
        verdict=verdict,
        said=said,
        cpu=cpu,
        wall=others.get(WALL),
        total=others.get(ALL_CPU),
        energy=others.get(ENERGY),
        mde=row.mde,
        notes=tuple(note for note in row.notes if " left out: " not in note),
    )


def figure(effect: Effect | None, p_adjusted: float | None = None) -> OverheadFigure | None:
    if effect is None:
        return None
    one = cost_of(effect)
    return OverheadFigure(
        one.n,
        value=one.value,
        low=one.low,
        high=one.high,
        p=one.p,
        p_adjusted=p_adjusted,
        p_equivalent=effect.p_equivalent,
    )


def _against_placebo(
    run: Run, cells: Sequence[MonitoredCell]
) -> dict[tuple[str, str, str], OverheadFigure]:
    """Compare every inside monitor with the placebo, in a family of their own.

    The placebo has the same thread and import, but monitors nothing.
    """
    inside = {cell.cell.tweakset for cell in cells if cell.kind == INSIDE}
    placebo = next((cell.cell.tweakset for cell in cells if cell.base == PLACEBO), None)
    if placebo is None or inside <= {placebo}:
        return {}
    names = {placebo, *inside}
    own = tuple(cell for cell in run.cells if cell.tweakset in names)
    tweaksets = {name: tweakset for name, tweakset in run.tweaksets.items() if name in names}
    rows = compare(replace(run, cells=own, tweaksets=tweaksets), placebo)
    figures = {
        (row.study, row.workload, row.tweakset): figure(row.primary, row.p_adjusted) for row in rows
    }
    return {place: one for place, one in figures.items() if one is not None}
