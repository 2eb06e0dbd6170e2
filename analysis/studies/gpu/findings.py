"""Findings on one grid, computed once for page, JSON and pictures: relations, courses, bounds.

Lines are least-squares descriptions of the cells. They have no intervals: the sizes were chosen,
not drawn, and the residuals are curvature, not noise.

A kernel with b blocks reaches at most b SMs, and no SM holds more warps than fit. These are bounds,
not predictions: for a share of the time (1 - duty) the kernel is not on the GPU. If duty was not
recorded, it is taken as 1, its upper limit.

The prediction of SMACT from the number of blocks is a range: b / (SMs × ⌈b / SMs⌉) to
min(b, SMs) / SMs, times the duty. The upper end applies if blocks that share an SM do not slow each
other (few warps, which wait for their own results). The lower end applies if they do, or wait for
each other: of 133 full blocks on 132 SMs, one SM has two and works twice as long as all others,
which are idle then. This was observed on an H200 (docs/gpu.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
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
    MEMORY_MIB,
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

FEWEST = 3  # cells needed for a line
MIB = 2**20
ARRAYS_BYTES = 8  # per thread: two arrays of float
FALLS = 0.01  # five times the largest rounding error
ALIKE = FALLS  # smaller differences between cells may be rounding: no slope is fitted
HIGH_UTILIZATION, LOW_SMACT, LOW_SMOCC = 90.0, 0.3, 0.1
ROUNDING = 0.002  # of two figures with three decimals
DUTY_TOLERANCE = 0.01  # the duty is measured, too
NEAR = 0.02  # tolerance of a prediction
WARP = 32
SHARES = (GRACT, SMACT, SMOCC, TENSOR, DRAM)


@dataclass(frozen=True)
class Findings:
    """Findings on one grid.

    Lines, memory and courses over blocks use the active means. `launches` are sizes whose number of
    kernels differs from most, `idle` cells in which nothing ran, `spread` the largest difference
    between runs of one size, by metric.
    """

    grid: KernelGrid
    misled: Misled | None
    lines: Sequence[FittedLine]
    by_threads: Sequence[FittedLine]
    memory: FittedLine | None
    courses: Sequence[Course]
    bounds: GridBounds
    predictions: Predictions
    launches: Mapping[Size, float]
    idle: Sequence[GridCell]
    spread: Mapping[str, float]


def findings_of(grid: KernelGrid) -> Findings:
    """Compute all findings of one grid."""
    threads = sorted({size[1] for size in grid.table.index})
    between = pd.DataFrame([cell.figures for cell in grid.cells], index=grid.sizes).groupby(
        level=[0, 1]
    )
    span = (between.max() - between.min())[between.count() > 1].max()
    return Findings(
        grid=grid,
        misled=misled(grid),
        lines=[
            _line(grid, UTILIZATION, GRACT, scale=100),
            _line(grid, GRACT, SMACT),
            _line(grid, SMACT, SMOCC),
        ],
        by_threads=[_line(grid, SMACT, SMOCC, only=number) for number in threads],
        memory=_memory(grid),
        courses=[course for metric in (SMACT, SMOCC) for course in courses(grid, metric)],
        bounds=bounds_of(grid.cells, grid.chip),
        predictions=predictions(grid),
        launches=_launches(grid.cells),
        idle=[cell for cell in grid.cells if cell.idle[1] == 0],
        spread={
            metric: float(span[name])
            for metric in (UTILIZATION, SMACT, SMOCC)
            if span.get(name := f"{metric}_{ACTIVE}", np.nan) >= 0
        },
    )


@dataclass(frozen=True, slots=True)
class FittedLine:
    """`y = slope · x + intercept` over `n` cells of `table`; `missing` is why there is none."""

    x: str
    y: str
    table: str
    n: int
    slope: float | None = None
    intercept: float | None = None
    r2: float | None = None
    missing: str | None = None
    among: str = ""

    def __str__(self) -> str:
        """Write the relation: `SMOCC = 0.746 × SMACT - 0.092, R² 0.8996`, or why there is none."""
        y, x = (
            LABELS.get(self.y) or self.y.replace(GRACT, LABELS[GRACT]),
            LABELS.get(self.x, self.x),
        )
        if self.slope is None or self.intercept is None:
            return f"{y} on {x}: {self.missing}"
        decimals = 1 if abs(self.intercept) >= 100 else 3
        text = (
            f"{y} = {self.slope:.3f} × {x} {'-' if self.intercept < 0 else '+'} "
            f"{abs(self.intercept):.{decimals}f}"
        )
        return f"{text}, {self.missing}" if self.r2 is None else f"{text}, R² {self.r2:.4f}"


def fitted(line: FittedLine, x: Sequence[float], y: Sequence[float]) -> FittedLine:
    """Fit a line, or record why that is impossible."""
    if len(x) < FEWEST:
        return replace(line, missing=f"both are known in {len(x)} of the {FEWEST} cells required")
    first, second = np.asarray(x, float), np.asarray(y, float)
    right, up = first - first.mean(), second - second.mean()
    spread, rise = float(right @ right), float(up @ up)
    if not math.isfinite(spread * rise):
        return replace(line, missing="the values are too large to compute with")
    if spread <= 1e-12 * max(1.0, float(first @ first)):
        return replace(line, missing="the first is the same in all cells")
    slope = float(right @ up) / spread
    line = replace(line, slope=slope, intercept=float(second.mean() - slope * first.mean()))
    if rise <= 0:
        return replace(line, missing="R² is undefined: the second is the same in all cells")
    left = up - slope * right
    return replace(line, r2=1 - float(left @ left) / rise)


def _line(
    grid: KernelGrid, x: str, y: str, *, scale: float = 1.0, only: int | None = None
) -> FittedLine:
    """Fit one metric on another, optionally `only` for one thread count; `scale` gives percent."""
    cells = [both for size, both in grid.pairs(x, y).items() if only is None or size[1] == only]
    among = f"{only} thread{'' if only == 1 else 's'}" if only else ""
    line = FittedLine(
        x, f"{scale:g} × {y}" if scale != 1 else y, grid.label(ACTIVE), len(cells), among=among
    )
    xs = [first for first, _ in cells]
    if len(xs) >= FEWEST and max(xs) - min(xs) <= ALIKE * (100 if x == UTILIZATION else 1):
        return replace(line, missing=f"{LABELS[x]} hardly differs between cells")
    return fitted(line, xs, [second * scale for _, second in cells])


def _memory(grid: KernelGrid) -> FittedLine | None:
    """Fit used memory on the kernel's allocation."""
    used = grid.column(MEMORY_MIB)
    line = FittedLine("allocated MiB", MEMORY_MIB, grid.label(ACTIVE), len(used))
    return fitted(line, [*map(allocated_mib, used)], [*used.values()]) if used else None


def allocated_mib(size: Size) -> float:
    """Return the allocation of the study's kernel: two arrays of float, one element per thread."""
    return ARRAYS_BYTES * size[0] * size[1] / MIB


@dataclass(frozen=True, slots=True)
class Course:
    """One metric at one number of threads, from few blocks to many.

    `falls` are steps down: blocks before, after, and both values. `dip` is the deepest fall below a
        point
    with fewer blocks: from (blocks, value) to (blocks, value); None if the metric only rises.
    """

    metric: str
    threads: int
    values: Sequence[tuple[int, float]]
    falls: Sequence[tuple[int, int, float, float]]
    dip: tuple[int, float, int, float] | None


def courses(grid: KernelGrid, metric: str = SMACT) -> Iterator[Course]:
    """Yield a metric's course over blocks, for each number of threads with two or more points."""
    column = grid.column(metric)
    for threads in sorted({size[1] for size in column}):
        values = [
            (blocks, value) for (blocks, number), value in column.items() if number == threads
        ]
        falls = [
            (few, many, high, low)
            for (few, high), (many, low) in pairwise(values)
            if high - low > FALLS
        ]
        dips = [
            (*before, *after)
            for at, after in enumerate(values)
            for before in values[:at]
            if before[1] - after[1] > FALLS
        ]
        if len(values) > 1:
            yield Course(
                metric,
                threads,
                values,
                falls,
                max(dips, key=lambda dip: dip[1] - dip[3], default=None),
            )


@dataclass(frozen=True, slots=True)
class Misled:
    """Counts of cells that look busy by utilisation only, with the most misleading cell.

    `table` names the figures that were counted.
    """

    table: str
    cells: int
    busy: int
    busy_low_smact: int
    busy_low_smocc: int
    example: Size
    example_values: Mapping[str, float]


def misled(grid: KernelGrid) -> Misled | None:
    """Count cells with peak utilisation of 90 % but SMACT below .3 or SMOCC below .1."""
    peaks = grid.table[[f"{metric}_{MAX}" for metric in LABELS]].set_axis([*LABELS], axis="columns")
    rows = peaks.dropna(subset=[UTILIZATION, SMACT])
    if rows.empty:
        return None
    busy = rows[rows[UTILIZATION] >= HIGH_UTILIZATION]
    blocks, threads = min((busy if len(busy) else rows).index, key=lambda size: rows[SMACT][size])
    return Misled(
        table=grid.label(MAX),
        cells=len(rows),
        busy=len(busy),
        busy_low_smact=int((busy[SMACT] < LOW_SMACT).sum()),
        busy_low_smocc=int((busy[SMOCC] < LOW_SMOCC).sum()),
        example=(int(blocks), int(threads)),
        example_values={
            metric: float(rows[metric][blocks, threads])
            for metric in LABELS
            if rows[metric].notna()[blocks, threads]
        },
    )


def _launches(cells: Sequence[GridCell]) -> dict[Size, float]:
    """Return sizes whose number of launches differs from the majority's, if there is a majority."""
    known = {cell.size: count for cell in cells if (count := cell.work.get("launches")) is not None}
    usual, times = Counter(known.values()).most_common(1)[0] if known else (0.0, 0)
    return (
        {size: count for size, count in sorted(known.items()) if count != usual}
        if 2 * times > len(known)
        else {}
    )


# Bounds: physical limits.


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
    fit = min(chip.max_warps // warps, chip.max_blocks or chip.max_warps)
    full = min(1.0, fit * warps / chip.max_warps)
    return smact, min(blocks * warps / (chip.sms * chip.max_warps), full), full


def bounds_of(cells: Sequence[GridCell], chip: Chip) -> GridBounds:
    """Test every bound on every sample of every cell."""
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
    """Yield each bound with values, and the limits that they must not exceed."""
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
            yield (
                f"mean {metric.upper()} ≤ the same × duty",
                np.array([mean]),
                np.array([limit * duty]),
            )


# Predictions.


@dataclass(frozen=True, slots=True)
class PredictedSmact:
    """One size's SMACT and its predicted range, as means over runs; `off`: distance outside."""

    size: Size
    least: float
    most: float
    observed: float
    duty: float
    off: float


@dataclass(frozen=True, slots=True)
class Predictions:
    """All sizes with known duty, and how many are near their predicted range."""

    cells: Sequence[PredictedSmact]
    near: int
    missing: str | None = None


def predictions(grid: KernelGrid) -> Predictions:
    """Compare SMACT (the samples' median) with its prediction, if duty and SMs are known."""
    sms = grid.chip.sms
    if sms is None:
        return Predictions((), 0, grid.chip.missing)
    rows = []
    for cell in grid.cells:
        observed, duty = cell.figures.get(f"{SMACT}_{MEDIAN}"), cell.work.get("duty")
        if observed is not None and duty is not None:
            least = cell.blocks / (sms * math.ceil(cell.blocks / sms))
            rows.append(
                (*cell.size, least * duty, min(cell.blocks, sms) / sms * duty, observed, duty)
            )
    if not rows:
        return Predictions((), 0, "the kernel's share of the launch interval was not recorded")
    means = pd.DataFrame(rows).groupby([0, 1]).mean()
    result = [
        PredictedSmact(
            size, least, most, seen, duty, max(seen - most, 0.0) + min(seen - least, 0.0)
        )
        for size, least, most, seen, duty in means.itertuples(name=None)
    ]
    return Predictions(result, sum(abs(predicted.off) <= NEAR for predicted in result))
