"""Grids as one answer: what the metrics say, both metrics of the SMs over each grid, then every cell."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table, Word, bullets, together

from .relations import allocated_mib
from .sampled import idle, statistics
from .sentences import heading, main_sentences, sentences, share
from .terms import (
    ACTIVE,
    DRAM,
    GRACT,
    MAX,
    MEAN,
    MEDIAN,
    MEMORY_MIB,
    MEMORY_UTILIZATION,
    METRICS,
    SAID,
    SMACT,
    SMOCC,
    STATISTICS,
    TENSOR,
    UTILIZATION,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .findings import Findings
    from .sources import Sources
    from .terms import CellTable, GridCell, Size

ACROSS = 12  # numbers of blocks beside one another
LINES = 8  # lines of a log that could not be read
TOGETHER = ((UTILIZATION, GRACT), (SMACT, SMOCC), (MEMORY_MIB, MEMORY_UTILIZATION), (TENSOR, DRAM))
ALWAYS = {UTILIZATION, GRACT, SMACT, SMOCC}
ASIDE = 0.05  # what stays below it everywhere has a sentence and no table
MISSING = Word("–")  # among figures that are there
IN_PERCENT = {UTILIZATION, MEMORY_UTILIZATION}
HEADS = {UTILIZATION: "util %", MEMORY_UTILIZATION: "mem util %", MEMORY_MIB: "used MiB"}
SIZE = (Column("blocks", "blocks"), Column("threads", "threads"))
LEGEND = (
    ("n", "samples, of each log (or run) where they differ; figures are means over runs. Idle: before and after the active part."),
    ("active", "mean of the longest stretch in which something ran (GRACT above 0); the others are of the whole log."),
    ("8bt", "what the kernel allocates: two arrays of float, in MiB."),
)


def answer(sources: Sources, files: Mapping[str, str]) -> Answer:
    """Everything that was found; `files` are pictures and tables that were written, or why one was not."""
    whole = together([_of_grid(findings) for findings in sources.grids])
    written = [Section("", [Line(f"{name}: {text}") for name, text in files.items()])] if files else []
    data = {"grids": [_grid(findings) for findings in sources.grids], "pictures": dict(files)}
    return replace(
        whole,
        sections=[*whole.sections, *written],
        legend=LEGEND,
        data=data,
        rows=_every_figure(sources.grids),
        refused=list(sources.refused),
    )


def _of_grid(findings: Findings) -> Answer:
    first, *rest = heading(findings)
    ignored = findings.grid.ignored
    more = [f"and {len(ignored) - LINES} lines more"] if len(ignored) > LINES else []
    main = main_sentences(findings)
    others = [sentence for sentence in sentences(findings) if sentence not in main]
    return Answer(
        first,
        findings=[*map(Line, main), *(Line(text, tone="quiet") for text in rest)],
        sections=[
            Section("", bullets(others)),
            *(Section("", [table]) for metric in (SMACT, SMOCC) for table in _matrices(findings.over, metric)),
            *(Section("", [table]) for table in _tables(findings)),
        ],
        warnings=[f"left out: {line}" for line in [*ignored[:LINES], *more]],
    )


def _matrices(figures: CellTable, metric: str) -> Iterator[Table]:
    """One metric as the kernels were laid out: threads down, blocks across, in parts of equal width."""
    rows = {size: row[metric] for size, row in figures.rows.items() if metric in row}
    blocks = sorted({size[0] for size in rows})
    across = max(1, -(-len(blocks) // max(1, -(-len(blocks) // ACROSS))))
    for start in range(0, len(blocks), across):
        part = blocks[start : start + across]
        threads = sorted({size[1] for size in rows if size[0] in part})
        yield Table(
            [Column("", "threads"), *(Column(str(number), f"blocks_{number}", share) for number in part)],
            [[count, *(rows.get((number, count), MISSING) for number in part)] for count in threads],
            f"{SAID[metric]} ({figures.label}): threads a block down, blocks across",
        )


def _tables(findings: Findings) -> Iterator[Table]:
    for metrics in TOGETHER:
        there = [metric for metric in metrics if peak(findings, metric) > (-1 if metric in ALWAYS else ASIDE)]
        if there:
            yield _of_cells(findings, there)
    predicted = findings.predictions.cells
    if predicted:
        yield Table(
            [
                *SIZE,
                *(Column(name, f"smact_{name}", share) for name in ("duty", "least", "most", "seen")),
                Column("off", "off", "{:+.3f}".format),
            ],
            [[*one.size, one.duty, one.least, one.most, one.observed, one.off] for one in predicted],
            "SMACT as predicted, b / (SMs × ⌈b / SMs⌉) to min(b, SMs) / SMs, × duty, and as seen (median)",
        )
    if findings.bounds.violations:
        heads = [Column("bound", left=True), Column("cell", left=True), *(Column(name) for name in ("samples", "of"))]
        yield Table(
            [*heads, *(Column(name, write="{:.3f}".format) for name in ("furthest", "limit"))],
            [[one.bound, one.place, one.count, one.of, one.worst, one.limit] for one in findings.bounds.violations],
            "Bounds that were broken",
        )


def peak(findings: Findings, metric: str) -> float:
    """The highest sample of a metric in any cell; -1 where it was not recorded."""
    table = findings.tables.get(MAX)
    return max((row[metric] for row in table.rows.values() if metric in row), default=-1.0) if table is not None else -1.0


def _of_cells(findings: Findings, metrics: Sequence[str]) -> Table:
    columns = [*SIZE, Column("n"), Column("idle"), *([Column("8bt\nMiB", write="{:.2f}".format)] if MEMORY_MIB in metrics else [])]
    for metric in metrics:
        write = "{:.1f}".format if metric in IN_PERCENT or metric == MEMORY_MIB else share
        heads = [f"{HEADS.get(metric, SAID[metric])}\n{MEAN}", *(f"\n{statistic}" for statistic in (MEDIAN, MAX, ACTIVE))]
        columns += [Column(head, f"{metric}_{statistic}", write) for head, statistic in zip(heads, STATISTICS, strict=True)]
    rows = []
    for size, cells in _by_size(findings).items():
        allocated = [allocated_mib(size)] if MEMORY_MIB in metrics else []
        figures = [findings.tables[statistic].rows.get(size, {}).get(metric) for metric in metrics for statistic in STATISTICS]
        rows.append([*size, *_counts(cells), *allocated, *(MISSING if figure is None else figure for figure in figures)])
    return Table(columns, rows)


def _by_size(findings: Findings) -> dict[Size, list[GridCell]]:
    result: dict[Size, list[GridCell]] = {}
    for cell in findings.grid.cells:
        result.setdefault(cell.size, []).append(cell)
    return result


def _counts(cells: Sequence[GridCell]) -> tuple[str, str]:
    """How many samples the runs of one size have, and how many of them lie before and after the active part."""
    counts = "/".join(dict.fromkeys(str(len(log)) for log in cells[0].logs))
    if len(cells) > 1:
        each = sorted(max(map(len, cell.logs)) for cell in cells)
        counts = f"{len(cells)}×{each[0]}" if each[0] == each[-1] else f"{len(cells)}×{each[0]}-{each[-1]}"
    ends = [idle(cell) for cell in cells]
    return counts, f"{sum(before for before, _, _ in ends)}+{sum(after for _, _, after in ends)}"


def _every_figure(grids: Sequence[Findings]) -> Table:
    """Each statistic of every metric of every cell, for programs."""
    figures = [(metric, statistic) for metric in METRICS for statistic in STATISTICS]
    columns = [Column("grid"), *SIZE, *(Column(f"{metric}_{statistic}") for metric, statistic in figures)]
    rows = [
        [findings.grid.origin, *size, *(findings.tables[statistic].rows.get(size, {}).get(metric) for metric, statistic in figures)]
        for findings in grids
        for size in _by_size(findings)
    ]
    return Table(columns, rows)


def _grid(findings: Findings) -> dict[str, object]:
    """One grid for programs: names and units are those of the terms; what is missing is null or absent, with its reason beside it."""
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


def _cell(cell: GridCell) -> dict[str, object]:
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


def _table(table: CellTable) -> dict[str, object]:
    rows = [{"blocks": size[0], "threads": size[1], **row} for size, row in sorted(table.rows.items())]
    return {"statistic": table.statistic, "label": table.label, "rows": rows}
