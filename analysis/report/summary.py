"""Each arm of a run in absolute numbers, as a table for people: speeds, and what telemetry says of processor, memory and GPU."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.plain import one_line
from analysis.telemetry import CPU_BUSY, GPU_POWER, GPU_UTIL, MEM_AVAILABLE

from .csv_files import geometric_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analysis.telemetry import Quantity
    from analysis.terms import Cell, Run


@dataclass(frozen=True, slots=True)
class SummaryColumn:
    """How a metric stands in a table: values are multiplied by `scale` to be in the unit of the label."""

    label: str
    scale: float = 1.0

    def written(self, value: float | None) -> str:
        """Write one value to four digits; nothing, where there is none."""
        return "" if value is None else f"{value * self.scale:.4g}"


METRICS = {
    "throughput_samples_per_s": SummaryColumn("throughput, samples/s"),
    "step_time_p10_s": SummaryColumn("p10 step, ms", 1000),
    "step_time_q1_s": SummaryColumn("q1 step, ms", 1000),
    "step_time_round_adjusted_s": SummaryColumn("step, ms", 1000),
    "step_time_median_s": SummaryColumn("median step, ms", 1000),
    "step_time_mean_s": SummaryColumn("mean step, ms", 1000),
}
QUANTITIES = (GPU_UTIL, GPU_POWER, CPU_BUSY, MEM_AVAILABLE)
MEAN = "_mean"
# Summaries have a total beside its parts; the parts are left out there, or they would count twice.
TOTALS = {"cpu_busy_percent": ("cpu_user_percent", "cpu_system_percent", "cpu_irq_percent")}


@dataclass(frozen=True, slots=True)
class SummaryArm:
    """One tweak set under one workload; `numbers` stand under the labels of its table, an empty text where there is none."""

    workload: str
    tweakset: str
    settings: int
    cells: str
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """All arms of a run. Metrics are geometric means over the blocks, telemetry is a mean over the cells."""

    labels: tuple[str, ...]
    arms: tuple[SummaryArm, ...]


def summary(run: Run) -> Summary:
    """Sum up a run; columns that no cell has are left out."""
    arms: dict[tuple[str, str], list[Cell]] = {}
    for workload in run.workloads:
        for tweakset in run.tweaksets:
            cells = [cell for cell in run.cells if (cell.workload, cell.tweakset) == (workload, tweakset)]
            if cells:
                arms[workload, tweakset] = cells
    columns = {column.label: [column.written(_metric(cells, name)) for cells in arms.values()] for name, column in METRICS.items()}
    for quantity in QUANTITIES:
        column = SummaryColumn(f"{quantity.label}, {quantity.unit}")
        columns[column.label] = [column.written(_telemetry(cells, quantity)) for cells in arms.values()]
    shown = {label: column for label, column in columns.items() if any(column)}
    numbers = list(zip(*shown.values(), strict=True)) if shown else [()] * len(arms)
    return Summary(
        tuple(shown),
        tuple(
            SummaryArm(workload, tweakset, len(run.tweaksets[tweakset].requested), _count(cells), tuple(row))
            for ((workload, tweakset), cells), row in zip(arms.items(), numbers, strict=True)
        ),
    )


def _metric(cells: Sequence[Cell], name: str) -> float | None:
    return geometric_mean([cell.metrics[name] for cell in cells if name in cell.metrics])


def _telemetry(cells: Sequence[Cell], quantity: Quantity) -> float | None:
    values = []
    for cell in cells:
        means = {name.removesuffix(MEAN): value for name, value in cell.telemetry.items() if name.endswith(MEAN)}
        for total, parts in TOTALS.items():
            means = {name: value for name, value in means.items() if total not in means or name not in parts}
        values.append(quantity.combined([means[name] for name in quantity.columns(means)]))
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _count(cells: Sequence[Cell]) -> str:
    return f"{sum(cell.outcome == 'measured' for cell in cells)} of {len(cells)}"


def as_markdown(summaries: Iterable[tuple[str, Summary]]) -> str:
    """Write summaries as Markdown tables, each under the name of its run."""
    parts = []
    for name, one in summaries:
        heads = ("workload", "tweak set", "settings", "cells", *one.labels)
        rows = [(arm.workload, arm.tweakset, str(arm.settings), arm.cells, *arm.numbers) for arm in one.arms]
        parts.append("\n".join([f"### {_plain(name)}", "", _line(heads), "|" + "---|" * len(heads), *map(_line, rows)]))
    return "\n\n".join(parts) + "\n"


def _line(fields: Iterable[str]) -> str:
    return "| " + " | ".join(map(_plain, fields)) + " |"


def _plain(text: str) -> str:
    # A bar would begin another column, an angle bracket markup.
    return one_line(text).translate({ord("|"): "\\|", ord("<"): "&lt;"})
