"""Findings on one grid, computed once for page, JSON and pictures: relations, falls, bounds.

Lines are least-squares descriptions of the cells. They have no intervals: the sizes were chosen,
not drawn, and the residuals are curvature, not noise.

A kernel with b blocks reaches at most b SMs, and no SM holds more warps than fit. These are bounds,
not predictions: for a share of the time (1 - duty) the kernel is not on the GPU.

The predicted range of SMACT is explained in docs/gpu.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .grid import (
    ACTIVE,
    DRAM,
    GRACT,
    LABELS,
    MAX,
    MEDIAN,
    SMACT,
    SMOCC,
    TENSOR,
    UTILIZATION,
    Size,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .grid import Chip, GridCell, KernelGrid

    Samples = NDArray[np.float64]
    Dip = tuple[int, float, int, float]  # from (blocks, value) to (blocks, value)

FEWEST = 3  # cells needed for a line
FALLS = 0.01  # five times the largest rounding error
ALIKE = FALLS  # smaller differences between cells may be rounding: no slope is fitted
HIGH_UTILIZATION, LOW_SMACT, LOW_SMOCC = 90.0, 0.3, 0.1
ROUNDING = 0.002
DUTY_TOLERANCE = 0.01
NEAR = 0.02
WARP, MOST_BLOCKS = 32, 32
SHARES = (GRACT, SMACT, SMOCC, TENSOR, DRAM)


@dataclass(frozen=True, slots=True)
class FittedLine:
    """`y = slope · x + intercept` over `n` active means; `missing` is why there is none."""

    x: str
    y: str
    n: int
    slope: float | None = None
    intercept: float | None = None
    r2: float | None = None
    missing: str | None = None
    threads: int | None = None

    def __str__(self) -> str:
        """Write the relation: `SMOCC = 0.746 × SMACT - 0.092, R² 0.8996`, or why there is none."""
        factor, _, metric = self.y.rpartition("× ")
        y, x = f"{factor}{'× ' * bool(factor)}{LABELS[metric]}", LABELS[self.x]
        if self.slope is None or self.intercept is None or self.r2 is None:
            return f"{y} on {x}: {self.missing}"
        sign = "-" if self.intercept < 0 else "+"
        return f"{y} = {self.slope:.3f} × {x} {sign} {abs(self.intercept):.3f}, R² {self.r2:.4f}"


@dataclass(frozen=True, slots=True)
class Misled:
    """Counts of cells that look busy by their peak utilisation, with the most misleading cell."""

    cells: int
    busy: int
    busy_low_smact: int
    busy_low_smocc: int
    example: Size
    example_values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Violation:
    """A cell in which `count` of `of` samples broke a bound; `worst` is the largest excess."""

    place: str
    size: Size
    bound: str
    count: int
    of: int
    worst: float
    limit: float


@dataclass(frozen=True, slots=True)
class GridBounds:
    """The tested bounds with samples and cells, violations, and untested bounds with reasons."""

    tested: Mapping[str, tuple[int, int]]
    violations: Sequence[Violation]
    untested: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PredictedSmact:
    """A size's SMACT and its predicted range, as means over runs; `off`: distance outside."""

    size: Size
    least: float
    most: float
    observed: float
    duty: float
    off: float


@dataclass(frozen=True)
class Findings:
    """Findings on one grid.

    `dips` are the deepest falls of a metric below a point with fewer blocks, by metric and number
    of threads; None if it only rises. `launches` are sizes whose number of kernels differs from
    most, `idle` cells in which nothing ran. `unpredicted` is why there is no prediction.
    """

    grid: KernelGrid
    misled: Misled | None
    lines: Sequence[FittedLine]
    by_threads: Sequence[FittedLine]
    dips: Mapping[tuple[str, int], Dip | None]
    bounds: GridBounds
    predictions: Sequence[PredictedSmact]
    unpredicted: str | None
    launches: Mapping[Size, float]
    idle: Sequence[GridCell]


def findings_of(grid: KernelGrid) -> Findings:
    threads = sorted({size[1] for size in grid.table.index})
    predicted = predictions(grid)
    return Findings(
        grid=grid,
        misled=misled(grid),
        lines=[
            _line(grid, UTILIZATION, GRACT, scale=100),
            _line(grid, GRACT, SMACT),
            _line(grid, SMACT, SMOCC),
        ],
        by_threads=[_line(grid, SMACT, SMOCC, only=number) for number in threads],
        dips={
            (metric, number): dip_of(values)
            for metric in (SMACT, SMOCC)
            for number in threads
            if len(values := _over_blocks(grid, metric, number)) > 1
        },
        bounds=bounds_of(grid.cells, grid.chip),
        predictions=predicted,
        unpredicted=None
        if predicted
        else grid.chip.missing or "the kernel's share of the launch interval was not recorded",
        launches=_launches(grid.cells),
        idle=[cell for cell in grid.cells if cell.idle[1] == 0],
    )


def _line(
    grid: KernelGrid, x: str, y: str, *, scale: int = 1, only: int | None = None
) -> FittedLine:
    cells = grid.table[[f"{x}_{ACTIVE}", f"{y}_{ACTIVE}"]].dropna()
    if only is not None:
        cells = cells[cells.index.get_level_values("threads") == only]
    name = f"{scale} × {y}" if scale != 1 else y
    first, second = cells.to_numpy().T
    fit = fitted(first, scale * second, ALIKE * (100 if x == UTILIZATION else 1))
    if isinstance(fit, str):
        reason = f"{LABELS[x]} {fit}" if len(cells) >= FEWEST else fit
        return FittedLine(x, name, len(cells), missing=reason, threads=only)
    return FittedLine(x, name, len(cells), *fit, threads=only)


def fitted(x: Samples, y: Samples, alike: float = ALIKE) -> tuple[float, float, float] | str:
    """Fit a line: slope, intercept and R²; or the reason why that is impossible."""
    if len(x) < FEWEST:
        return f"both are known in {len(x)} of the {FEWEST} cells required"
    if np.ptp(x) <= alike:
        return "hardly differs between cells"
    if not np.ptp(y):
        return "has no influence: the other is the same in all cells"
    right, up = x - x.mean(), y - y.mean()
    slope = float(right @ up) / float(right @ right)
    left = up - slope * right
    r2 = 1 - float(left @ left) / float(up @ up)
    return slope, float(y.mean() - slope * x.mean()), r2


def _over_blocks(grid: KernelGrid, metric: str, threads: int) -> list[tuple[int, float]]:
    return [(size[0], value) for size, value in grid.column(metric).items() if size[1] == threads]


def dip_of(values: Sequence[tuple[int, float]]) -> Dip | None:
    dips = [
        (*before, *after)
        for at, after in enumerate(values)
        for before in values[:at]
        if before[1] - after[1] > FALLS
    ]
    return max(dips, key=lambda dip: dip[1] - dip[3], default=None)


def misled(grid: KernelGrid) -> Misled | None:
    peaks = grid.table[[f"{metric}_{MAX}" for metric in LABELS]].set_axis([*LABELS], axis="columns")
    rows = peaks.dropna(subset=[UTILIZATION, SMACT])
    if rows.empty:
        return None
    busy = rows[rows[UTILIZATION] >= HIGH_UTILIZATION]
    shown = busy if len(busy) else rows
    example: Size = min(shown.index, key=lambda size: float(rows[SMACT][size]))
    return Misled(
        cells=len(rows),
        busy=len(busy),
        busy_low_smact=int((busy[SMACT] < LOW_SMACT).sum()),
        busy_low_smocc=int((busy[SMOCC] < LOW_SMOCC).sum()),
        example=example,
        example_values={
            metric: float(rows[metric][example])
            for metric in LABELS
            if not np.isnan(rows[metric][example])
        },
    )


def _launches(cells: Sequence[GridCell]) -> dict[Size, float]:
    known = {cell.size: count for cell in cells if (count := cell.work.get("launches")) is not None}
    usual, times = Counter(known.values()).most_common(1)[0] if known else (0.0, 0)
    others = {size: count for size, count in sorted(known.items()) if count != usual}
    return others if 2 * times > len(known) else {}


def limits(size: Size, chip: Chip) -> tuple[float, float, float] | None:
    """Return the most that a kernel of one size can reach while it runs; None without the SM count.

    These are shares of SMs with work, of warps, and of warps on an SM with work: a block takes
    whole warps, a limited number of blocks fits on an SM, and at most one SM per block works.
    """
    if chip.sms is None:
        return None
    blocks, threads = size
    smact = min(blocks, chip.sms) / chip.sms
    if chip.max_warps is None:
        return smact, smact, 1.0
    warps = math.ceil(threads / WARP)
    full = min(1.0, min(chip.max_warps // warps, MOST_BLOCKS) * warps / chip.max_warps)
    return smact, min(blocks * warps / (chip.sms * chip.max_warps), full), full


def bounds_of(cells: Sequence[GridCell], chip: Chip) -> GridBounds:
    tested: dict[str, tuple[int, int]] = {}
    violations: list[Violation] = []
    for cell in cells:
        for bound, values, limit in _bounds(cell, chip):
            known = ~(np.isnan(values) | np.isnan(limit))
            if not known.any():
                continue
            samples, runs = tested.get(bound, (0, 0))
            tested[bound] = samples + int(known.sum()), runs + 1
            tolerance = ROUNDING + DUTY_TOLERANCE * ("duty" in bound) + 1e-9
            over = np.where(known, values - limit, -np.inf)
            if count := int((over > tolerance).sum()):
                worst, sign = int(over.argmax()), -1.0 if bound.startswith("0") else 1.0
                figures = sign * float(values[worst]), sign * float(limit[worst])
                violations.append(
                    Violation(cell.place, cell.size, bound, count, int(known.sum()), *figures)
                )
    untested: dict[str, str] = {}
    if chip.sms is None:
        untested["SMACT ≤ min(b, SMs) / SMs"] = chip.missing or "the number of SMs is unknown"
    elif not any("duty" in bound for bound in tested):
        untested["SMACT ≤ min(b, SMs) / SMs × duty"] = (
            "the duration of kernels was not recorded; tested with duty 1"
        )
    for metric in (GRACT, SMACT, SMOCC):
        if not any(metric in cell.samples and cell.samples[metric].notna().any() for cell in cells):
            untested[f"bounds of {metric.upper()}"] = "it was not sampled"
    return GridBounds(tested, violations, untested)


def _bounds(cell: GridCell, chip: Chip) -> Iterator[tuple[str, Samples, Samples]]:
    columns = {
        metric: np.array(cell.samples[metric]) for metric in SHARES if metric in cell.samples
    }
    for values in columns.values():
        yield "0 ≤ every share", -values, np.zeros_like(values)
        yield "every share ≤ 1", values, np.ones_like(values)
    nothing = np.full(len(cell.samples), np.nan)
    gract, smact, smocc = (columns.get(metric, nothing) for metric in (GRACT, SMACT, SMOCC))
    yield "SMOCC ≤ SMACT", smocc, smact
    yield "SMACT ≤ GRACT", smact, gract
    most = limits(cell.size, chip)
    if most is None:
        return
    yield "SMACT ≤ min(b, SMs) / SMs", smact, np.full_like(smact, most[0])
    yield "SMOCC ≤ b × warps / all warps", smocc, np.full_like(smocc, most[1])
    if chip.max_warps:
        yield "SMOCC ≤ SMACT × warps that fit", smocc, smact * most[2]
    # Compare the active mean with the bound times the duty, which does not apply to single samples.
    duty = cell.work.get("duty")
    for metric, limit in zip((SMACT, SMOCC), most, strict=False):
        mean = cell.figures.get(f"{metric}_{ACTIVE}")
        if mean is not None and duty is not None:
            name = f"mean {metric.upper()} ≤ the same × duty"
            yield name, np.array([mean]), np.array([limit * duty])


def predictions(grid: KernelGrid) -> list[PredictedSmact]:
    sms = grid.chip.sms
    rows = []
    for cell in grid.cells if sms else ():
        observed, duty = cell.figures.get(f"{SMACT}_{MEDIAN}"), cell.work.get("duty")
        if sms and observed is not None and duty is not None:
            least = cell.blocks / (sms * math.ceil(cell.blocks / sms))
            most = min(cell.blocks, sms) / sms
            rows.append((*cell.size, least * duty, most * duty, observed, duty))
    means = pd.DataFrame(rows, columns=range(6)).groupby([0, 1]).mean().itertuples(name=None)
    return [
        PredictedSmact(
            size, least, most, seen, duty, max(seen - most, 0.0) + min(seen - least, 0.0)
        )
        for size, least, most, seen, duty in means
    ]
