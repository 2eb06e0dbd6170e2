"""Everything that is said of one grid, reckoned once for the page, for JSON and for pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .bounds import bounds_of, predictions
from .csv_tables import agreements
from .equal_work import launches_differ, nothing_ran, odd_ones, uneven
from .relations import by_threads, courses, lines, memory, misled
from .sampled import lengths, spread, table
from .terms import ACTIVE, MAX, MEAN, MEDIAN, MEMORY_MIB, SMACT, SMOCC, STATISTICS, UTILIZATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .bounds import GridBounds, Predictions
    from .csv_tables import Agreement
    from .equal_work import OddCell, Uneven
    from .relations import Course, FittedLine, Misled
    from .terms import CellTable, GridCell, KernelGrid, Size


@dataclass(frozen=True, slots=True)
class Findings:
    """What one grid says. `tables` are ours by statistic; `widest` by statistic those with most cells, which may be ones that were read.

    `lines` and `memory` are fitted on the widest tables of peaks and of means, or on active means of a run of ours; `over` is the table
    whose courses over blocks are described. `spread` is by how much runs of one size differ at most, by metric.
    """

    grid: KernelGrid
    tables: Mapping[str, CellTable]
    widest: Mapping[str, CellTable]
    agreements: tuple[Agreement, ...]
    misled: Misled | None
    lines: tuple[FittedLine, ...]
    by_threads: tuple[FittedLine, ...]
    memory: tuple[FittedLine, ...]
    over: CellTable
    courses: tuple[Course, ...]
    bounds: GridBounds
    predictions: Predictions
    samples: Mapping[Size, float]
    odd: tuple[OddCell, ...]
    uneven: tuple[Uneven, ...]
    launches: Mapping[Size, float]
    idle: tuple[GridCell, ...]
    spread: Mapping[str, float]


def findings_of(grid: KernelGrid) -> Findings:
    """Look at one grid from all sides."""
    ours = {statistic: table(grid.cells, statistic) for statistic in STATISTICS} if grid.cells else {}
    widest = {**ours}
    for one in grid.read:
        if one.statistic not in widest or len(one.rows) > len(widest[one.statistic].rows):
            widest[one.statistic] = one
    # The study's tables are peaks and means of whole logs; a run of ours was sampled while its kernel ran, and has a figure of that.
    steady = ours[ACTIVE] if grid.whole_run and ours[ACTIVE].rows else None
    over = steady or max((widest[text] for text in (MAX, MEAN, MEDIAN) if text in widest), key=lambda one: len(one.rows))
    peaks = widest.get(MAX) or widest.get(MEDIAN) or over
    fitted = [steady] if steady else [one for one in (widest.get(MAX), widest.get(MEAN)) if one is not None]
    samples = lengths(grid.cells)
    return Findings(
        grid=grid,
        tables=ours,
        widest=widest,
        agreements=tuple(agreements(grid.read, ours.values())),
        misled=misled(peaks),
        lines=tuple(line for one in fitted for line in lines(one)),
        by_threads=tuple(by_threads(over)),
        memory=tuple(memory(one) for one in fitted if any(MEMORY_MIB in row for row in one.rows.values())),
        over=over,
        courses=tuple(course for metric in (SMACT, SMOCC) for course in courses(over, metric)),
        bounds=bounds_of(grid.cells, grid.chip),
        predictions=predictions(grid.cells, grid.chip),
        samples=samples,
        # A run of ours lasts as long as it was told to; how often it launched, it says itself.
        odd=() if grid.whole_run else tuple(odd_ones(samples)),
        uneven=tuple(uneven(grid.cells)),
        launches=launches_differ(grid.cells),
        idle=tuple(nothing_ran(grid.cells)),
        spread={metric: most for metric in (UTILIZATION, SMACT, SMOCC) if (most := spread(grid.cells, metric)) is not None},
    )


def shown_table(findings: Findings, statistic: str = ACTIVE) -> CellTable:
    """Answer the table that a picture shows: the active means of our own cells, or what was read where there are no cells."""
    return findings.tables.get(statistic) or findings.over
