"""Grids for programs: names and units are those of the terms; what is missing is null or absent, with its reason beside it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.plain import printable_json

from .relations import allocated_mib
from .sampled import idle, statistics
from .sentences import sentences
from .terms import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .asked import Found
    from .findings import Findings
    from .terms import Cell, Table


def as_json(found: Found, pictures: Mapping[str, str]) -> str:
    """Write everything that was found; samples are left in their files. `pictures` are files that were written, or why one was not."""
    said = {"grids": [_grid(one) for one in found.grids], "pictures": dict(pictures), "refused": list(found.refused)}
    return printable_json(said)


def _grid(found: Findings) -> dict[str, object]:
    grid = found.grid
    return {
        "origin": grid.origin,
        "run_id": grid.run.run_id if grid.run is not None else None,
        "chip": asdict(grid.chip),
        "notes": grid.notes,
        "ignored": grid.ignored,
        "cells": [_cell(cell) for cell in grid.cells],
        "tables": [_table(one) for one in grid.read],
        "agreements": [asdict(one) for one in found.agreements],
        "misled": None if found.misled is None else asdict(found.misled),
        "lines": [asdict(one) for one in (*found.lines, *found.memory, *found.by_threads)],
        "courses": [{**asdict(one), "dip": one.dip, "table": found.over.label} for one in found.courses],
        "spread_of_runs": dict(found.spread),
        "bounds": asdict(found.bounds),
        "predictions": asdict(found.predictions),
        "did_not_run_what_others_ran": {
            "samples": [asdict(one) for one in found.odd],
            "launches": [{"size": size, "launches": count} for size, count in found.launches.items()],
            "uneven_logs": [asdict(one) for one in found.uneven],
            "nothing_ran": [cell.place for cell in found.idle],
        },
        "sentences": sentences(found),
    }


def _cell(cell: Cell) -> dict[str, object]:
    before, active, after = idle(cell)
    return {
        "place": cell.place,
        "blocks": cell.blocks,
        "threads": cell.threads,
        "device": cell.device,
        "logs": [{"source": log.source, "gpu": log.gpu, "samples": len(log), "others_busy": log.others} for log in cell.logs],
        "samples_before": before,
        "samples_active": active,
        "samples_after": after,
        "allocated_mib": allocated_mib(cell.size),
        "work": asdict(cell.work),
        "metrics": {metric: statistics(cell, metric) for metric in METRICS if statistics(cell, metric)},
        "missing": dict(cell.missing),
    }


def _table(one: Table) -> dict[str, object]:
    rows = [{"blocks": size[0], "threads": size[1], **row} for size, row in sorted(one.rows.items())]
    return {"statistic": one.statistic, "label": one.label, "rows": rows}
