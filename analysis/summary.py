"""Absolute measurements per arm, and what each arm changes; `compare` has the conclusions."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from .answer import Answer, Column, Line, Section, Table, table_of
from .labels import TOLD_RATE, amount, identity_of, own_names
from .telemetry import CPU_BUSY, GIB, GPU_UTIL, MEM_AVAILABLE, MEM_USED, Quantity
from .terms import Cell, Run, Setting
from .wording import counted, digits


def throughput_samples_per_s(cells: Sequence[Cell]) -> float | None:
    """Return all measured samples of cells over all their time; None if unknown or steps overlap.

    For a file without steps, the cells are assumed to have done equal work: the rate over all of it
    is their harmonic mean.
    """
    steps = [cell.steps for cell in cells if cell.steps is not None]
    if any(step.overlap for step in steps):
        return None
    if steps and len(steps) == len(cells):
        return sum(sum(step.samples[step.warmup :]) for step in steps) / math.fsum(
            s for step in steps for s in step.wall_s[step.warmup :]
        )
    rates = [
        cell.metrics["throughput_samples_per_s"]
        for cell in cells
        if "throughput_samples_per_s" in cell.metrics
    ]
    return len(rates) / math.fsum(1 / rate for rate in rates) if rates else None


def step_time_mean_s(cells: Sequence[Cell]) -> float | None:
    """Return the time of all measured steps over their number; without steps, the cells' mean."""
    steps = [cell.steps for cell in cells if cell.steps is not None]
    if steps and len(steps) == len(cells):
        times = [s for step in steps for s in step.wall_s[step.warmup :]]
        return math.fsum(times) / len(times)
    means = [
        cell.metrics["step_time_mean_s"] for cell in cells if "step_time_mean_s" in cell.metrics
    ]
    return math.fsum(means) / len(means) if means else None


def time_weighted(cells: Sequence[Cell], value_of: Callable[[Cell], float | None]) -> float | None:
    known = [
        (value, seconds)
        for cell in cells
        if (value := value_of(cell)) is not None and (seconds := measured_s(cell)) is not None
    ]
    return (
        math.fsum(value * seconds for value, seconds in known)
        / math.fsum(seconds for _, seconds in known)
        if known
        else None
    )


def measured_s(cell: Cell) -> float | None:
    if cell.steps is None:
        return None
    if cell.steps.overlap:
        return cell.window_s[1] - cell.window_s[0] if cell.window_s else None
    return math.fsum(cell.steps.wall_s[cell.steps.warmup :])


SECTIONS = ("sysctl", "boot", "ulimit", "service", "environment", "process", "script")
NOUNS = {
    "boot": "boot token",
    "service": "service setting",
    "environment": "variable",
    "process": "process setting",
}


def changes(run: Run, name: str) -> list[Setting]:
    """Return what one tweak set changes, in the order of its manifest.

    A script is represented by the tunables that differed after it, or by one unnamed change.
    """
    tweakset = run.tweaksets[name]
    if not tweakset.scripts:
        return list(tweakset.requested)
    seen: dict[str, str] = {}
    for cell in run.cells:
        for path, change in (
            cell.applied.side_effects.items() if cell.tweakset == name and cell.applied else ()
        ):
            # A tunable that disappeared (as with a replaced I/O scheduler) is a consequence, not a
            # setting.
            if isinstance(change, list | tuple) and len(change) == 2 and change[1] is not None:
                seen[path] = str(change[1])
    scripted = [Setting("script", path, after) for path, after in seen.items()]
    return [
        *tweakset.requested,
        *(scripted or [Setting("script", f"script of {name}", "not seen")]),
    ]


def counted_settings(changed: Sequence[Setting]) -> str:
    """Count settings by section: `12 sysctls, 2 by script`; `none`."""
    counts = Counter(setting.kind for setting in changed)
    by_script = counts.pop("script", 0)
    known = [section for section in SECTIONS if section in counts]
    parts = [
        counted(counts[section], NOUNS.get(section, section))
        for section in [*known, *sorted(counts.keys() - {*known})]
    ]
    return ", ".join([*parts, *[f"{by_script} by script"] * bool(by_script)]) or "none"


POWER, ENERGY = re.compile(r"(gpu\d+)_power_w_mean"), re.compile(r"(gpu\d+)_energy_j_total")


def power_w(cell: Cell) -> float | None:
    result = [value for name, value in cell.telemetry.items() if POWER.fullmatch(name)]
    return math.fsum(result) if result else None


def energy_j(cell: Cell) -> float | None:
    counted, watts = (
        {match[1]: value for name, value in cell.telemetry.items() if (match := of.fullmatch(name))}
        for of in (ENERGY, POWER)
    )
    seconds = measured_s(cell)
    if not counted and (not watts or seconds is None):
        return None
    joules = {gpu: power * (seconds or 0.0) for gpu, power in watts.items()} | counted
    return math.fsum(joules.values())


def energy_j_per_sample(cells: Sequence[Cell]) -> float | None:
    """Return the energy of cells per sample, in joules; None if any cell lacks a figure."""
    energies = [energy_j(cell) for cell in cells]
    energy = [value for value in energies if value is not None]
    steps = [cell.steps for cell in cells if cell.steps is not None]
    if not cells or not len(energy) == len(steps) == len(cells):
        return None
    return math.fsum(energy) / sum(sum(step.samples[step.warmup :]) for step in steps)


# A figure by name, with its unit in the name; None where it was not measured.
Row = dict[str, object]


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """Return a row per arm: each tweak set under each workload of each run, the baseline first.

    `cells` were measured, of `cells_run`. `rate` is the program's own, written out. `*_geomean` are
    the means whose ratios are gains.
    """
    rows = []
    for run in runs:
        arms: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
        for cell in run.cells:
            arms[cell.study, cell.workload, cell.tweakset].append(cell)
        names = dict.fromkeys([run.baseline, *run.tweaksets])
        places = [
            (study, workload, name)
            for study in run.studies
            for workload in run.workloads
            for name in names
        ]
        rows += [_row(run, arms[place]) for place in places if place in arms]
    return rows


def _row(run: Run, cells: Sequence[Cell]) -> Row:
    measured = [cell for cell in cells if cell.outcome == "measured"]
    first = cells[0]
    primary = run.workloads[first.workload].primary or run.studies[first.study].primary
    means = _means(measured)
    rate = means.get(f"{TOLD_RATE}_geomean") if primary.name == TOLD_RATE else None
    changed = changes(run, first.tweakset)
    kinds = Counter(setting.kind if setting.kind in SECTIONS else "other" for setting in changed)
    return {
        "run_id": run.run_id,
        "machine": str(identity_of(run.machine)),
        "study": first.study,
        "workload": first.workload,
        "tweakset": first.tweakset,
        "cells": len(measured),
        "cells_run": len(cells),
        "rate": amount(primary, rate) if rate else None,
        "throughput_samples_per_s": None if rate else throughput_samples_per_s(measured),
        "step_time_mean_s": step_time_mean_s(measured),
        "gpu_util_percent": time_weighted(measured, lambda cell: mean_of(GPU_UTIL, cell)),
        "gpu_power_w": time_weighted(measured, power_w),
        "energy_j_per_sample": energy_j_per_sample(measured),
        "cpu_busy_percent": time_weighted(measured, lambda cell: mean_of(CPU_BUSY, cell)),
        "memory_used_gib": time_weighted(
            measured, lambda cell: _memory_used_gib(cell, run.machine)
        ),
        "parameters": counted_settings(changed),
        **{f"{section}_parameters": kinds[section] for section in (*SECTIONS, "other")},
        "primary_metric": primary.name,
        **means,
    }


def _means(cells: Sequence[Cell]) -> dict[str, float | None]:
    metrics = dict.fromkeys(name for cell in cells for name in cell.metrics)
    telemetry = dict.fromkeys(name for cell in cells for name in cell.telemetry)
    geometric = {
        f"{name}_geomean": geometric_mean(
            [cell.metrics[name] for cell in cells if name in cell.metrics]
        )
        for name in metrics
    }
    return geometric | {
        f"telemetry.{name}": statistics.fmean(
            cell.telemetry[name] for cell in cells if name in cell.telemetry
        )
        for name in telemetry
    }


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the mean whose ratios are gains; None without values or if one is not above 0."""
    if not values or min(values) <= 0:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def mean_of(quantity: Quantity, cell: Cell) -> float | None:
    means = {
        name.removesuffix("_mean"): value
        for name, value in cell.telemetry.items()
        if name.endswith("_mean")
    }
    return quantity.combined([means[name] for name in quantity.columns(means)])


def _memory_used_gib(cell: Cell, machine: Mapping[str, object]) -> float | None:
    used, available, total = (
        mean_of(MEM_USED, cell),
        mean_of(MEM_AVAILABLE, cell),
        machine.get("mem_total_bytes"),
    )
    if used is not None or available is None or not isinstance(total, int | float):
        return used
    return total / GIB - available


def _tenths(value: float) -> str:
    return f"{value:.1f}"


COLUMNS = (
    Column("tweak set", "tweakset", left=True),
    Column("cells", "cells"),
    Column("rate", "rate"),
    Column("samples\n1/s", "throughput_samples_per_s", digits),
    Column("mean\nstep s", "step_time_mean_s", digits),
    Column("median\nstep s", "step_time_median_s_geomean", digits, spare=2),
    Column("GPU\n%", "gpu_util_percent", _tenths),
    Column("GPU\nW", "gpu_power_w", _tenths),
    Column("energy\nJ/sample", "energy_j_per_sample", digits),
    Column("CPU\n%", "cpu_busy_percent", _tenths),
    Column("memory\nGiB", "memory_used_gib", digits, spare=1),
    Column("parameters", "parameters", left=True),
)


def answer(rows: Sequence[Row]) -> Answer:
    """Make a table for each workload of each run; CSV has one table of all arms and figures."""
    names = own_names(str(row["workload"]) for row in rows)
    places: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        study = (
            f" ({row['study']})"
            if len({row["study"] for row in rows}) > 1 and row["study"] != row["workload"]
            else ""
        )
        places[
            f"{names[str(row['workload'])]}{study} · run {row['run_id']} · {row['machine']}"
        ].append(row)
    columns = [(column, lambda row, name=column.name: row.get(name)) for column in COLUMNS]
    fields = dict.fromkeys(name for row in rows for name in row)
    none = "No cell was measured."
    measured = {place for place, own in places.items() if any(row["cells"] for row in own)}
    return Answer(
        "Summary" if measured else none,
        sections=[
            Section(place, [table_of(columns, own) if place in measured else Line(none)])
            for place, own in places.items()
            if measured
        ],
        legend=[
            ("samples", "all samples / all time. GPU, CPU, memory: means over the measured steps."),
            ("median", "geometric mean of the cells' medians."),
        ],
        rows=Table(
            [Column(name) for name in fields], [[row.get(name) for name in fields] for row in rows]
        ),
    )
