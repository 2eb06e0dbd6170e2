"""Grids as one answer: the findings in sentences, both metrics of the SMs over each grid, then every cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table, Word, bullets, together
from control.names import first_few

from .checks import NEAR, ROUNDING
from .findings import HIGH_UTILIZATION, LOW_SMACT, LOW_SMOCC, Findings, FittedLine, allocated_mib, equation
from .grid import (
    ACTIVE,
    DRAM,
    GRACT,
    LABELS,
    MAX,
    MEAN,
    MEDIAN,
    MEMORY_MIB,
    MEMORY_UTILIZATION,
    METRICS,
    SMACT,
    SMOCC,
    STATISTICS,
    TENSOR,
    UTILIZATION,
    CellTable,
    GridCell,
    by_size,
    idle,
    named,
    statistics,
)

if TYPE_CHECKING:
    from .sources import Sources

FEW = 4
CLOSE_R2 = 0.8
SHARES_ALONE = 2  # bounds, where one metric of all was recorded
ACROSS = 12  # numbers of blocks beside one another
TOGETHER = ((UTILIZATION, GRACT), (SMACT, SMOCC), (MEMORY_MIB, MEMORY_UTILIZATION), (TENSOR, DRAM))
ALWAYS = {UTILIZATION, GRACT, SMACT, SMOCC}
ASIDE = 0.05  # what stays below it everywhere has a sentence and no table
MISSING = Word("–")  # among figures that are there
IN_PERCENT = {UTILIZATION, MEMORY_UTILIZATION}
HEADS = {UTILIZATION: "util %", MEMORY_UTILIZATION: "mem util %", MEMORY_MIB: "used MiB"}
SIZE = (Column("blocks", "blocks"), Column("threads", "threads"))
LEGEND = (
    ("n", "samples, of each run where they differ; figures are means over runs. Idle: before and after the active part."),
    ("active", "mean of the longest stretch in which something ran (GRACT above 0); the others are of all samples."),
    ("8bt", "what the kernel allocates: two arrays of float, in MiB."),
)


def answer(sources: Sources, files: Mapping[str, str] | None = None, *, brief: bool = False) -> Answer:
    """Return the answer; `files` are pictures and tables that were written, or why one was not. `brief` has no figures of single cells."""
    whole = together([_of_grid(findings, brief=brief) for findings in sources.grids])
    written = [Section("", [Line(f"{name}: {text}") for name, text in files.items()])] if files else []
    data = {"grids": [_grid(findings) for findings in sources.grids], "pictures": dict(files or {})}
    return replace(
        whole,
        sections=[*whole.sections, *written],
        legend=LEGEND,
        data=data,
        rows=_every_figure(sources.grids),
        refused=list(sources.refused),
    )


def _of_grid(findings: Findings, *, brief: bool) -> Answer:
    main = main_sentences(findings)
    others = [sentence for sentence in sentences(findings) if sentence not in main]
    title, *rest = [*main, *heading(findings)]
    return Answer(
        title,
        findings=[Line(text, tone="" if text in main else "quiet") for text in rest],
        sections=[
            Section("", bullets(others)),
            *(Section("", [table]) for metric in (SMACT, SMOCC) for table in _matrices(findings.tables[ACTIVE], metric)),
            *(Section("", [table]) for table in ([] if brief else _tables(findings))),
        ],
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
            f"{LABELS[metric]} ({figures.label}): threads a block down, blocks across",
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
    return max((row[metric] for row in findings.tables[MAX].rows.values() if metric in row), default=-1.0)


def _of_cells(findings: Findings, metrics: Sequence[str]) -> Table:
    columns = [*SIZE, Column("n"), Column("idle"), *([Column("8bt\nMiB", write="{:.2f}".format)] if MEMORY_MIB in metrics else [])]
    for metric in metrics:
        write = "{:.1f}".format if metric in IN_PERCENT or metric == MEMORY_MIB else share
        heads = [f"{HEADS.get(metric, LABELS[metric])}\n{MEAN}", *(f"\n{statistic}" for statistic in (MEDIAN, MAX, ACTIVE))]
        columns += [Column(head, f"{metric}_{statistic}", write) for head, statistic in zip(heads, STATISTICS, strict=True)]
    rows = []
    for size, cells in by_size(findings.grid.cells).items():
        allocated = [allocated_mib(size)] if MEMORY_MIB in metrics else []
        figures = [findings.tables[statistic].rows.get(size, {}).get(metric) for metric in metrics for statistic in STATISTICS]
        rows.append([*size, *_counts(cells), *allocated, *(MISSING if figure is None else figure for figure in figures)])
    return Table(columns, rows)


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
        [findings.grid.run.origin, *size, *(findings.tables[statistic].rows.get(size, {}).get(metric) for metric, statistic in figures)]
        for findings in grids
        for size in by_size(findings.grid.cells)
    ]
    return Table(columns, rows)


def _grid(findings: Findings) -> dict[str, object]:
    """One grid for programs: names and units are those of the terms; what is missing is null or absent, with its reason beside it."""
    grid = findings.grid
    return {
        "origin": grid.run.origin,
        "run_id": grid.run.run_id,
        "chip": grid.chip,
        "notes": grid.notes,
        "cells": [_cell(cell) for cell in grid.cells],
        "misled": findings.misled,
        "lines": (*findings.lines, *([findings.memory] if findings.memory else []), *findings.by_threads),
        "courses": [{**asdict(course), "dip": course.dip, "table": findings.tables[ACTIVE].label} for course in findings.courses],
        "spread_of_runs": dict(findings.spread),
        "bounds": findings.bounds,
        "predictions": findings.predictions,
        "did_not_run_what_others_ran": {
            "launches": [{"size": size, "launches": count} for size, count in findings.launches.items()],
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
        "logs": [{"source": log.source, "gpu": log.gpu, "samples": len(log)} for log in cell.logs],
        "samples_before": before,
        "samples_active": active,
        "samples_after": after,
        "allocated_mib": allocated_mib(cell.size),
        "work": cell.work,
        "metrics": {metric: statistics(cell, metric) for metric in METRICS if statistics(cell, metric)},
        "missing": dict(cell.missing),
    }


# The findings in sentences: most important first, each with how many cells it stands on.


def share(value: float | None) -> str:
    """Write a share: `.226`, `1.000`; a dash for what is missing."""
    return "–" if value is None else f"{value:.3f}".removeprefix("0") if value >= 0 else f"{value:.3f}"


def heading(findings: Findings) -> list[str]:
    """Say what was looked at: how many cells of what, on which GPU, and what else must be known."""
    grid = findings.grid
    sizes = {cell.size for cell in grid.cells}
    runs = f" in {len(grid.cells)} runs" if len(grid.cells) > len(sizes) else ""
    lines = [f"{grid.run.origin}: {len(sizes)} cells of blocks × threads{runs}"]
    chip = grid.chip
    of = f"{chip.sms} SMs ({chip.source})" if chip.sms is not None else f"SMs unknown: {chip.missing}"
    lines.append(f"{chip.name or 'GPU unknown'}, {of}" if chip.name else of)
    return [*lines, *(f"{note[0].upper()}{note[1:]}." for note in grid.notes)]


def main_sentences(findings: Findings) -> list[str]:
    """The answer: whether utilisation misleads, whether bounds hold, and whether each cell ran what the others ran."""
    return [*list(_misled(findings))[:1], *list(_bounds(findings))[:1], *list(_work(findings))[:1]]


def sentences(findings: Findings) -> list[str]:
    """Write every finding, in the order in which a reader wants them."""
    return [
        *_work(findings),
        *_misled(findings),
        *_lines(findings),
        *_courses(findings),
        *_memory(findings),
        *_prediction(findings),
        *_spread(findings),
        *_bounds(findings),
    ]


def _misled(findings: Findings) -> Iterator[str]:
    misled = findings.misled
    if misled is None:
        return
    gract = f", GRACT at least {share(misled.least_gract)}" if misled.least_gract is not None else ""
    verdict = "Utilisation misleads" if misled.busy_low_smact else "Utilisation and SMACT"
    yield (
        f"{verdict}: it reaches {HIGH_UTILIZATION:g} % in {misled.busy} of {misled.cells} cells (at least"
        f" {misled.least_utilization:.0f} %, mean {misled.mean_utilization:.2f} %{gract}); in {misled.busy_low_smact} of these SMACT"
        f" stays below {share(LOW_SMACT)}, in {misled.busy_low_smocc} SMOCC below {share(LOW_SMOCC)} ({misled.table})."
    )
    if misled.busy_low_smact:
        values = misled.example_values
        shares = ", ".join(f"{LABELS[metric]} {share(values[metric])}" for metric in (GRACT, SMACT, SMOCC) if metric in values)
        yield f"{named(misled.example)}: utilisation {values[UTILIZATION]:.0f} %, {shares}."


# By what is fitted on what: a sentence where the line is close, and where it is loose.
RELATIONS = {
    (UTILIZATION, f"100 × {GRACT}"): ("GRACT says what utilisation says", "GRACT and utilisation say different things"),
    (GRACT, SMACT): ("GRACT tells SMACT here", "GRACT says little of SMACT"),
    (SMACT, SMOCC): ("SMOCC follows SMACT", "SMOCC follows SMACT loosely"),
}


def _lines(findings: Findings) -> Iterator[str]:
    for (x, y), (close, loose) in RELATIONS.items():
        lines = [line for line in findings.lines if (line.x, line.y) == (x, y)]
        known = [line.r2 for line in lines if line.r2 is not None]
        if known:
            yield f"{close if min(known) >= CLOSE_R2 else loose}: {_equations(lines)}."
        elif lines:
            yield f"No line of {LABELS[y.rpartition(' ')[2]]} on {LABELS[x]} can be fitted: {lines[0].missing} ({lines[0].table})."
    bundle = [line for line in findings.by_threads if line.r2 is not None and line.slope is not None]
    if len(bundle) > 1:
        low, high = bundle[0], bundle[-1]
        yield (
            f"SMOCC on SMACT is a bundle of lines, one a block size: slope {low.slope:.3f} at {low.among} a block (R² {low.r2:.2f}),"
            f" {high.slope:.3f} at {high.among} (R² {high.r2:.2f}) ({findings.tables[ACTIVE].label})."
        )


def _equations(lines: Iterable[FittedLine]) -> str:
    return "; ".join(f"{equation(line)} ({line.table})" for line in lines)


def _courses(findings: Findings) -> Iterator[str]:
    for metric in (SMACT, SMOCC):
        courses = [course for course in findings.courses if course.metric == metric]
        dips = [(course.threads, *course.dip) for course in courses if course.dip is not None]
        name, over = LABELS[metric], f"({findings.tables[ACTIVE].label})"
        if courses and not dips:
            yield f"{name} never falls with more blocks, at any of {len(courses)} block sizes {over}."
        elif dips and metric == SMOCC:
            yield f"{name} is not monotone either, at {first_few([str(threads) for threads, *_ in dips], FEW)} threads a block."
        elif dips:
            deepest = "; ".join(f"{threads}: {share(high)} at {few}, {share(low)} at {many}" for threads, few, high, many, low in dips)
            yield (
                f"More blocks are not more {name}: it is not monotone at {len(dips)} of {len(courses)} block sizes {over}."
                f" Its deepest fall, by threads a block: {deepest} blocks."
            )


def _memory(findings: Findings) -> Iterator[str]:
    if findings.memory:
        yield f"Used memory grows by what the kernel allocates, 8 × blocks × threads bytes: {_equations([findings.memory])}."


def _work(findings: Findings) -> Iterator[str]:
    if findings.launches:
        several = [f"{named(size)}: {count:g}" for size, count in findings.launches.items()]
        yield f"Launches differ from most cells' in {len(several)}: {first_few(several, FEW)}."
    if findings.idle:
        idle = first_few([named(cell.size) for cell in findings.idle], FEW)
        yield f"No work was seen in {idle}: no sample has GRACT or utilisation above 0."


def _prediction(findings: Findings) -> Iterator[str]:
    every = findings.predictions
    if not every.cells:
        known = {size: row[SMACT] for size, row in findings.tables[ACTIVE].rows.items() if SMACT in row}
        sms = findings.grid.chip.sms
        full = [value for size, value in known.items() if sms is not None and size[0] >= sms]
        if full:
            yield (
                f"From {sms} blocks on SMACT could be 1; it is {share(min(full))} to {share(max(full))} in {len(full)} cells:"
                f" min(b, SMs) / SMs is a bound and predicts nothing without the duty, and {every.missing or 'that is not known'}."
            )
        return
    worst = max(every.cells, key=lambda cell: abs(cell.off))
    yield (
        f"SMACT is where the number of blocks puts it, within ± {share(NEAR)}, in {every.near} of {len(every.cells)} cells;"
        f" furthest off is {named(worst.size)}: {share(worst.observed)} where {share(worst.least)} to {share(worst.most)} was predicted."
    )


def _spread(findings: Findings) -> Iterator[str]:
    if findings.spread:
        most = {metric: f"{value:.1f} %" if metric == UTILIZATION else share(value) for metric, value in findings.spread.items()}
        each = ", ".join(f"{LABELS[metric]} {text}" for metric, text in most.items())
        yield f"Runs of one size differ by at most: {each} (active means)."


def _bounds(findings: Findings) -> Iterator[str]:
    bounds = findings.bounds
    if not bounds.tested:
        return
    places = dict.fromkeys(named(violation.size) for violation in bounds.violations)
    if bounds.violations:
        broken = first_few([*places], FEW)
        yield f"Bounds are broken in {len(places)} of {len(findings.tables[ACTIVE].rows)} cells (± {ROUNDING:g}): {broken}; see below."
    else:
        samples = max(count for bound, (count, _) in bounds.tested.items() if "share" not in bound or len(bounds.tested) == SHARES_ALONE)
        cells = len(findings.tables[ACTIVE].rows)
        yield f"All {len(bounds.tested)} bounds hold in all {cells} cells, in each of {samples} samples (± {ROUNDING:g})."
    for bound, reason in bounds.untested.items():
        yield f"Not tested: {bound}: {reason}."
