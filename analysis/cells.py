"""One row per cell: the measurements of saved runs, as one pandas frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from .terms import Cell, Run

PLACE = (
    "run",
    "study",
    "workload",
    "tweakset",
    "block",
    "order",
    "node",
    "outcome",
    "reason",
    "started_utc",
)

Figures = Mapping[str, float]


def cells(
    runs: Iterable[Run], figures: Callable[[Run, Cell], Figures | None] | None = None
) -> pd.DataFrame:
    """Lay out the cells of saved runs, one row per cell, in the order in which they ran.

    Columns:
        run, study, workload, tweakset, block, order, node, outcome, reason, started_utc: identify
        the cell each metric by its name, with its unit (`step_time_median_s`); missing where the
        cell was not measured
        param.NAME: a parameter of the workload
        setting.KEY: the value in force, as read back from the kernel
        telemetry.NAME: a statistic of a telemetry column over the measured steps
        machine.NAME: a fact about the machine that has a single value

    `figures` adds a study's own figures per cell, by name; None omits the cell.

    Example:
        >>> frame = cells([load("exp1.json")])
        >>> frame.groupby(["workload", "tweakset"])["step_time_median_s"].median()

    """
    import pandas as pd

    rows = []
    for run in runs:
        machine = {
            f"machine.{name}": value
            for name, value in run.machine.items()
            if isinstance(value, str | int | float)
        }
        for cell in sorted(run.cells, key=lambda cell: cell.order):
            own = {} if figures is None else figures(run, cell)
            if own is not None:
                rows.append(_row(run, cell) | machine | dict(own))
    return pd.DataFrame(rows, columns=None if rows else [*PLACE])


def _row(run: Run, cell: Cell) -> dict[str, object]:
    place = {name: getattr(cell, name) for name in PLACE[1:]}
    params = run.workloads[cell.workload].params if cell.workload in run.workloads else {}
    in_force = cell.applied.observed if cell.applied is not None else {}
    return {
        "run": run.run_id,
        **place,
        **cell.metrics,
        **{f"param.{name}": value for name, value in params.items()},
        **{f"setting.{key}": value for key, value in in_force.items()},
        **{f"telemetry.{name}": value for name, value in cell.telemetry.items()},
    }
