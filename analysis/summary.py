"""What each arm measured in absolute numbers, what it changes, and what may be said of it."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from control.names import undigested

from .answer import TONES, Answer, Column, Line, Section, Table, Word
from .labels import TOLD_RATE, amount, own_names
from .telemetry import CPU_BUSY, GIB, GPU_UTIL, MEM_AVAILABLE, MEM_USED, Quantity
from .terms import Cell, Comparison, Run, Setting
from .wording import digits, gpus_of, number, percent


def throughput_samples_per_s(cells: Sequence[Cell]) -> float | None:
    """Take all measured samples of some cells over all their time; None where there is none: the file has none, or the steps overlap.

    Where a file keeps no steps the cells are taken to have done equal work: then the rate over all of it is their harmonic mean.
    """
    steps = [cell.steps for cell in cells if cell.steps is not None]
    if any(step.overlap for step in steps):
        return None
    if steps and len(steps) == len(cells):
        return sum(sum(step.samples[step.warmup :]) for step in steps) / math.fsum(s for step in steps for s in step.wall_s[step.warmup :])
    rates = [cell.metrics["throughput_samples_per_s"] for cell in cells if "throughput_samples_per_s" in cell.metrics]
    return len(rates) / math.fsum(1 / rate for rate in rates) if rates else None


def step_time_mean_s(cells: Sequence[Cell]) -> float | None:
    """Take the time of all measured steps over their number; where a file keeps no steps, the mean of the cells' means."""
    steps = [cell.steps for cell in cells if cell.steps is not None]
    if steps and len(steps) == len(cells):
        times = [s for step in steps for s in step.wall_s[step.warmup :]]
        return math.fsum(times) / len(times)
    means = [cell.metrics["step_time_mean_s"] for cell in cells if "step_time_mean_s" in cell.metrics]
    return math.fsum(means) / len(means) if means else None


def time_weighted(cells: Sequence[Cell], value_of: Callable[[Cell], float | None]) -> float | None:
    known = [(value, seconds) for cell in cells if (value := value_of(cell)) is not None and (seconds := measured_s(cell)) is not None]
    return math.fsum(value * seconds for value, seconds in known) / math.fsum(seconds for _, seconds in known) if known else None


def measured_s(cell: Cell) -> float | None:
    if cell.steps is None or cell.steps.overlap:
        return cell.window_s[1] - cell.window_s[0] if cell.steps is not None and cell.window_s is not None else None
    return math.fsum(cell.steps.wall_s[cell.steps.warmup :])


SECTIONS = ("sysctl", "boot", "ulimit", "service", "environment", "process", "script")


def changes(run: Run, name: str) -> list[Setting]:
    """List what one tweak set changes, in the order of its manifest.

    A script says nothing of itself: it counts by the tunables that differed after it in any cell, their paths for keys, and as one unnamed
    change where none did.
    """
    tweakset = run.tweaksets[name]
    if not tweakset.scripts:
        return list(tweakset.requested)
    seen: dict[str, str] = {}
    for cell in run.cells:
        for path, change in cell.applied.side_effects.items() if cell.tweakset == name and cell.applied else ():
            # A tunable that is gone afterwards (an I/O scheduler's own, when it is replaced) is a consequence, not a setting.
            if isinstance(change, list | tuple) and len(change) == 2 and change[1] is not None:
                seen[path] = str(change[1])
    scripted = [Setting("script", path, after) for path, after in seen.items()]
    return [*tweakset.requested, *(scripted or [Setting("script", f"script of {name}", "not seen")])]


def sections(changed: Sequence[Setting]) -> dict[str, int]:
    counts = Counter(setting.kind for setting in changed)
    return {section: counts[section] for section in (*SECTIONS, *sorted(counts.keys() - set(SECTIONS))) if counts[section]}


POWER, ENERGY = re.compile(r"(gpu\d+)_power_w_mean"), re.compile(r"(gpu\d+)_energy_j_total")


def power_w(cell: Cell) -> float | None:
    result = [value for name, value in cell.telemetry.items() if POWER.fullmatch(name)]
    return math.fsum(result) if result else None


def energy_j(cell: Cell) -> float | None:
    counted = {match[1]: value for name, value in cell.telemetry.items() if (match := ENERGY.fullmatch(name))}
    watts = {match[1]: value for name, value in cell.telemetry.items() if (match := POWER.fullmatch(name))}
    seconds = measured_s(cell)
    if not counted and (not watts or seconds is None):
        return None
    return math.fsum(counted[gpu] if gpu in counted else watts[gpu] * (seconds or 0.0) for gpu in counted | watts)


def energy_j_per_sample(cells: Sequence[Cell]) -> float | None:
    """Return all energy of some cells over all their samples, in joules; None where any of them lacks it."""
    if not cells:
        return None
    energy = [energy_j(cell) for cell in cells]
    samples = [sum(cell.steps.samples[cell.steps.warmup :]) if cell.steps is not None else None for cell in cells]
    if any(one is None for one in (*energy, *samples)):
        return None
    return math.fsum(value for value in energy if value is not None) / sum(sample for sample in samples if sample is not None)


def why_missing(cells: Sequence[Cell]) -> str:
    """Report why there is no power: what the sampler wrote, or that nothing was written."""
    reasons = dict.fromkeys(
        reason for cell in cells for name, reason in cell.telemetry_missing.items() if re.fullmatch(r"nvml|sampler|gpu\d+(_power_w)?", name)
    )
    return "; ".join(reasons) or "the runs have no power in their telemetry"


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One tweak set under one workload in one run; None where something was not measured.

    `cells` were measured, of `cells_run`. Means of telemetry are over the measured time. `changes` counts parameters by section. `gain` and
    its 95 % interval are fractions in `metric`, above 0 where it was faster than the baseline, whose arms have that word as a verdict.
    `rate` is what the program told, written; then its throughput by our clock is left out.
    `means` has the geometric mean of each metric, which a gain is the ratio of, and the mean over the cells of each telemetry summary.
    """

    run_id: str
    machine: str
    study: str
    workload: str
    tweakset: str
    cells: int
    cells_run: int
    rate: str | None
    throughput_samples_per_s: float | None
    step_time_mean_s: float | None
    gpu_util_percent: float | None
    gpu_power_w: float | None
    energy_j_per_sample: float | None
    cpu_busy_percent: float | None
    memory_used_gib: float | None
    changes: Mapping[str, int]
    metric: str
    gain: float | None
    low: float | None
    high: float | None
    verdict: str
    means: Mapping[str, float | None]


def rows_of(runs: Sequence[Run], comparisons: Iterable[Comparison]) -> list[SummaryRow]:
    by_arm = {
        (comparison.candidate_run, comparison.study, comparison.workload, comparison.tweakset): comparison
        for comparison in comparisons
        if comparison.baseline_run == comparison.candidate_run
    }
    rows = []
    for run in runs:
        arms: dict[tuple[str, str], dict[str, list[Cell]]] = {(study, workload): {} for study in run.studies for workload in run.workloads}
        for cell in run.cells:
            arms[cell.study, cell.workload].setdefault(cell.tweakset, []).append(cell)
        for (study, workload), cells in arms.items():
            names = dict.fromkeys([run.baseline, *run.tweaksets])
            rows += [_row(run, cells[name], by_arm.get((run.origin, study, workload, name))) for name in names if name in cells]
    return rows


def machine_of(run: Run) -> str:
    parts = gpus_of(run.machine)
    if not parts and run.machine.get("cpu_model"):
        count = run.machine.get("cpu_count")
        parts = [f"{count} × {run.machine['cpu_model']}" if count else str(run.machine["cpu_model"])]
    return ", ".join(parts) or "unknown"


def _row(run: Run, cells: Sequence[Cell], comparison: Comparison | None) -> SummaryRow:
    measured = [cell for cell in cells if cell.outcome == "measured"]
    first = cells[0]
    primary = run.workloads[first.workload].primary or run.studies[first.study].primary
    effect = comparison.primary if comparison else None
    means = _means(measured)
    rate = means.get(f"{TOLD_RATE}_geomean") if primary.name == TOLD_RATE else None
    in_baseline = comparison.guard and comparison.verdict != "not comparable" if comparison else first.tweakset == run.baseline
    return SummaryRow(
        run_id=run.run_id,
        machine=machine_of(run),
        study=first.study,
        workload=first.workload,
        tweakset=first.tweakset,
        cells=len(measured),
        cells_run=len(cells),
        rate=amount(primary, rate) if rate else None,
        throughput_samples_per_s=None if rate else throughput_samples_per_s(measured),
        step_time_mean_s=step_time_mean_s(measured),
        gpu_util_percent=time_weighted(measured, lambda cell: mean_of(GPU_UTIL, cell)),
        gpu_power_w=time_weighted(measured, power_w),
        energy_j_per_sample=energy_j_per_sample(measured),
        cpu_busy_percent=time_weighted(measured, lambda cell: mean_of(CPU_BUSY, cell)),
        memory_used_gib=time_weighted(measured, lambda cell: _memory_used_gib(cell, run.machine)),
        changes=sections(changes(run, first.tweakset)),
        metric=primary.name,
        gain=effect.gain if effect else comparison.observed if comparison else None,
        low=effect.low if effect else None,
        high=effect.high if effect else None,
        verdict="baseline" if in_baseline else comparison.verdict if comparison else "",
        means=means,
    )


def _means(cells: Sequence[Cell]) -> dict[str, float | None]:
    metrics = dict.fromkeys(name for cell in cells for name in cell.metrics)
    telemetry = dict.fromkeys(name for cell in cells for name in cell.telemetry)
    geometric = {f"{name}_geomean": geometric_mean([cell.metrics[name] for cell in cells if name in cell.metrics]) for name in metrics}
    return geometric | {
        f"telemetry.{name}": statistics.fmean(cell.telemetry[name] for cell in cells if name in cell.telemetry) for name in telemetry
    }


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the mean that a gain is the ratio of; None without values, or where one is not above 0."""
    if not values or min(values) <= 0:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def mean_of(quantity: Quantity, cell: Cell) -> float | None:
    means = {name.removesuffix("_mean"): value for name, value in cell.telemetry.items() if name.endswith("_mean")}
    return quantity.combined([means[name] for name in quantity.columns(means)])


def _memory_used_gib(cell: Cell, machine: Mapping[str, object]) -> float | None:
    used, available, total = mean_of(MEM_USED, cell), mean_of(MEM_AVAILABLE, cell), machine.get("mem_total_bytes")
    if used is not None or available is None or not isinstance(total, int | float):
        return used
    return total / GIB - available


def _tenths(value: float) -> str:
    return f"{value:.1f}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {section}" for section, count in counts.items()) or "none"


ACROSS = {"improved": "faster", "regressed": "slower", "equivalent": "equivalent"}
COLUMNS = {
    "tweakset": Column("tweak set", left=True),
    "cells": Column("cells"),
    "rate": Column("rate"),
    "throughput_samples_per_s": Column("samples\n1/s", write=digits),
    "step_time_mean_s": Column("step\ns", write=digits),
    "gpu_util_percent": Column("GPU\n%", write=_tenths),
    "gpu_power_w": Column("GPU\nW", write=_tenths),
    "energy_j_per_sample": Column("energy\nJ/sample", write=digits),
    "cpu_busy_percent": Column("CPU\n%", write=_tenths),
    "memory_used_gib": Column("memory\nGiB", write=digits, spare=1),
    "changes": Column("parameters", write=_counted, left=True),
    "gain": Column("gain\n%", write=number),
    "verdict": Column("verdict", left=True),
}
LEGEND = (
    ("samples", "all samples / all time. GPU, CPU, memory: means over the measured steps."),
    ("gain", "in the primary metric, + is faster."),
    ("verdict", "only where it is improved or regressed was a difference shown, whatever the other numbers are."),
)
RENAMED = {"gain": "gain_fraction", "low": "gain_low_95_fraction", "high": "gain_high_95_fraction", "metric": "primary_metric"}


def answer(rows: Sequence[SummaryRow]) -> Answer:
    places = by_place(rows)
    result = {
        text: [f"{undigested(row.workload)} {one}" for group in places.values() for row, one in _named(group, word)]
        for word, text in ACROSS.items()
    }
    parts = [Section(place, [_table(group)]) for place, group in places.items()]
    if len(places) > 1:
        heads = ["workload", "run", "machine", "baseline, samples/s", *ACROSS.values(), "not decided"]
        columns = [Column(head, write=digits if "," in head else str, left=at != 3 and at < 7) for at, head in enumerate(heads)]
        parts.append(Section("Across workloads and runs", [Table(columns, across(rows))]))
    return Answer(
        "Summary",
        findings=[Line(", ".join(names), f"{text}:") for text, names in result.items() if names],
        sections=parts,
        legend=LEGEND,
        rows=_every_field(rows),
    )


def by_place(rows: Sequence[SummaryRow]) -> dict[str, list[SummaryRow]]:
    several_studies = len({row.study for row in rows}) > 1
    names = own_names(row.workload for row in rows)
    result: dict[str, list[SummaryRow]] = {}
    for row in rows:
        study = f" ({row.study})" if several_studies and row.study != row.workload else ""
        result.setdefault(f"{names[row.workload]}{study} · run {row.run_id} · {row.machine}", []).append(row)
    return result


def across(rows: Sequence[SummaryRow]) -> list[list[object]]:
    lines: list[list[object]] = []
    for group in by_place(rows).values():
        first, base = group[0], next((row for row in group if row.verdict == "baseline"), None)
        named = [", ".join(text for _, text in _named(group, word)) or "none" for word in ACROSS]
        undecided = sum(row.verdict in {"inconclusive", "not comparable"} for row in group)
        lines.append([undigested(first.workload), first.run_id, first.machine, base and base.throughput_samples_per_s, *named, undecided])
    return lines


def _named(group: Sequence[SummaryRow], word: str) -> list[tuple[SummaryRow, str]]:
    return [(row, f"{row.tweakset} ({percent(row.gain)})") for row in group if row.verdict == word and row.gain is not None]


def _table(group: Sequence[SummaryRow]) -> Table:
    shown = {name: column for name, column in COLUMNS.items() if any(getattr(row, name) not in (None, "") for row in group)}
    return Table(
        list(shown.values()),
        [[Word(row.verdict, TONES.get(row.verdict, "")) if name == "verdict" else getattr(row, name) for name in shown] for row in group],
    )


def _every_field(rows: Sequence[SummaryRow]) -> Table:
    """Units in the names, fractions as fractions; parameters are counted by section, other sections together."""
    records = []
    for row in rows:
        record = {RENAMED.get(name, name): value for name, value in asdict(row).items() if name not in {"changes", "means", "rate"}}
        counts = {f"{section}_parameters": row.changes.get(section, 0) for section in SECTIONS}
        other = sum(count for section, count in row.changes.items() if section not in SECTIONS)
        records.append(record | counts | {"other_parameters": other, **row.means})
    names = dict.fromkeys(name for record in records for name in record)
    return Table([Column(name) for name in names], [[record.get(name) for name in names] for record in records])
