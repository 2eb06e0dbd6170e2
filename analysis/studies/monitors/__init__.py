"""The cost of monitors and profilers, from saved runs."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.answer import Answer
from analysis.terms import Run

ORDER = 10
TITLE = "Monitors"


def tells_of(run: Run) -> bool:
    return run.is_monitored


def answer(run: Run, *, brief: bool = False) -> Answer:
    from .answers import answer as answer_of
    from .study import overheads

    return answer_of(run, overheads(run), brief=brief)


def for_pictures(runs: Sequence[Run]) -> dict[str, object]:
    from .study import overheads

    return {"overhead": {run.origin: overheads(run) for run in runs}}


def unquiet(run: Run) -> dict[str, str]:
    """Return workloads whose arms without a monitor differ or agree too loosely, with reasons."""
    if not tells_of(run):
        return {}
    from .study import overheads

    return {
        overhead.workload: overhead.control.sentence
        for overhead in overheads(run)
        if overhead.control.state != "quiet"
    }
