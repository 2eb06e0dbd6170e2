"""A grid: cells of so many blocks of so many threads, what was sampled in each, and tables of one figure a cell.

Shares (GRACT, SMACT, SMOCC, tensor, DRAM) are fractions from 0 to 1, utilisations percent, memory MiB. What is missing is NaN or absent.

Samples begin before the kernel and end after it. Their mean depends on how long that took as much as on what the kernel did, so the active
part stands beside it: the longest stretch of samples in each of which something ran. Its first and last sample are partly idle still.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Samples = NDArray[np.float64]
    Size = tuple[int, int]  # blocks, threads a block

UTILIZATION, MEMORY_UTILIZATION, MEMORY_MIB = "utilization_percent", "memory_utilization_percent", "memory_used_mib"
GRACT, SMACT, SMOCC, TENSOR, DRAM = "gract", "smact", "smocc", "tensor", "dram"
LABELS = {
    UTILIZATION: "utilisation",
    MEMORY_UTILIZATION: "memory utilisation",
    MEMORY_MIB: "used memory",
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


@dataclass(frozen=True, slots=True)
class Chip:
    """What of a GPU its bounds are made of; `missing` is why `sms` is not known, `source` where it is from."""

    name: str | None = None
    sms: int | None = None
    max_warps: int | None = None
    max_blocks: int | None = None
    source: str = ""
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What a cell ran, where that was recorded. `duty` is the fraction of the time in which its kernel was on the GPU."""

    duty: float | None = None
    kernel_s: float | None = None
    launch_interval_s: float | None = None
    launches: float | None = None


@dataclass(frozen=True, slots=True)
class GpuLog:
    """What was sampled of one GPU: equally long columns by metric, in the order of time; `at_work` marks active samples.

    `source` is what sampled it.
    """

    source: str
    gpu: str
    columns: Mapping[str, Samples]
    at_work: NDArray[np.bool_]

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self.at_work)


@dataclass(frozen=True, slots=True)
class GridCell:
    """One run of one kernel: `place` is what messages call it. `missing` is metric → why it was not recorded."""

    place: str
    blocks: int
    threads: int
    logs: tuple[GpuLog, ...]
    device: str | None = None
    work: Work = Work()
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> Size:
        """Blocks, threads a block."""
        return self.blocks, self.threads


@dataclass(frozen=True, slots=True)
class CellTable:
    """One statistic of each metric, by cell. `label` names it: `peaks of 26 cells`."""

    statistic: str
    label: str
    rows: Mapping[Size, Mapping[str, float]]

    def pairs(self, x: str, y: str) -> dict[Size, tuple[float, float]]:
        """Return both metrics of the cells that have both."""
        return {size: (row[x], row[y]) for size, row in self.rows.items() if x in row and y in row}


@dataclass(frozen=True, slots=True)
class KernelGrid:
    """Every cell of one saved run; `notes` say what else is to be known of it."""

    run: Run
    cells: tuple[GridCell, ...]
    chip: Chip
    notes: tuple[str, ...] = ()


def named(size: Size) -> str:
    """Write a cell as a person does: `9632 × 1024`."""
    return f"{size[0]} × {size[1]}"


# Name, SMs, warps an SM holds at most, blocks an SM holds at most. The first that matches.
KNOWN: tuple[tuple[str, int, int, int], ...] = (
    (r"V100", 80, 64, 32),
    (r"\bT4\b", 40, 32, 16),
    (r"A100|A800", 108, 64, 32),
    (r"\bA30\b", 56, 64, 32),
    (r"\bA40\b", 84, 48, 16),
    (r"\bA10\b", 72, 48, 16),
    (r"\bL4\b", 58, 48, 24),
    (r"\bL40S?\b", 142, 48, 24),
    (r"GH200|H200", 132, 64, 32),
    (r"H100.*PCIe", 114, 64, 32),
    (r"H100.*(HBM3|NVL|SXM)", 132, 64, 32),
    (r"\bB200\b", 148, 64, 32),
)
HOW = "give it with --sms"


def chip_of(name: str | None, sms: int | None = None) -> Chip:
    """Find a GPU by its name; `sms` is what the user gave, who knows better."""
    known = next(((number, warps, blocks) for pattern, number, warps, blocks in KNOWN if re.search(pattern, name or "")), None)
    if sms is not None:
        warps, fits = known[1:] if known else (None, None)
        return Chip(name, sms, warps, fits, source="as --sms says")
    if name is None:
        return Chip(missing=f"no log names the GPU; {HOW}")
    if "MIG" in name:
        return Chip(name, missing=f"{name} is a part of a chip; {HOW}")
    if known is None:
        two = ": an H100 has 132 or 114" if "H100" in name else ""
        return Chip(name, missing=f"how many SMs {name} has is not known here{two}; {HOW}")
    count, warps, fits = known
    return Chip(name, count, warps, fits, source="by its name")


# Samples and what they come to.


def log_of(source: str, gpu: str, columns: Mapping[str, Samples]) -> GpuLog:
    """Make a log of columns. Something runs where GRACT is above 0; utilisation shows it only where there is no GRACT, for it lags."""
    length = len(next(iter(columns.values()), np.zeros(0)))
    name = next((name for name in (GRACT, UTILIZATION) if name in columns and not np.isnan(columns[name]).all()), None)
    works = columns[name] > 0 if name is not None else np.zeros(length, bool)  # NaN is not
    at_work = np.zeros(length, bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], works, [False]])))
    if edges.size:
        starts, ends = edges[::2], edges[1::2]
        longest = int((ends - starts).argmax())
        at_work[starts[longest] : ends[longest]] = True
    return GpuLog(source, gpu, dict(columns), at_work)


def statistics(cell: GridCell, metric: str) -> dict[str, float]:
    """Return mean, median and maximum over the whole log, and the mean over its active part (missing where nothing ran).

    Empty, where no log has the metric; missing samples are left out.
    """
    log = next((log for log in cell.logs if metric in log.columns and not np.isnan(log.columns[metric]).all()), None)
    if log is None:
        return {}
    known = ~np.isnan(log.columns[metric])
    values, active = log.columns[metric][known], log.columns[metric][known & log.at_work]
    result = {MEAN: float(values.mean()), MEDIAN: float(np.median(values)), MAX: float(values.max())}
    return result | ({ACTIVE: float(active.mean())} if active.size else {})


def idle(cell: GridCell) -> tuple[int, int, int]:
    """Return the samples before, in and after the active part: by GRACT where a log has it, else of the log that has most."""
    log = max(cell.logs, key=lambda log: (GRACT in log.columns, len(log)))
    where = np.flatnonzero(log.at_work)
    return (int(where[0]), where.size, len(log) - int(where[-1]) - 1) if where.size else (len(log), 0, 0)


def by_size(cells: Iterable[GridCell]) -> dict[Size, list[GridCell]]:
    """Group the runs of one size; sizes in order."""
    result: dict[Size, list[GridCell]] = defaultdict(list)
    for cell in cells:
        result[cell.size].append(cell)
    return dict(sorted(result.items()))


def table(cells: Iterable[GridCell], statistic: str) -> CellTable:
    """Compute one statistic of every cell; runs of equal size are one cell, its statistic their mean."""
    rows: dict[Size, dict[str, float]] = {}
    for size, same in by_size(cells).items():
        values = {metric: [statistics(cell, metric).get(statistic) for cell in same] for metric in METRICS}
        known = {metric: [value for value in each if value is not None] for metric, each in values.items()}
        rows[size] = {metric: float(np.mean(each)) for metric, each in known.items() if each}
    return CellTable(statistic, f"{PLURAL[statistic]} of {len(rows)} cells", rows)


def spread(cells: Iterable[GridCell], metric: str) -> float | None:
    """Return by how much the active means of runs of one size differ at most; None where each size ran once."""
    groups = [[statistics(cell, metric).get(ACTIVE) for cell in same] for same in by_size(cells).values()]
    known = [[value for value in group if value is not None] for group in groups]
    return max((max(values) - min(values) for values in known if len(values) > 1), default=None)
