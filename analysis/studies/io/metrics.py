"""What a cell's input did as metrics of the cell, beside those of its steps: `--metric au_whole_percent`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.terms import Unreadable

from .responses import judge
from .saved import of_report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.terms import Cell


def with_figures(cell: Cell, origin: str, params: Mapping[str, object], *, capped: bool) -> Cell:
    """Answer a cell with them; `params` are its workload's, and `capped` is a run whose steps were."""
    found = _figures(cell, origin, params, capped=capped)
    if not found:
        return cell
    return replace(cell, metrics={**cell.metrics, **found})


def _figures(cell: Cell, origin: str, params: Mapping[str, object], *, capped: bool) -> dict[str, float]:
    """Answer every figure that may be believed; none where a cell reported no input, or what it reported cannot be read.

    What is wrong with a report is for `python -m analysis io` to say: the cell's steps stand without it.
    """
    if "io" not in cell.report:
        return {}
    try:
        found = judge(of_report(cell, origin, params, capped=capped))
    except Unreadable:
        return {}
    return {name: one.value for name, one in found.responses.items() if one.value is not None}
