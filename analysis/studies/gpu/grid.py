"""A grid: cells of blocks × threads, their samples, and one table of figures.

Shares (GRACT, SMACT, SMOCC, tensor, DRAM) are fractions from 0 to 1, utilisation is in percent.
Missing values are NaN or absent.

Sampling begins before the kernel and ends after it; the active part excludes that margin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, NotRequired, TypedDict, cast

import numpy as np
import pandas as pd
from msgspec import Meta

from analysis.checks import lost_cells
from analysis.formats.checked import Part
from analysis.plain import one_line
from analysis.terms import AGAIN, Cell, Refused, Run, Unreadable
from control.saved import Count, Ordinal, Positive  # noqa: TC001  # msgspec reads by them

Size = tuple[int, int]  # blocks, threads per block

UTILIZATION = "utilization_percent"
GRACT, SMACT, SMOCC, TENSOR, DRAM = "gract", "smact", "smocc", "tensor", "dram"
LABELS = {
    UTILIZATION: "utilisation",
    GRACT: "GRACT",
    SMACT: "SMACT",
    SMOCC: "SMOCC",
    TENSOR: "tensor",
    DRAM: "DRAM",
}
METRICS = tuple(LABELS)
MEAN, MEDIAN, MAX, ACTIVE = "mean", "median", "max", "active"
STATISTICS = (MEAN, MEDIAN, MAX, ACTIVE)
PLURAL = {MEAN: "means", MEDIAN: "medians", MAX: "peaks", ACTIVE: "active means"}
REPORT, SAMPLES = "gpu_metrics", "samples"
WORK = ("duty", "kernel_s", "launch_interval_s", "launches")
Column = list[Annotated[float, Meta(ge=-1e12, le=1e12)] | None]


@dataclass(frozen=True, slots=True)
class Chip:
    """GPU facts behind the bounds; `missing` is why `sms` is unknown, `source` its origin."""

    name: str | None = None
    sms: int | None = None
    max_warps: int | None = None
    source: str = ""
    missing: str | None = None


@dataclass(frozen=True)
class GridCell:
    """One run of one kernel; messages call it `place`.

    `samples` has a column per metric, in time order. `work` has the recorded facts on the kernel:
    `duty` (the fraction of the time it was on the GPU), `kernel_s`, `launch_interval_s`,
    `launches`. `missing` maps a metric to the reason why it was not recorded.
    """

    place: str
    blocks: int
    threads: int
    samples: pd.DataFrame
    device: str | None = None
    work: Mapping[str, float | None] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> Size:
        return self.blocks, self.threads

    @cached_property
    def active(self) -> slice:
        """Return the longest stretch of samples in which something ran; empty if nothing did.

        The criterion is GRACT above 0, or utilisation if there is no GRACT, since utilisation lags.
        """
        known = [name for name in (GRACT, UTILIZATION) if self.samples.get(name, pd.Series()).any()]
        works = self.samples[known[0]] > 0 if known else np.zeros(len(self.samples), bool)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], works, [False]])))
        stretches = [(end - start, -start) for start, end in edges.reshape(-1, 2)]
        length, start = max(stretches, default=(0, -len(works)))
        return slice(int(-start), int(length - start))

    @cached_property
    def figures(self) -> dict[str, float]:
        """Return mean, median and maximum of each metric, and its mean over the active part.

        The last is named like `smact_active`. Missing samples are skipped; a metric without samples
        is absent.
        """
        whole = self.samples.agg([MEAN, MEDIAN, MAX]) if len(self.samples) else pd.DataFrame()
        parts = {statistic: whole.loc[statistic] for statistic in whole.index}
        parts[ACTIVE] = self.samples.iloc[self.active].mean()
        figures = {
            f"{metric}_{statistic}": float(values[metric])
            for metric in self.samples
            for statistic, values in parts.items()
        }
        return {name: value for name, value in figures.items() if not np.isnan(value)}

    @property
    def idle(self) -> tuple[int, int, int]:
        start, stop = self.active.start, self.active.stop
        return start, stop - start, len(self.samples) - stop


@dataclass(frozen=True)
class KernelGrid:
    """Every cell of one saved run; `notes` are further remarks."""

    run: Run
    cells: Sequence[GridCell]
    chip: Chip
    notes: Sequence[str] = ()

    @cached_property
    def table(self) -> pd.DataFrame:
        names = [f"{metric}_{statistic}" for metric in METRICS for statistic in STATISTICS]
        rows = pd.DataFrame([cell.figures for cell in self.cells], columns=names, dtype=float)
        sizes = [cell.size for cell in self.cells]
        index = pd.MultiIndex.from_tuples(sizes, names=["blocks", "threads"])
        return rows.set_index(index).groupby(level=[0, 1]).mean()

    def label(self, statistic: str) -> str:
        return f"{PLURAL[statistic]} of {len(self.table)} cells"

    def column(self, metric: str, statistic: str = ACTIVE) -> dict[Size, float]:
        figures = self.table[f"{metric}_{statistic}"].dropna()
        return dict(zip(figures.index.to_list(), map(float, figures), strict=True))


def named(size: Size) -> str:
    return f"{size[0]} × {size[1]}"


def grid_of(run: Run, refused: list[str], *, sms: int | None = None) -> KernelGrid:
    """Extract the grid of untouched cells from a run; add unusable parts to `refused`.

    Raises: Refused, if no cell remains.
    """
    reporting = {cell.workload.partition(":")[0] for cell in run.cells if REPORT in cell.report}
    if not reporting:
        lost = [cell for cell in run.cells if cell.workload.startswith("gpu_grid") and cell.reason]
        reason = f" Its reason: {one_line(str(lost[0].reason), 200)}" if lost else ""
        raise Refused(
            f"{run.origin}: no cell reports GPU metrics; `pytest benchmarks/bench_gpu_metrics.py` "
            f"measures them.{reason}"
        )
    own = [cell for cell in run.cells if cell.workload.partition(":")[0] in reporting]
    untouched = [cell for cell in own if cell.tweakset in {run.baseline, AGAIN}]
    cells: list[tuple[GridCell, Chip]] = []
    for cell in untouched:
        if cell.outcome == "measured":
            try:
                cells.append(_cell(cell, run, sms))
            except Unreadable as error:
                refused.append(one_line(error))
    refused += lost_cells(run, [cell for cell in untouched if cell.outcome != "measured"])
    if not cells:
        raise Refused(
            f"{run.origin}: no cell of a GPU grid was "
            f"measured{f'; {refused[-1]}' if refused else '.'}"
        )
    notes = []
    if others := len(own) - len(untouched):
        notes.append(
            f"{others} cells under tweak sets or monitors are omitted: only the untouched machine "
            "is analysed"
        )
    chip = cells[0][1]
    if len({(other.name, other.sms) for _, other in cells}) > 1:
        names = ", ".join(dict.fromkeys(str(other.name) for _, other in cells))
        notes.append(f"the cells ran on several GPUs: {names}")
        chip = replace(chip, sms=None, missing="cells ran on different GPUs")
    missing = dict.fromkeys(
        f"{LABELS.get(metric, metric)} was not recorded: {reason}"
        for cell, _ in cells
        for metric, reason in cell.missing.items()
    )
    by_size = sorted((cell for cell, _ in cells), key=lambda cell: cell.size)
    return KernelGrid(run, by_size, chip, (*notes, *missing))


class KernelReport(TypedDict):
    """A cell's report of its kernel; other fields are ignored."""

    device: NotRequired[str | None]
    sms: NotRequired[Count | None]
    max_warps_per_sm: NotRequired[Count | None]
    duty: NotRequired[Annotated[float, Meta(ge=0, le=1)] | None]
    kernel_s: NotRequired[Positive | None]
    launch_interval_s: NotRequired[Positive | None]
    launches: NotRequired[Positive | None]
    missing: NotRequired[dict[str, str]]


class KernelSize(TypedDict):
    blocks: Ordinal
    threads: Ordinal


def _cell(cell: Cell, run: Run, sms: int | None) -> tuple[GridCell, Chip]:
    report = Part(cell.report, run.origin, f"{cell.id}.report", "measure again")
    if len(entries := cell.report.get(REPORT, ())) != 1:
        report.refuse(f"has {len(entries)} entries of {REPORT} but needs exactly one")
    about = report.at(REPORT, 0).read(KernelReport)
    size = Part(run.workloads[cell.workload].params, run.origin, cell.workload).read(KernelSize)
    device, recorded = about.get("device"), about.get("sms") or None
    chip = Chip(
        device,
        sms or recorded,
        about.get("max_warps_per_sm") or None,
        "from --sms" if sms else "as the run recorded",
        None if sms or recorded else "the number was not recorded; give it with --sms",
    )
    samples = _samples(report)
    missing = {
        key: one_line(reason, 120)
        for key, reason in about.get("missing", {}).items()
        if key not in samples
    }
    if samples.empty:
        reasons = "; ".join(f"{key}: {text}" for key, text in missing.items())
        advice = reasons or "use longer cells, or sample more often"
        raise Unreadable(f"{run.origin}: {cell.id} reports no sample: {advice}.")
    work = {name: cast("float | None", about.get(name)) for name in WORK}
    return GridCell(cell.id, size["blocks"], size["threads"], samples, device, work, missing), chip


def _samples(report: Part) -> pd.DataFrame:
    """Turn reported columns of samples into one frame; null is missing, empty metrics are omitted.

    Raises: Unreadable, for columns of different lengths and values that are not numbers.
    """
    parts = []
    for part in report.at(SAMPLES).each() if SAMPLES in report.value else ():
        columns = {
            metric: part.at(metric).read(Column) for metric in METRICS if metric in part.value
        }
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            part.refuse(
                f"has columns of {', '.join(map(str, sorted(lengths)))} samples; the file was "
                "edited"
            )
        parts.append(pd.DataFrame(columns, dtype=float))
    every = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return every.dropna(axis="columns", how="all")
