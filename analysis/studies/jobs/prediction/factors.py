"""What a saved cell says of the conditions it ran under: its variant's parameters, tweak set or monitor, design levels, node, kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.terms import Cell, Run

AGAIN = "stock-again"
KERNEL = "kernel_release"  # of one machine nothing else changes from run to run
FOUND = "as found"


def of_cell(run: Run, cell: Cell) -> dict[str, float | str]:
    """Answer the factors of a cell. Parameters that are lists or objects are none: what they say, the workload's name says."""
    workload = run.workloads.get(cell.workload)
    found: dict[str, float | str] = {"workload": cell.workload.partition(":")[0]}
    found |= plain(workload.params if workload else {})
    found |= _arm(run, cell)
    if cell.node:
        found["machine"] = cell.node
    return found | plain({KERNEL: run.machine.get(KERNEL)})


def plain(said: Mapping[str, object], before: str = "") -> dict[str, float | str]:
    """Keep what is a number or a text; a text that is a number is one, and yes and no are names."""
    made: dict[str, float | str] = {}
    for name, value in said.items():
        if isinstance(value, bool):
            made[before + name] = "yes" if value else "no"
        elif isinstance(value, int | float) and math.isfinite(value):
            made[before + name] = float(value)
        elif isinstance(value, str) and value:
            made[before + name] = typed(value)
    return made


def typed(text: str) -> float | str:
    """Read a number out of a text that is one."""
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) and "_" not in text else text


def named(factors: Mapping[str, float | str], without: frozenset[str] = frozenset()) -> str:
    """Name a configuration by its factors, the same for the same."""
    said = (
        f"{name}={value}" if isinstance(value, str) else f"{name}={value:g}"
        for name, value in sorted(factors.items())
        if name not in without
    )
    return " ".join(said)


def _arm(run: Run, cell: Cell) -> dict[str, float | str]:
    """The tweak set by name, or its levels where a design took it apart; a copy of the untouched machine is the untouched machine."""
    name = run.baseline if cell.tweakset == AGAIN else cell.tweakset
    if cell.monitor:
        base = cell.monitor.get("base")
        params = cell.monitor.get("params")
        return {"monitor": str(base or "none")} | plain(params if isinstance(params, dict) else {}, "monitor.")
    if not run.design.points:
        return {"tweakset": name}
    point = run.design.points.get(name)
    if point is None and name != run.baseline:
        return {"tweakset": name}
    levels = point.levels if point else {}
    return {one.name: FOUND if (level := levels.get(one.name)) is None else level for one in run.design.factors}
