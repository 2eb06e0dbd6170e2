"""Straight lines between metrics, by least squares: a description of the cells that are there, each of which ran once.

No interval is put around them: the sizes were chosen, not drawn, and what is left over is bend and not noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .terms import GRACT, MEMORY_MIB, SAID, SMACT, SMOCC, UTILIZATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Size, Table

FEWEST = 3
MIB = 2**20
ARRAYS_BYTES = 8  # a thread: two arrays of float


@dataclass(frozen=True, slots=True)
class Line:
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
        return "the values are too large to reckon with"
    if spread <= 1e-12 * max(1.0, float(first @ first)):
        return "it is the same in all of them"
    slope = float(right @ up) / spread
    left = up - slope * right
    r2 = 1 - float(left @ left) / rise if rise > 0 else float("nan")
    return slope, float(second.mean() - slope * first.mean()), r2


def _line(table: Table, x: str, y: str, *, scale: float = 1.0, only: int | None = None) -> Line:
    """Fit a table's metric on another one; `only` cells of so many threads. `scale` makes the second a percentage."""
    there = [both for size, both in sorted(table.pairs(x, y).items()) if only is None or size[1] == only]
    names = x, f"{scale:g} × {y}" if scale != 1 else y
    return _made(
        *names,
        table,
        [value for value, _ in there],
        [other * scale for _, other in there],
        f"{only} thread{'' if only == 1 else 's'}" if only else "",
    )


def _made(x: str, y: str, table: Table, first: Sequence[float], second: Sequence[float], among: str = "") -> Line:  # noqa: PLR0913, PLR0917  # two named columns
    result = fitted(first, second)
    if isinstance(result, str):
        return Line(x, y, table.label, len(first), missing=result, among=among)
    slope, intercept, r2 = result
    if math.isnan(r2):
        return Line(
            x, y, table.label, len(first), slope, intercept, missing="R² has no meaning: the second is the same in all", among=among
        )
    return Line(x, y, table.label, len(first), slope, intercept, r2, among=among)


def lines(table: Table) -> list[Line]:
    """Fit what the study asked: GRACT on utilisation, SMACT on GRACT, SMOCC on SMACT."""
    return [_line(table, UTILIZATION, GRACT, scale=100), _line(table, GRACT, SMACT), _line(table, SMACT, SMOCC)]


def by_threads(table: Table) -> list[Line]:
    """Fit SMOCC on SMACT for each number of threads a block by itself: what is one line there is a bundle over all."""
    return [_line(table, SMACT, SMOCC, only=threads) for threads in sorted({threads for _, threads in table.rows})]


def allocated_mib(size: Size) -> float:
    """What the kernel of the study allocates: two arrays of float, one element a thread each."""
    return ARRAYS_BYTES * size[0] * size[1] / MIB


def memory(table: Table) -> Line:
    """Fit used memory on what the kernel allocated."""
    there = {size: row[MEMORY_MIB] for size, row in sorted(table.rows.items()) if MEMORY_MIB in row}
    return _made("allocated MiB", MEMORY_MIB, table, [allocated_mib(size) for size in there], list(there.values()))


def in_words(line: Line) -> str:
    """Write a line as an equation: `SMOCC = 0.746 × SMACT - 0.092`."""
    y = line.y.replace(GRACT, SAID[GRACT]) if line.y not in SAID else SAID[line.y]
    x = SAID.get(line.x, line.x)
    if line.slope is None or line.intercept is None:
        return f"{y} on {x}: {line.missing}"
    decimals = 1 if abs(line.intercept) >= 100 else 3
    return f"{y} = {line.slope:.3f} × {x} {'-' if line.intercept < 0 else '+'} {abs(line.intercept):.{decimals}f}"
