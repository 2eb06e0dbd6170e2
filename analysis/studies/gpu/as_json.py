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


def as_json(result: Found, pictures: Mapping[str, str]) -> str:
    """Write everything that was found; samples are left in their files. `pictures` are files that were written, or why one was not."""
    said = {"grids": [_grid(grid) for grid in result.grids], "pictures": dict(pictures), "refused": list(result.refused)}
    return printable_json(said)


def _grid(findings: Findings) -> dict[str, object]:
    grid = findings.grid
    return {
        "origin": grid.origin,
        "run_id": grid.run.run_id if grid.run is not None else None,
        "chip": asdict(grid.chip),
        "notes": grid.notes,
        "ignored": grid.ignored,
        "cells": [_cell(cell) for cell in grid.cells],
        "tables": [_table(table) for table in grid.read],
        "agreements": [asdict(agreement) for agreement in findings.agreements],
        "misled": None if findings.misled is None else asdict(findings.misled),
        "lines": [asdict(line) for line in (*findings.lines, *findings.memory, *findings.by_threads)],
        "courses": [{**asdict(course), "dip": course.dip, "table": findings.over.label} for course in findings.courses],
        "spread_of_runs": dict(findings.spread),
        "bounds": asdict(findings.bounds),
        "predictions": asdict(findings.predictions),
        "did_not_run_what_others_ran": {
            "samples": [asdict(odd) for odd in findings.odd],
            "launches": [{"size": size, "launches": count} for size, count in findings.launches.items()],
            "uneven_logs": [asdict(uneven) for uneven in findings.uneven],
            "nothing_ran": [cell.place for cell in findings.idle],
        },
        "sentences": sentences(findings),
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


def _table(table: Table) -> dict[str, object]:
    rows = [{"blocks": size[0], "threads": size[1], **row} for size, row in sorted(table.rows.items())]
    return {"statistic": table.statistic, "label": table.label, "rows": rows}
