"""Whether what a cell tells of its monitor is what its arm is: a cell that tells of another is left out, and said."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.plain import one_line

from .records import studies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.terms import Cell, Run

SAME = ("kind", "base")  # what all cells of an arm must agree in


def held(run: Run) -> Run:
    """Answer a run whose cells that do not fit their arm have failed, with the reason."""
    names = studies(run)
    told: dict[tuple[str, str], dict[str, set[str]]] = {}
    for cell in run.cells:
        if cell.outcome == "measured" and cell.monitor:
            arm = told.setdefault((cell.study, cell.tweakset), {name: set() for name in SAME})
            for name in SAME:
                arm[name].add(_shown(cell.monitor.get(name)))
    cells = []
    for cell in run.cells:
        reason = _misfit(cell, run, told) if cell.study in names and cell.outcome == "measured" else ""
        cells.append(replace(cell, outcome="failed", reason=reason, metrics={}, steps=None, segments=()) if reason else cell)
    return replace(run, cells=tuple(cells))


def _misfit(cell: Cell, run: Run, told: Mapping[tuple[str, str], Mapping[str, set[str]]]) -> str:
    wanted = run.tweaksets[cell.tweakset].monitor or None
    if not cell.monitor:
        return "it does not tell whether it had a monitor"
    name = cell.monitor.get("name")
    if name != wanted:
        return f"it tells of {_shown(name)}, where its arm is {_shown(wanted)}"
    for field, words in told[cell.study, cell.tweakset].items():
        if len(words) > 1:
            return f"cells of its arm tell of more than one {field}: {', '.join(sorted(words))}"
    return ""


def _shown(value: object) -> str:
    return "none" if value is None else one_line(str(value), 60)
