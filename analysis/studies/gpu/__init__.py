"""GPU metrics for a kernel of known size: a grid of blocks × threads in a saved run."""

from __future__ import annotations

from analysis.answer import Answer
from analysis.terms import Run

ORDER = 26
TITLE = "GPU metrics"


def tells_of(run: Run) -> bool:
    """Return whether any cell sampled GPU metrics under a kernel of known size."""
    return any("gpu_metrics" in cell.report for cell in run.cells)


def answer(run: Run, *, brief: bool = False) -> Answer:
    """Return the findings on the metrics; `brief` omits the figures of single cells."""
    from .answers import answer as answer_of
    from .findings import findings_of
    from .grid import grid_of

    refused: list[str] = []
    return answer_of([findings_of(grid_of(run, refused))], refused, brief=brief)
