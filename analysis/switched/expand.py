"""A run whose settings were alternated inside its processes, taken apart: each pair of segments is a block of two cells.

What compares and draws cells so works on segments as it does on whole runs. The run itself keeps its processes as its cells: those were
planned, started, skipped, and have telemetry.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.terms import Cell, Run


def is_switched(run: Run) -> bool:
    return any(cell.segments for cell in run.cells)


def expanded(run: Run) -> Run:
    """The run with every segment as a cell of its own; one without segments as it is.

    A pair's number stands for its process and its place in it, the same in any run of the same plan, so that pairs of two runs can be set
    against each other.
    """
    if not is_switched(run):
        return run
    names = list(run.tweaksets)
    pairs = max(segment.block for cell in run.cells for segment in cell.segments)
    cells: list[Cell] = []
    for cell in sorted(run.cells, key=lambda cell: cell.order):
        before = ((cell.block - 1) * len(names) + names.index(cell.tweakset)) * pairs
        segments = cell.segments or (replace(cell, block=1, process=cell.block),)
        cells += [replace(segment, block=before + segment.block) for segment in segments]
    return replace(run, cells=tuple(replace(cell, order=order) for order, cell in enumerate(cells, 1)))
