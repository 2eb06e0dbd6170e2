"""What is inside runs, told in numbers and tables; no verdict on a tweak."""

from __future__ import annotations

from analysis.answer import Answer
from analysis.terms import Run


def answer_alone(run: Run) -> Answer | None:
    """Describe a run in which nothing stands beside the baseline; None where nothing was measured."""
    from .answer import answer
    from .describe import describe

    return answer([(run, describe(run))]) if any(cell.outcome == "measured" for cell in run.cells) else None
