"""What one grid shows, computed once for the page, JSON and pictures: relations of metrics, courses over blocks, bounds, equal work.

Lines are by least squares, a description of the cells that are there, each of which ran once. No interval is put around them: the sizes
were chosen, not drawn, and what is left over is bend and not noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .checks import GridBounds, Predictions, bounds_of, launches_differ, predictions
from .grid import (
    ACTIVE,
    GRACT,
    LABELS,
    MAX,
    MEMORY_MIB,
    SMACT,
    SMOCC,
    STATISTICS,
    UTILIZATION,
    idle,
    spread,
    table,
)

if TYPE_CHECKING:
    from .grid import CellTable, GridCell, KernelGrid, Size

FEWEST = 3
MIB = 2**20
ARRAYS_BYTES = 8  # a thread: two arrays of float


@dataclass(frozen=True, slots=True)
class FittedLine:
    """`y = slope · x + intercept` over `n` cells of `table`; no figure has a value where `missing` says why."""

    x: str
    y: str
    table: str
    n: int
    slope: float | None = None
    intercept: float | None = None
    r2: float | None = None
    missing: str | None = None
    among: str = ""


def fitted(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float] | str:
    """Fit a line: slope, intercept and R²; or why none can be."""
    if len(x) < FEWEST:
        return f"{len(x)} cells have both, and {FEWEST} are needed"
    first, second = np.asarray(x, float), np.asarray(y, float)
    right, up = first - first.mean(), second - second.mean()
    spread, rise = float(right @ right), float(up @ up)
    if not math.isfinite(spread * rise):
        return "the values are too large to compute with"
    if spread <= 1e-12 * max(1.0, float(first @ first)):
        return "it is the same in all of them"
    slope = float(right @ up) / spread
    left = up - slope * right
    r2 = 1 - float(left @ left) / rise if rise > 0 else float("nan")
    return slope, float(second.mean() - slope * first.mean()), r2


def _line(table: CellTable, x: str, y: str, *, scale: float = 1.0, only: int | None = None) -> FittedLine:
    """Fit a table's metric on another one; `only` cells of so many threads. `scale` makes the second a percentage."""
    cells = [both for size, both in sorted(table.pairs(x, y).items()) if only is None or size[1] == only]
    among = f"{only} thread{'' if only == 1 else 's'}" if only else ""
    label = f"{scale:g} × {y}" if scale != 1 else y
    return _made(FittedLine(x, label, table.label, len(cells), among=among), [(value, other * scale) for value, other in cells])


def _made(line: FittedLine, values: Sequence[tuple[float, float]]) -> FittedLine:
    result = fitted([first for first, _ in values], [second for _, second in values])
    if isinstance(result, str):
        return replace(line, missing=result)
    slope, intercept, r2 = result
    if math.isnan(r2):
        return replace(line, slope=slope, intercept=intercept, missing="R² has no meaning: the second is the same in all")
    return replace(line, slope=slope, intercept=intercept, r2=r2)


def lines(table: CellTable) -> list[FittedLine]:
    """Fit what the study asked: GRACT on utilisation, SMACT on GRACT, SMOCC on SMACT."""
    return [_line(table, UTILIZATION, GRACT, scale=100), _line(table, GRACT, SMACT), _line(table, SMACT, SMOCC)]


def by_threads(table: CellTable) -> list[FittedLine]:
    """Fit SMOCC on SMACT for each number of threads a block by itself: what is one line there is a bundle over all."""
    return [_line(table, SMACT, SMOCC, only=threads) for threads in sorted({threads for _, threads in table.rows})]


def allocated_mib(size: Size) -> float:
    """What the kernel of the study allocates: two arrays of float, one element a thread each."""
    return ARRAYS_BYTES * size[0] * size[1] / MIB


def memory(table: CellTable) -> FittedLine:
    """Fit used memory on what the kernel allocated."""
    there = {size: row[MEMORY_MIB] for size, row in sorted(table.rows.items()) if MEMORY_MIB in row}
    line = FittedLine("allocated MiB", MEMORY_MIB, table.label, len(there))
    return _made(line, [(allocated_mib(size), used) for size, used in there.items()])


def equation(line: FittedLine) -> str:
    """Write a line: `SMOCC = 0.746 × SMACT - 0.092, R² 0.8996`, or why it has none."""
    y, x = LABELS.get(line.y) or line.y.replace(GRACT, LABELS[GRACT]), LABELS.get(line.x, line.x)
    if line.slope is None or line.intercept is None:
        return f"{y} on {x}: {line.missing}"
    decimals = 1 if abs(line.intercept) >= 100 else 3
    text = f"{y} = {line.slope:.3f} × {x} {'-' if line.intercept < 0 else '+'} {abs(line.intercept):.{decimals}f}"
    return f"{text}, {line.missing}" if line.r2 is None else f"{text}, R² {line.r2:.4f}"


FALLS = 0.01  # five times what rounding can do
HIGH_UTILIZATION, LOW_SMACT, LOW_SMOCC = 90.0, 0.3, 0.1


@dataclass(frozen=True, slots=True)
class Course:
    """One metric at one number of threads, from few blocks to many. `falls` are steps down: blocks before, after, and both values."""

    metric: str
    threads: int
    values: tuple[tuple[int, float], ...]
    falls: tuple[tuple[int, int, float, float], ...]

    @property
    def dip(self) -> tuple[int, float, int, float] | None:
        """The deepest point below one with fewer blocks: where from, from what, where to, to what; None where it only rises."""
        best: tuple[int, float, int, float] | None = None
        for at, (many, low) in enumerate(self.values):
            for few, high in self.values[:at]:
                if high - low > FALLS and (best is None or high - low > best[1] - best[3]):
                    best = few, high, many, low
        return best


def courses(table: CellTable, metric: str = SMACT) -> list[Course]:
    """Return a metric's course over blocks, for each number of threads that has two or more."""
    result = []
    for threads in sorted({size[1] for size in table.rows}):
        values = tuple((size[0], row[metric]) for size, row in sorted(table.rows.items()) if size[1] == threads and metric in row)
        falls = tuple((few, many, high, low) for (few, high), (many, low) in pairwise(values) if high - low > FALLS)
        if len(values) > 1:
            result.append(Course(metric, threads, values, falls))
    return result


@dataclass(frozen=True, slots=True)
class Misled:
    """How many cells look busy by utilisation and are not: counts, and the cell that looks busiest for the least.

    `table` says which figures were counted; `least_utilization` and `mean_utilization` are over the cells that have it.
    """

    table: str
    cells: int
    busy: int
    busy_low_smact: int
    busy_low_smocc: int
    least_utilization: float
    mean_utilization: float
    least_gract: float | None
    example: Size
    example_values: dict[str, float]


def misled(table: CellTable) -> Misled | None:
    """Count cells whose utilisation reaches 90 % while SMACT stays under .3 or SMOCC under .1; None where one was not recorded."""
    rows = {size: row for size, row in table.rows.items() if UTILIZATION in row and SMACT in row}
    if not rows:
        return None
    busy = {size: row for size, row in rows.items() if row[UTILIZATION] >= HIGH_UTILIZATION}
    example = min(busy or rows, key=lambda size: (rows[size][SMACT], size))
    utilization = [row[UTILIZATION] for row in rows.values()]
    return Misled(
        table=table.label,
        cells=len(rows),
        busy=len(busy),
        busy_low_smact=sum(row[SMACT] < LOW_SMACT for row in busy.values()),
        busy_low_smocc=sum(row[SMOCC] < LOW_SMOCC for row in busy.values() if SMOCC in row),
        least_utilization=min(utilization),
        mean_utilization=sum(utilization) / len(utilization),
        least_gract=min((row[GRACT] for row in rows.values() if GRACT in row), default=None),
        example=example,
        example_values=dict(rows[example]),
    )


@dataclass(frozen=True, slots=True)
class Findings:
    """What one grid shows. `tables` are by statistic.

    Lines, memory and courses over blocks are those of the active means. `spread` is by how much runs of one size differ at most, by metric.
    """

    grid: KernelGrid
    tables: Mapping[str, CellTable]
    misled: Misled | None
    lines: tuple[FittedLine, ...]
    by_threads: tuple[FittedLine, ...]
    memory: FittedLine | None
    courses: tuple[Course, ...]
    bounds: GridBounds
    predictions: Predictions
    launches: Mapping[Size, float]
    idle: tuple[GridCell, ...]
    spread: Mapping[str, float]


def findings_of(grid: KernelGrid) -> Findings:
    """Compute all findings of one grid."""
    tables = {statistic: table(grid.cells, statistic) for statistic in STATISTICS}
    active = tables[ACTIVE]
    return Findings(
        grid=grid,
        tables=tables,
        misled=misled(tables[MAX]),
        lines=tuple(lines(active)),
        by_threads=tuple(by_threads(active)),
        memory=memory(active) if any(MEMORY_MIB in row for row in active.rows.values()) else None,
        courses=tuple(course for metric in (SMACT, SMOCC) for course in courses(active, metric)),
        bounds=bounds_of(grid.cells, grid.chip),
        predictions=predictions(grid.cells, grid.chip),
        launches=launches_differ(grid.cells),
        idle=tuple(cell for cell in grid.cells if idle(cell)[1] == 0),
        spread={metric: most for metric in (UTILIZATION, SMACT, SMOCC) if (most := spread(grid.cells, metric)) is not None},
    )
