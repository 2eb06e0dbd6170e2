"""Power-capped inference: the best partitions, batches and clocks, and algorithms under a cap."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.answer import Answer
from analysis.terms import Cell, Run

ORDER = 20
TITLE = "Power"
REPORTS = frozenset({"iteration", "point"})  # under a cap, and of a profile


def tells_of(run: Run) -> bool:
    return any(not REPORTS.isdisjoint(cell.report) for cell in run.cells)


def answer(run: Run, *, brief: bool = False) -> Answer:
    """Return the best algorithm that holds the cap, or results of partitions, batches and clocks.

    `brief` omits energy, latency and remarks.
    """
    from dataclasses import replace

    from .figures import is_capped

    if not is_capped(run):
        from .prediction import profile

        return profile(run)
    from .report import answer as answer_of
    from .study import sides

    refused: list[str] = []
    return replace(answer_of(run, sides(run, refused), brief=brief), refused=refused)


def with_figures(
    cell: Cell,
    origin: str,
    params: Mapping[str, object],
    *,
    capped: bool,  # noqa: ARG001  # of steps
) -> Cell:
    if cell.outcome != "measured" or "iteration" not in cell.report:
        return cell
    from .figures import with_figures as read_figures

    return read_figures(cell, origin, str(params.get("backend") or ""))
