"""A monitored run as a whole: every workload's A/A and arms.

Each monitor is compared with none, and none with none again, which says whether a workload was quiet enough for anything to be said of it.
Paired by block, on log ratios, Holm over the study, by the machinery that compares tweak sets. That speaks of gains, as a tweak set is
to have one; here the same number is turned into what is paid.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.compare import Options, compare
from analysis.stats.estimate import cost_of, mean_of
from analysis.switched import outlasting, outlasts
from analysis.terms import Cell, Comparison, Effect, Refused, Run, Verdict
from analysis.wording import probability, unsigned

from .records import ALL_CPU, ENERGY, INSIDE, INTERVAL, MonitoredCell, rate_of, read
from .terms import Control, LoadRange, MonitoredArm, MonitorUse, Overhead, OverheadFigure, State

AGAIN, PLACEBO = "stock-again", "placebo"
KINDS = ("inside", "beside", "around")
COPY = "none again (A/A)"
WALL = "step_time_mean_s"
# Half an A/A interval above which "no effect" is not said of a workload: the study's own demand, not the margin.
WIDEST = 0.03
SAID: dict[State, str] = {"quiet": "A/A holds", "underpowered": "underpowered", "differs": "A/A DIFFERS", "missing": "no A/A"}


def overheads(run: Run) -> list[Overhead]:
    """What watching costs, for every workload of a run.

    Raises: Refused, for a run without monitors. Unreadable, for one whose records are damaged.
    """
    if not run.is_monitored:
        raise Refused(
            f"{run.origin}: no cell of it tells of a monitor; "
            "`pytest benchmarks/bench_monitoring_overhead.py --benchmark-save=NAME` saves such."
        )
    run, cells = read(run)
    comparisons = compare(run, None, Options(metrics=(WALL, ALL_CPU, ENERGY)))
    placebos = _against_placebo(run, cells)
    met = {(cell.study, cell.workload) for cell in run.cells}
    result = []
    for place in ((study, workload) for study in run.studies for workload in run.workloads):
        if place in met:
            here = [cell for cell in cells if (cell.study, cell.workload) == place]
            rows = {row.tweakset: row for row in comparisons if (row.study, row.workload) == place}
            result.append(_workload(run, place, here, rows, placebos))
    return result


def _workload(
    run: Run,
    place: tuple[str, str],
    cells: Sequence[MonitoredCell],
    rows: Mapping[str, Comparison],
    placebos: Mapping[tuple[str, str, str], OverheadFigure],
) -> Overhead:
    study, workload = place
    here = [cell for cell in run.cells if (cell.study, cell.workload) == place]
    by_arm: dict[str, list[MonitoredCell]] = {}
    for cell in cells:
        by_arm.setdefault(cell.tweakset, []).append(cell)
    state = control(rows.get(AGAIN))
    names = _in_order(rows, by_arm, run)
    labels = _labels(run, by_arm, names)
    none = by_arm.get(run.baseline, [])
    arms = [_none(run, here, none)]
    for name in names:
        arm = _arm(run, [cell for cell in here if cell.tweakset == name], by_arm.get(name, []), none, rows[name], state, labels[name])
        arms.append(replace(arm, placebo=placebos.get((*place, name))))
    metric = run.studies[study].primary
    turns = [row for row in rows.values() if row.processes]
    units = "blocks"  # what n counts; where monitors took turns inside processes, these
    if turns:
        units = "processes" if all(row.pairs == row.processes for row in turns) else "pairs of segments"
    return Overhead(
        study=study,
        workload=workload,
        margin=run.studies[study].margin,
        metric=metric.name,
        base=next((row.primary.baseline for row in rows.values() if row.primary is not None), None),
        family=max((row.family for row in rows.values()), default=0),
        control=state,
        arms=tuple(arms),
        units=units,
    )


def _none(run: Run, here: Sequence[Cell], cells: Sequence[MonitoredCell]) -> MonitoredArm:
    """The arm that all others are held against: it has no overhead, but a load of its own."""
    own = [cell for cell in here if cell.tweakset == run.baseline]
    return MonitoredArm(
        tweakset=run.baseline,
        label="none",
        n=sum(cell.outcome == "measured" for cell in own),
        blocks=len(own),
        verdict="not comparable",
        said="what others are held against",
        **_about(own, cells),
    )


def _arm(
    run: Run,
    of_arm: Sequence[Cell],
    cells: Sequence[MonitoredCell],
    none: Sequence[MonitoredCell],
    row: Comparison,
    state: Control,
    label: str,
) -> MonitoredArm:
    first = cells[0] if cells else None
    verdict, text, reason = _judge(row, state)
    if of_arm and not any(cell.outcome == "measured" for cell in of_arm):
        text = "skipped" if all(cell.outcome == "skipped" for cell in of_arm) else "failed"
    others = {effect.metric.name: figure(effect) for effect in row.others}
    return MonitoredArm(
        tweakset=row.tweakset,
        label=label,
        base=first.base if first else run.tweaksets[row.tweakset].monitor.partition(":")[0],
        kind=first.kind if first else "",
        params=dict(first.params) if first else {},
        version=first.version if first else None,
        rate_per_s=first.rate_per_s if first else None,
        n=row.pairs,
        blocks=row.blocks,
        verdict=verdict,
        said=text,
        reason=reason,
        cpu=figure(row.primary, row.p_adjusted),
        wall=others.get(WALL),
        total=others.get(ALL_CPU),
        energy=others.get(ENERGY),
        mde=row.mde,
        own=_use(cells, none),
        notes=tuple(note for note in row.notes if " left out: " not in note),
        **_about(of_arm, cells),
    )


def _about(of_arm: Sequence[Cell], cells: Sequence[MonitoredCell]) -> dict[str, Any]:
    """The load of an arm's cells (mean, smallest, largest), why figures are missing (the first reason of each), and cells not measured."""
    loads = [cell.usage["load_average_1min"] for cell in cells if "load_average_1min" in cell.usage]
    lost = [f"{each.outcome}: {(each.reason or 'no reason was recorded').rstrip('.')}." for each in of_arm if each.outcome != "measured"]
    missing: dict[str, str] = {}
    for cell in cells:
        missing |= {name: reason for name, reason in cell.missing.items() if name not in missing}
    return {
        "load": LoadRange(statistics.fmean(loads), min(loads), max(loads)) if loads else None,
        "missing": missing,
        "lost": dict(Counter(lost)),
    }


def _labels(run: Run, cells: Mapping[str, Sequence[MonitoredCell]], names: Iterable[str]) -> dict[str, str]:
    """Names of arms in tables: `none`, and a monitor with its interval or rate, `psutil_thread 0.01 s`; never two alike."""
    result = {name: {run.baseline: "none", AGAIN: COPY}.get(name) or _label(name, cells.get(name, ())) for name in names}
    return result if len(set(result.values())) == len(result) else {name: name for name in result}


def _label(name: str, cells: Sequence[MonitoredCell]) -> str:
    if not cells or cells[0].rate_per_s is None:
        return name
    _, by = rate_of(cells[0].params)
    often = f"{float(str(cells[0].params[str(by)])):g}"
    others = [part for part in name.split(":")[1:] if part.partition("=")[0] != by]
    return ":".join([f"{cells[0].base} {often} {'s' if by == INTERVAL else 'Hz'}", *others])


def _in_order(names: Iterable[str], cells: Mapping[str, Sequence[MonitoredCell]], run: Run) -> list[str]:
    """Arms in order: none again, placebos, then inside, beside and around, each by monitor and from the lowest rate to the highest."""

    def place(name: str) -> tuple[object, ...]:
        first = next(iter(cells.get(name, ())), None)
        base = first.base if first else run.tweaksets[name].monitor.partition(":")[0] or name
        kind = KINDS.index(first.kind) if first and first.kind in KINDS else len(KINDS)
        return name != AGAIN, base != PLACEBO, kind, base, (first.rate_per_s if first else None) or 0.0, name

    return sorted(names, key=place)


def _use(cells: Sequence[MonitoredCell], none: Sequence[MonitoredCell]) -> MonitorUse:
    if not cells or cells[0].name is None:
        return MonitorUse()
    without = {cell.block: cell for cell in none}
    pairs = [(cell, without[cell.block]) for cell in cells if cell.block in without]
    grown = _median([_minus(cell.usage.get("peak_rss_bytes"), other.usage.get("peak_rss_bytes")) for cell, other in pairs])
    own = {name: _median([cell.monitor.get(name) for cell in cells]) for name in _MEDIANS}
    peak, inside = own.pop("peak_rss_bytes"), cells[0].kind == INSIDE
    return MonitorUse(
        core=mean_of([share for cell in cells if (share := cell.core_share) is not None]),
        memory_bytes=None if grown is None or (peak is None and not inside) else grown + (peak or 0.0),
        own_peak_bytes=peak,
        outside_s=_median([_minus(cell.outside_s, other.outside_s) for cell, other in pairs]),
        **own,
    )


_MEDIANS = ("cpu_s", "samples", "peak_rss_bytes", "written_bytes", "start_s", "stop_s")


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def control(comparison: Comparison | None) -> Control:
    """Judge the A/A of a workload by its own 95 % interval, which no adjustment widens: it guards the others."""
    result = figure(comparison.primary, comparison.p_adjusted) if comparison is not None else None
    if result is None:
        reason = comparison.reason.rstrip(".") if comparison is not None else f"there is no {AGAIN}"
        return Control("missing", None, None, f"No A/A: {reason}. How far equal cells differ is not known: no overhead is called absent.")
    half = (result.high - result.low) / 2
    if result.low > 0 or result.high < 0:
        return Control("differs", result, half, f"A/A DIFFERS: none against none again {result}. NOTHING IS CLAIMED FROM THIS WORKLOAD.")
    if half > WIDEST:
        wide = f"half its interval is {unsigned(half)}, more than {unsigned(WIDEST)}"
        return Control("underpowered", result, half, f"The A/A is too wide: {result}: {wide}. No overhead is called absent here.")
    return Control("quiet", result, half, f"A/A holds: none against none again {result}.")


def _judge(comparison: Comparison, state: Control) -> tuple[Verdict, str, str]:
    """The verdict on an arm once the A/A is known: the house's word, what the table prints, and a sentence."""
    verdict, result, margin = comparison.verdict, figure(comparison.primary, comparison.p_adjusted), unsigned(comparison.margin)
    if comparison.tweakset == AGAIN:
        return "not comparable" if state.state == "differs" else verdict, SAID[state.state], state.sentence
    if result is None:
        return verdict, "not comparable", comparison.reason
    if state.state == "differs":
        return "not comparable", "not claimed", "the A/A of this workload differs: nothing is claimed."
    if verdict == "equivalent" and state.state in {"underpowered", "missing"}:
        return "inconclusive", SAID[state.state], f"inside the margin, which says nothing here: {state.sentence}"
    if outlasts(comparison):
        return verdict, "not shown", outlasting(comparison)
    p = "unknown" if comparison.p_adjusted is None else probability(comparison.p_adjusted)
    seen = f"{result.amount} {result.ends} CPU, Holm p {p} of {comparison.family}"
    most = "" if comparison.mde is None else f"; a difference of {unsigned(comparison.mde)} would be, 4 times in 5"
    small = f", under {margin}" if result.high < comparison.margin else ""
    unknown = SAID[state.state] if state.state == "underpowered" else "not shown"
    words: dict[Verdict, tuple[str, str]] = {
        "regressed": (f"costs{small}", f"costs {seen}."),
        "improved": ("less than none", f"{seen}: less than without; look for the reason."),
        "equivalent": (f"within ±{margin}", f"no effect beyond ±{margin}: the 90 % interval lies inside."),
        "inconclusive": (unknown, f"neither a cost nor its absence is shown{most}."),
        "not comparable": ("not comparable", comparison.reason),
    }
    return verdict, *words[verdict]


def figure(effect: Effect | None, p_adjusted: float | None = None) -> OverheadFigure | None:
    if effect is None:
        return None
    one = cost_of(effect)
    return OverheadFigure(
        one.n, value=one.value, low=one.low, high=one.high, p=one.p, p_adjusted=p_adjusted, p_equivalent=effect.p_equivalent
    )


def _against_placebo(run: Run, cells: Sequence[MonitoredCell]) -> dict[tuple[str, str, str], OverheadFigure]:
    """Every inside monitor against the placebo, which is as much of a thread and an import, and watches nothing; a family of their own."""
    inside = {cell.tweakset for cell in cells if cell.kind == INSIDE}
    placebo = next((cell.tweakset for cell in cells if cell.base == PLACEBO), None)
    if placebo is None or inside <= {placebo}:
        return {}
    names = {placebo, *inside}
    own = tuple(cell for cell in run.cells if cell.tweakset in names)
    tweaksets = {name: tweakset for name, tweakset in run.tweaksets.items() if name in names}
    rows = compare(replace(run, cells=own, tweaksets=tweaksets), placebo)
    figures = {(row.study, row.workload, row.tweakset): figure(row.primary, row.p_adjusted) for row in rows}
    return {place: result for place, result in figures.items() if result is not None}
