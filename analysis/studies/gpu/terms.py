"""The words of a grid: cells of so many blocks of so many threads, what was sampled in each, and tables of one figure a cell.

Shares (GRACT, SMACT, SMOCC, tensor, DRAM) are fractions from 0 to 1, utilisations percent, memory MiB. What is missing is NaN or absent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from analysis.terms import Run

    Samples = NDArray[np.float64]
    Size = tuple[int, int]  # blocks, threads a block

UTILIZATION, MEMORY_UTILIZATION, MEMORY_MIB = "utilization_percent", "memory_utilization_percent", "memory_used_mib"
GRACT, SMACT, SMOCC, TENSOR, DRAM = "gract", "smact", "smocc", "tensor", "dram"
SAID = {
    UTILIZATION: "utilisation",
    MEMORY_UTILIZATION: "memory utilisation",
    MEMORY_MIB: "used memory",
    GRACT: "GRACT",
    SMACT: "SMACT",
    SMOCC: "SMOCC",
    TENSOR: "tensor",
    DRAM: "DRAM",
}
METRICS = tuple(SAID)
MEAN, MEDIAN, MAX, ACTIVE = "mean", "median", "max", "active"
STATISTICS = (MEAN, MEDIAN, MAX, ACTIVE)


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
    """What one monitor wrote of one GPU: equally long columns by metric, in the order of time; `at_work` marks active samples.

    `source` is the monitor, `gpu` which GPU it was there and `others` how busy the others were at most (mean of their share of the time).
    """

    source: str
    gpu: str
    columns: Mapping[str, Samples]
    at_work: NDArray[np.bool_]
    others: float | None = None

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
    """One statistic of each metric, by cell. `label` says whose it is: `peaks of 26 logs`, `mean.csv`."""

    statistic: str
    label: str
    rows: Mapping[Size, Mapping[str, float]]

    def pairs(self, x: str, y: str) -> dict[Size, tuple[float, float]]:
        """Answer both metrics of the cells that have both."""
        return {size: (row[x], row[y]) for size, row in self.rows.items() if x in row and y in row}


@dataclass(frozen=True, slots=True)
class KernelGrid:
    """Every cell of one source. `read` are tables that lay beside the logs, `ignored` lines that could not be read.

    `notes` say what else is to be known of it; `run` is the saved run it is of, if any.
    """

    origin: str
    cells: tuple[GridCell, ...]
    chip: Chip
    read: tuple[CellTable, ...] = ()
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    run: Run | None = None

    @property
    def whole_run(self) -> bool:
        """Whether it is a saved run of ours, which knows what its kernel did; logs do not."""
        return self.run is not None


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
HOW = "say how many with --sms"


def chip_of(name: str | None, sms: int | None = None) -> Chip:
    """Find a GPU by its name; `sms` is what the user said, who knows better."""
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
