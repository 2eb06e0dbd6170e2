"""What the metrics of a GPU say of a kernel whose size is known: a grid of blocks × threads in a saved run."""

from __future__ import annotations

from analysis.answer import Answer
from analysis.terms import Run

ORDER = 26
TITLE = "GPU metrics"


def tells_of(run: Run) -> bool:
    """Whether any cell sampled the metrics of a GPU under a kernel of known size."""
    return any("gpu_metrics" in cell.report for cell in run.cells)


def answer(run: Run, *, brief: bool = False) -> Answer:
    """What the metrics say and what they cannot; `brief` leaves out each cell's figures."""
    from .answers import answer as answer_of
    from .findings import findings_of
    from .grid import grid_of

    refused: list[str] = []
    return answer_of([findings_of(grid_of(run, refused))], refused, brief=brief)
