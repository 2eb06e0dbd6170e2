"""A monitored run as a whole: the A/A and arms of every workload.

The comparison of tweak sets is reused: paired by block, on log ratios, Holm over the study. Its
gains are converted to costs here: overheads are fractions of the arm without a monitor (0.013 is
1.3 % more), above 0 if the monitor costs.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from analysis.compare import CompareOptions, compare
from analysis.stats.estimate import Change, Mean, cost_of, mean_of
from analysis.terms import AGAIN, Comparison, Effect, Refused, Run, Verdict
from analysis.wording import LARGEST, unsigned

from .records import ALL_CPU, ENERGY, INSIDE, INTERVAL, MonitoredCell, rate_of, read

PLACEBO = "placebo"
KINDS = (INSIDE, "beside", "around")
COPY = "none again (A/A)"
WALL = "step_time_mean_s"
FINE = 0.10
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
PEAK, LOAD = "peak_rss_bytes", "load_average_1min"
OWN = ("cpu_s", "samples", PEAK, "written_bytes", "start_s", "stop_s")


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
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredArm:
    """One monitor under one workload, against none.

    `base` is empty for arms without a monitor. `cpu` is for the measured steps (the primary
    metric), `wall` their wall time, `total` all CPU from the process's start to its exit plus the
    monitor's own processes. `said` is the word in tables. `lost` counts missing cells by reason.

    `core` is the CPU seconds of the monitor's processes per second at work (1 is a whole core).
    `own` are medians over blocks: `memory_bytes` its own peak plus the growth of the workload's
    peak, `start_s` until it monitors, `stop_s` from the last step until its end, `outside_s` the
    process's extra time outside its measured steps, and more of `OWN`. `missing` has the reasons
    for unknown ones.
    """

    tweakset: str
    label: str
    base: str
    kind: str
    n: int
    blocks: int
    verdict: Verdict
    said: str
    cpu: OverheadFigure | None
    wall: OverheadFigure | None
    total: OverheadFigure | None
    energy: OverheadFigure | None
    core: Mean | None
    own: Mapping[str, float]
    load: LoadRange | None
    missing: Mapping[str, str]
    lost: Mapping[str, int]
    notes: Sequence[str]

    @property
    def claims(self) -> bool:
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
    result = []
    for place in ((study, workload) for study in run.studies for workload in run.workloads):
        arms: dict[str, list[MonitoredCell]] = {run.baseline: []}
        for cell in (cell for cell in cells if (cell.cell.study, cell.cell.workload) == place):
            arms.setdefault(cell.cell.tweakset, []).append(cell)
        if any(arms.values()):
            own = {row.tweakset: row for row in rows if (row.study, row.workload) == place}
            result.append(_workload(run, place, arms, own))
    return result


def _workload(
    run: Run,
    place: tuple[str, str],
    cells: Mapping[str, Sequence[MonitoredCell]],
    rows: Mapping[str, Comparison],
) -> Overhead:
    study, workload = place
    measured = {name: [cell for cell in own if cell.measured] for name, own in cells.items()}
    control = control_of(rows.get(AGAIN))
    names = _in_order(rows, measured, run)
    labels = {run.baseline: "none", **_labels(measured, names)}
    arms = []
    for name in (run.baseline, *names):
        row, own, every = rows.get(name), measured[name], cells[name]
        verdict, said = _judged(row, control)
        if row and not own:
            skipped = all(cell.cell.outcome == "skipped" for cell in every)
            said = "skipped" if skipped else "failed"
        others = {effect.metric.name: figure(effect) for effect in row.others} if row else {}
        loads = [cell.usage[LOAD] for cell in own if LOAD in cell.usage]
        missing = [entry for cell in reversed(own) for entry in cell.missing.items()]
        arm = MonitoredArm(
            tweakset=name,
            label=labels[name],
            base=run.tweaksets[name].monitor.partition(":")[0],
            kind=own[0].kind if own else "",
            n=row.pairs if row else len(own),
            blocks=row.blocks if row else len(every),
            verdict=verdict,
            said=said,
            cpu=figure(row.primary, row.p_adjusted) if row else None,
            wall=others.get(WALL),
            total=others.get(ALL_CPU),
            energy=others.get(ENERGY),
            core=mean_of([share for cell in own if (share := cell.core_share) is not None]),
            own=_usage(own, measured[run.baseline]) if row and own and own[0].name else {},
            load=LoadRange(statistics.fmean(loads), min(loads), max(loads)) if loads else None,
            missing=dict(missing),
            lost=Counter(
                f"{cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}."
                for cell in (one.cell for one in every if not one.measured)
            ),
            notes=[note for note in row.notes if " left out: " not in note] if row else [],
        )
        arms.append(arm)
    units = "blocks"
    if turns := [row for row in rows.values() if row.processes]:
        whole = all(row.pairs == row.processes for row in turns)
        units = "processes" if whole else "pairs of segments"
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
            (rate_of(first.params)[0] if first else None) or 0.0,
            name,
        )

    return sorted(names, key=place)


def _usage(cells: Sequence[MonitoredCell], none: Sequence[MonitoredCell]) -> dict[str, float]:
    """Return medians of a monitor's own usage, and of its growth over cells without it."""
    without = {cell.cell.block: cell for cell in none}
    pairs = [(cell, without[cell.cell.block]) for cell in cells if cell.cell.block in without]
    own = {name: _median(cell.monitor.get(name) for cell in cells) for name in OWN}
    own["outside_s"] = _median(_minus(cell.outside_s, other.outside_s) for cell, other in pairs)
    grown = _median(_minus(cell.usage.get(PEAK), other.usage.get(PEAK)) for cell, other in pairs)
    if grown is not None and (own[PEAK] is not None or cells[0].kind == INSIDE):
        own["memory_bytes"] = grown + (own[PEAK] or 0.0)
    return {name: value for name, value in own.items() if value is not None}


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
        unknown = "How far equal cells differ is unknown: no overhead is called absent."
        return Control("missing", None, None, f"No A/A: {reason}. {unknown}")
    half = (aa.high - aa.low) / 2
    state: State = "quiet"
    text = f"A/A holds: none against none again {aa}."
    if aa.low > 0 or aa.high < 0:
        state = "differs"
        text = f"A/A DIFFERS: none against none again {aa}. NOTHING IS CLAIMED FROM THIS WORKLOAD."
    elif half > WIDEST:
        state = "underpowered"
        wide = f"half-width {unsigned(half)}, more than {unsigned(WIDEST)}"
        text = f"The A/A is too wide: {aa}: {wide}. No overhead is called absent here."
    return Control(state, aa, half, text)


def _judged(row: Comparison | None, control: Control) -> tuple[Verdict, str]:
    if row is None:
        return "not comparable", "the reference for others"
    verdict: Verdict = "not comparable" if control.state == "differs" else row.verdict
    cpu, margin = figure(row.primary), unsigned(row.margin)
    if row.tweakset == AGAIN:
        return verdict, SAID[control.state]
    if cpu is None:
        return verdict, "not comparable"
    if control.state == "differs":
        return verdict, "not claimed"
    if verdict == "equivalent" and control.state != "quiet":
        return "inconclusive", SAID[control.state]
    said = {
        "equivalent": f"within ±{margin}",
        "regressed": f"costs, under {margin}" if cpu.high < row.margin else "costs",
        "improved": "less than none",
    }
    unsure = "underpowered" if control.state == "underpowered" else "not shown"
    return verdict, said.get(verdict, unsure)


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
