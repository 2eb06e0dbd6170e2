"""Pictures and tables of grids, a file each; a second grid's have its number in their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.saving import write_whole

from . import csv_tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .findings import Findings


def pictures(grids: Sequence[Findings], folder: Path, form: str = "png") -> dict[str, str]:
    """Draw every grid; answers each picture's file, or why there is none.

    Raises: Refused, where a file cannot be written.
    """
    from analysis.plots.gpu_metrics_grid import draw as draw_grid  # noqa: PLC0415  # matplotlib, which a table need not wait for
    from analysis.plots.gpu_metrics_relations import draw as draw_relations  # noqa: PLC0415  # as above
    from analysis.plots.scene import NothingToDraw  # noqa: PLC0415  # as above
    from analysis.plots.style import written  # noqa: PLC0415  # as above

    said: dict[str, str] = {}
    for at, findings in enumerate(grids):
        for name, draw in (("gpu_metrics_grid", draw_grid), ("gpu_metrics_relations", draw_relations)):
            name += f"_{at + 1}" if at else ""  # noqa: PLW2901  # the same, of a second grid
            try:
                content = written(draw(findings), form)
            except NothingToDraw as reason:
                said[name] = f"not drawn: {str(reason).rstrip('.')}."
                continue
            path = folder / f"{name}.{form}"
            write_whole(path, content)
            said[name] = str(path)
    return said


def tables(grids: Sequence[Findings], folder: Path) -> dict[str, str]:
    """Write each statistic of every grid's own cells."""
    said: dict[str, str] = {}
    for at, findings in enumerate(grids):
        for statistic, table in findings.tables.items():
            path = folder / f"{statistic}{f'_{at + 1}' if at else ''}.csv"
            write_whole(path, csv_tables.written(table).encode())
            said[path.stem] = str(path)
    return said
