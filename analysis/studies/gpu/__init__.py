"""GPU metrics for a kernel of known size: a grid of blocks × threads in a saved run."""

from __future__ import annotations

from analysis.answer import Answer
from analysis.terms import Run

ORDER = 26
TITLE = "GPU metrics"


def tells_of(run: Run) -> bool:
    return any("gpu_metrics" in cell.report for cell in run.cells)


def answer(run: Run, *, brief: bool = False) -> Answer:
    from .answers import answer as answer_of
    from .findings import findings_of
    from .grid import grid_of

    refused: list[str] = []
    return answer_of([findings_of(grid_of(run, refused))], refused, brief=brief)
