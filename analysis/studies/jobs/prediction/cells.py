"""Rows out of the cells of a saved run: one a cell, its response any metric, what it used, or a column of its telemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.plain import one_line

from . import factors
from .terms import Row

if TYPE_CHECKING:
    from analysis.terms import Cell, Run

USED = ("cpu_s", "wall_s", "energy_j", "peak_rss_bytes")


def responses(run: Run) -> list[str]:
    """Name what can be predicted of a run's cells, in the order in which a cell tells it."""
    found: dict[str, None] = {}
    for cell in run.cells:
        found |= dict.fromkeys([*cell.metrics, *(name for name in USED if name in cell.usage), *cell.telemetry])
    return list(found)


def primary(run: Run) -> str:
    """The metric that was declared before the run; of workloads that differ in it the first's."""
    for cell in run.cells:
        workload = run.workloads.get(cell.workload)
        if workload is not None and workload.primary is not None:
            return workload.primary.name
        return run.studies[cell.study].primary.name
    return "step_time_mean_s"


def rows(run: Run, response: str, left_out: list[str]) -> list[Row]:
    """Read every cell that was measured and tells the response; of the others how many, in `left_out`."""
    found, missing, reasons = [], 0, set()
    for cell in run.cells:
        value = _value(cell, response)
        if value is None:
            missing += 1
            reasons.add(_why(cell, response))
            continue
        own = factors.of_cell(run, cell)
        when = cell.block if cell.process is None else cell.process
        found.append(Row(factors.named(own), f"{run.run_id} block {when}", own, value))
    if missing:
        said = "; ".join(sorted(reasons)[:3])
        left_out.append(f"{run.origin}: {missing} of {len(run.cells)} cells tell no {response}: {said}.")
    return found


def _value(cell: Cell, response: str) -> float | None:
    if cell.outcome != "measured":
        return None
    for place in (cell.metrics, {name: cell.usage.get(name) for name in USED}, cell.telemetry):
        value = place.get(response)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _why(cell: Cell, response: str) -> str:
    if cell.outcome != "measured":
        return cell.outcome
    missing = cell.usage.get("missing")
    reason = missing.get(response) if isinstance(missing, dict) else None
    return one_line(reason or cell.telemetry_missing.get(response) or "not recorded", 200)
