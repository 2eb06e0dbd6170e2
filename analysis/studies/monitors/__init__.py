"""What monitors and profilers cost: by the saved runs of our own study, and by the logs of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.answer import Answer
    from analysis.terms import Run

ORDER = 10
TITLE = "Monitors"


def tells_of(run: Run) -> bool:
    return run.is_monitored


def answer(run: Run, *, brief: bool = False) -> Answer:
    """What watching costs; `brief` is each workload's answer with the table of costs."""
    from .answers import answer as answer_of
    from .study import overheads

    return answer_of(run, overheads(run), brief=brief)
