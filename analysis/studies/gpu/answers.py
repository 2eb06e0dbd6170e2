"""Grids as an answer: findings in sentences, both SM metrics over each grid, then every cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from analysis.answer import Answer, Column, Line, Section, Table, Word, bullets, together
from analysis.wording import counted
from control.names import first_few

from .findings import (
    HIGH_UTILIZATION,
    LOW_SMACT,
    LOW_SMOCC,
    NEAR,
    ROUNDING,
    Findings,
    allocated_mib,
)
from .grid import (
    ACTIVE,
    DRAM,
    GRACT,
    LABELS,
    MAX,
    MEMORY_MIB,
    MEMORY_UTILIZATION,
    METRICS,
    SMACT,
    SMOCC,
    STATISTICS,
    TENSOR,
    UTILIZATION,
    GridCell,
    named,
)

FEW = 4
CLOSE_R2 = 0.8
VISIBLE = 0.0005  # of a share written with three decimals
SHARES_ALONE = 2  # number of bounds if only one metric was recorded
ACROSS = 12  # columns of blocks side by side
TOGETHER = ((UTILIZATION, GRACT), (SMACT, SMOCC), (MEMORY_MIB, MEMORY_UTILIZATION), (TENSOR, DRAM))
ALWAYS = {UTILIZATION, GRACT, SMACT, SMOCC}
ASIDE = 0.05  # a metric that stays below everywhere gets a sentence instead of a table
MISSING = Word("–")  # a missing figure in a row with others
IN_PERCENT = {UTILIZATION, MEMORY_UTILIZATION}
HEADS = {UTILIZATION: "util %", MEMORY_UTILIZATION: "mem util %", MEMORY_MIB: "used MiB"}
SIZE = (Column("blocks", "blocks"), Column("threads", "threads"))
LEGEND = (
    ("n", "samples, per run where there are several runs; figures are means over runs."),
    ("idle", "samples before and after the active part."),
    (
        "active",
        (
            "mean of the longest stretch in which something ran (GRACT above 0); relations, falls "
            "and maps use it."
        ),
    ),
    ("misleads", "based on the peaks of each cell."),
)
ALLOCATED = ("8bt", "the kernel's allocation: two arrays of float, 8 bytes × blocks × threads.")


def answer(
    grids: Sequence[Findings],
    refused: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> Answer:
    """Return the answer; `files` has each picture's file or error. `brief` omits single cells."""
    whole = together([_of_grid(findings, brief=brief) for findings in grids])
    drawn = (
        [Section("", [Line(f"{name}: {text}") for name, text in files.items()])] if files else []
    )
    figures = [f"{metric}_{statistic}" for metric in METRICS for statistic in STATISTICS]
    rows = [
        [
            findings.grid.run.origin,
            *size,
            *(None if value != value else value for value in row),  # noqa: PLR0124  # NaN
        ]
        for findings in grids
        for size, *row in findings.grid.table[figures].itertuples(name=None)
    ]
    return replace(
        whole,
        sections=[*whole.sections, *drawn],
        legend=[*LEGEND, *([ALLOCATED] if any(findings.memory for findings in grids) else [])],
        data={"grids": [_document(findings) for findings in grids], "pictures": dict(files or {})},
        rows=Table([Column("grid"), *SIZE, *map(Column, figures)], rows),
        refused=list(dict.fromkeys(refused)),
    )


def _of_grid(findings: Findings, *, brief: bool) -> Answer:
    main = [line for lines in (_misled, _bounds, _work) for line in [*lines(findings)][:1]]
    others = [sentence for sentence in sentences(findings) if sentence not in main]
    title, *rest = [*main, *_heading(findings)]
    tables = [
        *_matrices(findings, SMACT),
        *_matrices(findings, SMOCC),
        *([] if brief else _tables(findings)),
    ]
    return Answer(
        title,
        findings=[Line(text, tone="" if text in main else "quiet") for text in rest],
        sections=[Section("", bullets(others)), *(Section("", [table]) for table in tables)],
    )


def _matrices(findings: Findings, metric: str) -> Iterator[Table]:
    """Yield tables of one metric: threads down, blocks across, in parts of equal width."""
    column = findings.grid.column(metric)
    blocks = sorted({size[0] for size in column})
    across = max(1, -(-len(blocks) // max(1, -(-len(blocks) // ACROSS))))
    for start in range(0, len(blocks), across):
        part = blocks[start : start + across]
        yield Table(
            [
                Column("", "threads"),
                *(Column(str(number), f"blocks_{number}", share) for number in part),
            ],
            [
                [threads, *(column.get((number, threads), MISSING) for number in part)]
                for threads in sorted({size[1] for size in column if size[0] in part})
            ],
            f"{LABELS[metric]} ({findings.grid.label(ACTIVE)}): threads per block down, blocks "
            "across",
        )


def _tables(findings: Findings) -> Iterator[Table]:
    for metrics in TOGETHER:
        shown = [
            metric
            for metric in metrics
            if max(findings.grid.column(metric, MAX).values(), default=-1)
            > (ASIDE, -1)[metric in ALWAYS]
        ]
        if shown:
            yield _of_cells(findings, shown)
    if predicted := findings.predictions.cells:
        columns = [
            Column(name, f"smact_{name}", share) for name in ("duty", "least", "most", "seen")
        ]
        yield Table(
            [*SIZE, *columns, Column("off", "off", "{:+.3f}".format)],
            [
                [*one.size, one.duty, one.least, one.most, one.observed, one.off]
                for one in predicted
            ],
            "SMACT as predicted, b / (SMs × ⌈b / SMs⌉) to min(b, SMs) / SMs, × duty, and as "
            "measured (median)",
        )
    if findings.bounds.violations:
        heads = [
            Column("bound", left=True),
            Column("cell", left=True),
            *(Column(name) for name in ("samples", "of")),
        ]
        yield Table(
            [*heads, *(Column(name, write="{:.3f}".format) for name in ("furthest", "limit"))],
            [
                [one.bound, one.place, one.count, one.of, one.worst, one.limit]
                for one in findings.bounds.violations
            ],
            "Violated bounds",
        )


def _of_cells(findings: Findings, metrics: Sequence[str]) -> Table:
    columns = [
        *SIZE,
        Column("n"),
        Column("idle"),
        *([Column("8bt\nMiB", write="{:.2f}".format)] if MEMORY_MIB in metrics else []),
    ]
    for metric in metrics:
        write = "{:.1f}".format if metric in IN_PERCENT or metric == MEMORY_MIB else share
        for statistic in STATISTICS:
            above = HEADS.get(metric, LABELS[metric]) if statistic == STATISTICS[0] else ""
            columns.append(Column(f"{above}\n{statistic}", f"{metric}_{statistic}", write))
    names = [f"{metric}_{statistic}" for metric in metrics for statistic in STATISTICS]
    rows: list[list[object]] = []
    for size, *figures in findings.grid.table[names].itertuples(name=None):
        allocated = [allocated_mib(size)] if MEMORY_MIB in metrics else []
        cells = [cell for cell in findings.grid.cells if cell.size == size]
        shown = [MISSING if figure != figure else figure for figure in figures]  # noqa: PLR0124
        rows.append([*size, *_counts(cells), *allocated, *shown])
    return Table(columns, rows)


def _counts(cells: Sequence[GridCell]) -> tuple[str, str]:
    """Return the samples of each run of one size, and those before and after the active part."""
    each = sorted(len(cell.samples) for cell in cells)
    span = f"{each[0]}" if each[0] == each[-1] else f"{each[0]}-{each[-1]}"
    before, after = (sum(cell.idle[end] for cell in cells) for end in (0, 2))
    return f"{len(cells)}×{span}" if len(cells) > 1 else span, f"{before}+{after}"


def _document(findings: Findings) -> dict[str, object]:
    """Return a grid for programs, with the names and units of the terms.

    A missing value is null or absent, with its reason beside it.
    """
    grid = findings.grid
    return {
        "origin": grid.run.origin,
        "run_id": grid.run.run_id,
        "chip": grid.chip,
        "notes": grid.notes,
        "cells": [_cell(cell) for cell in grid.cells],
        "misled": findings.misled,
        "lines": (
            *findings.lines,
            *([findings.memory] if findings.memory else []),
            *findings.by_threads,
        ),
        "courses": findings.courses,
        "spread_of_runs": findings.spread,
        "bounds": findings.bounds,
        "predictions": findings.predictions,
        "did_not_run_what_others_ran": {
            "launches": [
                {"size": size, "launches": count} for size, count in findings.launches.items()
            ],
            "nothing_ran": [cell.place for cell in findings.idle],
        },
        "sentences": sentences(findings),
    }


def _cell(cell: GridCell) -> dict[str, object]:
    before, active, after = cell.idle
    return {
        "place": cell.place,
        "blocks": cell.blocks,
        "threads": cell.threads,
        "device": cell.device,
        "samples_before": before,
        "samples_active": active,
        "samples_after": after,
        "allocated_mib": allocated_mib(cell.size),
        "work": dict(cell.work),
        "figures": cell.figures,
        "missing": dict(cell.missing),
    }


# The findings in sentences: most important first, each with its number of cells.


def share(value: float) -> str:
    """Write a share: `.226`, `1.000`."""
    return f"{value:.3f}".removeprefix("0")


def _heading(findings: Findings) -> list[str]:
    """Write the scope: number of cells, GPU, and notes."""
    grid, chip = findings.grid, findings.grid.chip
    runs = f" in {len(grid.cells)} runs" if len(grid.cells) > len(grid.table) else ""
    sms = (
        f"{chip.sms} SMs ({chip.source})"
        if chip.sms is not None
        else f"SMs unknown: {chip.missing}"
    )
    return [
        f"{grid.run.origin}: {len(grid.table)} cells of blocks × threads{runs}",
        f"{chip.name or 'GPU unknown'}, {sms}" if chip.name else sms,
        *(f"{note[0].upper()}{note[1:]}." for note in grid.notes),
    ]


def sentences(findings: Findings) -> list[str]:
    """Write every finding, in reading order."""
    parts = (_work, _misled, _lines, _courses, _memory, _prediction, _spread, _bounds)
    return [sentence for part in parts for sentence in part(findings)]


def _misled(findings: Findings) -> Iterator[str]:
    misled = findings.misled
    if misled is None:
        return
    verdict = "Utilisation misleads: it" if misled.busy_low_smact else "Utilisation"
    yield (
        f"{verdict} reaches {HIGH_UTILIZATION:g} % in {misled.busy} of {misled.cells} cells; of "
        "these,"
        f" SMACT stays below {share(LOW_SMACT)} in {misled.busy_low_smact},"
        f" SMOCC below {share(LOW_SMOCC)} in {misled.busy_low_smocc}."
    )
    if misled.busy_low_smact:
        values = misled.example_values
        shares = ", ".join(
            f"{LABELS[metric]} {share(values[metric])}"
            for metric in (GRACT, SMACT, SMOCC)
            if metric in values
        )
        yield f"{named(misled.example)}: utilisation {values[UTILIZATION]:.0f} %, {shares}."


# By response and predictor: a sentence for a close and for a loose relation.
RELATIONS = {
    (UTILIZATION, f"100 × {GRACT}"): (
        "GRACT follows utilisation",
        "GRACT follows utilisation loosely",
    ),
    (GRACT, SMACT): ("SMACT follows GRACT", "SMACT follows GRACT loosely"),
    (SMACT, SMOCC): ("SMOCC follows SMACT", "SMOCC follows SMACT loosely"),
}


def _lines(findings: Findings) -> Iterator[str]:
    none: dict[str, list[str]] = {}
    for line in findings.lines:
        close, loose = RELATIONS[line.x, line.y]
        if line.r2 is not None:
            yield f"{close if line.r2 >= CLOSE_R2 else loose}: {line}."
        else:
            pair = f"{LABELS[line.y.rpartition(' ')[2]]} on {LABELS[line.x]}"
            none.setdefault(line.missing or "", []).append(pair)
    for reason, pairs in none.items():
        yield f"No line can be fitted for {' or '.join(pairs)}: {reason}."
    bundle = [line for line in findings.by_threads if line.r2 is not None]
    if len(bundle) > 1:
        low, high = (
            f"{line.slope:.3f} at {line.among} per block (R² {line.r2:.2f})"
            for line in (bundle[0], bundle[-1])
        )
        yield f"SMOCC on SMACT has a different slope at each block size: {low}, {high}."


def _courses(findings: Findings) -> Iterator[str]:
    fell = False
    for metric in (SMACT, SMOCC):
        courses = [course for course in findings.courses if course.metric == metric]
        dips = [(course.threads, *course.dip) for course in courses if course.dip is not None]
        name, sizes = LABELS[metric], counted(len(courses), "thread count")
        if courses and not dips:
            yield f"{name} never falls with more blocks, at {sizes}."
        elif dips and fell:
            threads = first_few([str(threads) for threads, *_ in dips], FEW)
            yield f"{name} sometimes falls with more blocks, at {threads} threads per block."
        elif dips:
            falls = "; ".join(
                (
                    f"from {share(high)} at {few} blocks to {share(low)} at {many}, at {threads} "
                    "threads"
                )
                for threads, few, high, many, low in dips
            )
            yield f"{name} falls with more blocks at {len(dips)} of {sizes}: {falls}."
        fell = fell or bool(dips)


def _memory(findings: Findings) -> Iterator[str]:
    if findings.memory:
        yield f"Used memory on the kernel's allocation: {findings.memory}."


def _work(findings: Findings) -> Iterator[str]:
    if findings.launches:
        several = [f"{named(size)} ({count:g})" for size, count in findings.launches.items()]
        yield f"More or fewer kernels than in most cells: {first_few(several, FEW)}."
    if findings.idle:
        idle = first_few([named(cell.size) for cell in findings.idle], FEW)
        yield f"No work was observed in {idle}: no sample has GRACT or utilisation above 0."


def _prediction(findings: Findings) -> Iterator[str]:
    every = findings.predictions
    if every.cells:
        worst = max(every.cells, key=lambda cell: abs(cell.off))
        ends = " to ".join(dict.fromkeys([share(worst.least), share(worst.most)]))
        furthest = f"; furthest: {named(worst.size)}, {share(worst.observed)}, predicted {ends}"
        yield (
            f"SMACT is within ± {share(NEAR)} of its prediction in {every.near} of"
            f" {len(every.cells)} cells{furthest if abs(worst.off) >= VISIBLE else ''}."
        )
    elif every.missing:
        yield f"There is no prediction of SMACT: {every.missing}."


def _spread(findings: Findings) -> Iterator[str]:
    if findings.spread:
        most = {
            metric: f"{value:.1f} %" if metric == UTILIZATION else share(value)
            for metric, value in findings.spread.items()
        }
        each = ", ".join(f"{LABELS[metric]} {text}" for metric, text in most.items())
        yield f"Runs of one size differ by at most: {each}."


def _bounds(findings: Findings) -> Iterator[str]:
    bounds, cells = findings.bounds, len(findings.grid.table)
    if not bounds.tested:
        return
    if bounds.violations:
        places = dict.fromkeys(named(violation.size) for violation in bounds.violations)
        yield (
            f"Bounds are violated in {len(places)} of {cells} cells (± {ROUNDING:g}): "
            f"{first_few([*places], FEW)}; see below."
        )
    else:
        samples = max(
            count
            for bound, (count, _) in bounds.tested.items()
            if "share" not in bound or len(bounds.tested) == SHARES_ALONE
        )
        yield (
            f"All {len(bounds.tested)} bounds hold in all {cells} cells, in each of {samples} "
            f"samples (± {ROUNDING:g})."
        )
    for bound, reason in bounds.untested.items():
        yield f"Not tested: {bound}: {reason}."
