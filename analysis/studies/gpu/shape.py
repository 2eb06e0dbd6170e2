"""How metrics go over the grid: whether more blocks mean busier SMs, and where not; and how often utilisation misleads."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from .terms import GRACT, SMACT, SMOCC, UTILIZATION

if TYPE_CHECKING:
    from .terms import Size, Table

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


def courses(table: Table, metric: str = SMACT) -> list[Course]:
    """Answer a metric's course over blocks, for each number of threads that has two or more."""
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


def misled(table: Table) -> Misled | None:
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
