"""The input of training runs: accelerator utilisation, throughput, and their validity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.answer import Answer
from analysis.terms import Cell, Run

ORDER = 40
TITLE = "Input"


def tells_of(run: Run) -> bool:
    return any("io" in cell.report for cell in run.cells)


def answer(run: Run, *, brief: bool = False) -> Answer:
    from .answers import answer as answer_of
    from .saved import judged_of
    from .study import study

    refused: list[str] = []
    return answer_of(study(run.origin, judged_of(run, refused), refused), brief=brief)


def with_figures(cell: Cell, origin: str, params: Mapping[str, object], *, capped: bool) -> Cell:
    if "io" not in cell.report:
        return cell
    from .saved import with_figures as read_figures

    return read_figures(cell, origin, params, capped=capped)


def for_pictures(runs: Sequence[Run]) -> dict[str, object]:
    from .saved import judged_of
    from .study import study

    return {"io": [study(run.origin, judged) for run in runs if (judged := judged_of(run, []))]}
