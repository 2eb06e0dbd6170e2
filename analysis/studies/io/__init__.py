"""What a training's input did: accelerator utilisation, throughput, and whether the figures may be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.answer import Answer
    from analysis.terms import Run

ORDER = 40
TITLE = "Input"


def tells_of(run: Run) -> bool:
    """Whether any cell of a run reported what its input did."""
    return any("io" in cell.report for cell in run.cells)


def answer(run: Run, *, brief: bool = False) -> Answer:
    """Format × cache, what limits each, factors and tweak sets; `brief` is the answer with its tables."""
    from .run_answer import answer as answer_of  # noqa: PLC0415  # which imports numpy
    from .saved import io_runs  # noqa: PLC0415  # as above
    from .study import study  # noqa: PLC0415  # as above

    refused: list[str] = []
    return answer_of(study(run.origin, io_runs(run, refused), refused), brief=brief)
