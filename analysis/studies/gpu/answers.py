"""Grids as an answer: findings in sentences, both SM metrics over each grid, then every cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from analysis.answer import Answer, Column, Line, Section, Table, Word, bullets, together
from analysis.wording import counted
from control.names import first_few

from .findings import HIGH_UTILIZATION, LOW_SMACT, LOW_SMOCC, NEAR, ROUNDING, Findings
from .grid import (
    ACTIVE,
    GRACT,
    LABELS,
    METRICS,
    SMACT,
    SMOCC,
    STATISTICS,
    UTILIZATION,
    Size,
    named,
)

FEW = 4
CLOSE_R2 = 0.8
VISIBLE = 0.0005
ACROSS = 12
MISSING = Word("–")
SIZE = (Column("blocks", "blocks"), Column("threads", "threads"))
LEGEND = (
    (
        "active",
        (
            "mean of the longest stretch in which something ran (GRACT above 0); relations, falls "
            "and maps use it."
        ),
    ),
    ("misleads", "based on the peaks of each cell."),
)


def answer(
    grids: Sequence[Findings],
    refused: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> Answer:
    whole = together([_of_grid(findings, brief=brief) for findings in grids])
    drawn = [Line(f"{name}: {text}") for name, text in (files or {}).items()]
    figures = [f"{metric}_{statistic}" for metric in METRICS for statistic in STATISTICS]
    rows = [
        [findings.grid.run.origin, *size, *row]
        for findings in grids
        for size, row in _rows(findings, figures, None)
    ]
    return replace(
        whole,
        sections=[*whole.sections, *([Section("", drawn)] if drawn else [])],
        legend=LEGEND,
        data={"grids": [_document(findings) for findings in grids], "pictures": dict(files or {})},
        rows=Table([Column("grid"), *SIZE, *map(Column, figures)], rows),
        refused=list(dict.fromkeys(refused)),
    )


def _rows(
    findings: Findings, names: Sequence[str], missing: object
) -> Iterator[tuple[Size, list[object]]]:
    for size, *row in findings.grid.table[[*names]].itertuples(name=None):
        yield size, [missing if math.isnan(value) else value for value in row]


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
    if findings.predictions:
        names = ("duty", "least", "most", "seen")
        columns = [*SIZE, *(Column(name, f"smact_{name}", share) for name in names)]
        yield Table(
            [*columns, Column("off", "off", "{:+.3f}".format)],
            [
                [*one.size, one.duty, one.least, one.most, one.observed, one.off]
                for one in findings.predictions
            ],
            "SMACT as predicted, b / (SMs × ⌈b / SMs⌉) to min(b, SMs) / SMs, × duty, and as "
            "measured (median)",
        )
    if findings.bounds.violations:
        heads = [Column("bound", left=True), Column("cell", left=True), Column("samples")]
        heads += [
            Column("of"),
            *(Column(name, write="{:.3f}".format) for name in ("furthest", "limit")),
        ]
        rows = [
            [one.bound, one.place, one.count, one.of, one.worst, one.limit]
            for one in findings.bounds.violations
        ]
        yield Table(heads, rows, "Violated bounds")


def _document(findings: Findings) -> dict[str, object]:
    grid = findings.grid
    return {
        "origin": grid.run.origin,
        "run_id": grid.run.run_id,
        "chip": grid.chip,
        "notes": grid.notes,
        "cells": [
            {
                "place": cell.place,
                "blocks": cell.blocks,
                "threads": cell.threads,
                "device": cell.device,
                "samples": dict(zip(("before", "active", "after"), cell.idle, strict=True)),
                "work": dict(cell.work),
                "figures": cell.figures,
                "missing": dict(cell.missing),
            }
            for cell in grid.cells
        ],
        "misled": findings.misled,
        "lines": (*findings.lines, *findings.by_threads),
        "falls": [
            {"metric": metric, "threads": threads, "dip": dip}
            for (metric, threads), dip in findings.dips.items()
        ],
        "bounds": findings.bounds,
        "predictions": findings.predictions,
        "launches": [
            {"size": size, "launches": count} for size, count in findings.launches.items()
        ],
        "nothing_ran": [cell.place for cell in findings.idle],
        "sentences": sentences(findings),
    }


# The findings in sentences: most important first, each with its number of cells.


def share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _heading(findings: Findings) -> list[str]:
    grid, chip = findings.grid, findings.grid.chip
    runs = f" in {len(grid.cells)} runs" if len(grid.cells) > len(grid.table) else ""
    sms = f"{chip.sms} SMs ({chip.source})" if chip.sms else f"SMs unknown: {chip.missing}"
    return [
        f"{grid.run.origin}: {len(grid.table)} cells of blocks × threads{runs}",
        f"{chip.name or 'GPU unknown'}, {sms}",
        *(f"{note[0].upper()}{note[1:]}." for note in grid.notes),
    ]


def sentences(findings: Findings) -> list[str]:
    parts = (_work, _misled, _lines, _falls, _prediction, _bounds)
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
        shares = [
            f"{LABELS[metric]} {share(values[metric])}"
            for metric in (GRACT, SMACT, SMOCC)
            if metric in values
        ]
        utilisation = f"utilisation {values[UTILIZATION]:.0f} %"
        yield f"{named(misled.example)}: {', '.join([utilisation, *shares])}."


def relation(x: str, y: str, r2: float) -> str:
    second, first = LABELS[y.rpartition(" ")[2]], LABELS[x]
    return f"{second} follows {first}{'' if r2 >= CLOSE_R2 else ' loosely'}"


def _lines(findings: Findings) -> Iterator[str]:
    none: dict[str, list[str]] = {}
    for line in findings.lines:
        if line.r2 is not None:
            yield f"{relation(line.x, line.y, line.r2)}: {line}."
        else:
            pair = f"{LABELS[line.y.rpartition(' ')[2]]} on {LABELS[line.x]}"
            none.setdefault(line.missing or "", []).append(pair)
    for reason, pairs in none.items():
        yield f"No line can be fitted for {' or '.join(pairs)}: {reason}."
    slopes = [
        f"{line.slope:.3f} at {counted(line.threads or 0, 'thread')} per block (R² {line.r2:.2f})"
        for line in findings.by_threads
        if line.r2 is not None
    ]
    if len(slopes) > 1:
        ends = f"{slopes[0]}, {slopes[-1]}"
        yield f"SMOCC on SMACT has a different slope at each block size: {ends}."


def _falls(findings: Findings) -> Iterator[str]:
    for metric in (SMACT, SMOCC):
        courses = {threads: dip for (name, threads), dip in findings.dips.items() if name == metric}
        dips = {threads: dip for threads, dip in courses.items() if dip is not None}
        name, sizes = LABELS[metric], counted(len(courses), "thread count")
        if dips:
            falls = [
                f"from {share(high)} at {few} blocks to {share(low)} at {many}, "
                f"at {threads} threads"
                for threads, (few, high, many, low) in dips.items()
            ]
            yield f"{name} falls with more blocks at {len(dips)} of {sizes}: {'; '.join(falls)}."
        elif courses:
            yield f"{name} never falls with more blocks, at {sizes}."


def _work(findings: Findings) -> Iterator[str]:
    if findings.launches:
        several = [f"{named(size)} ({count:g})" for size, count in findings.launches.items()]
        yield f"More or fewer kernels than in most cells: {first_few(several, FEW)}."
    if findings.idle:
        idle = first_few([named(cell.size) for cell in findings.idle], FEW)
        yield f"No work was observed in {idle}: no sample has GRACT or utilisation above 0."


def _prediction(findings: Findings) -> Iterator[str]:
    every = findings.predictions
    if not every:
        yield f"There is no prediction of SMACT: {findings.unpredicted}."
        return
    near = sum(abs(one.off) <= NEAR for one in every)
    worst = max(every, key=lambda cell: abs(cell.off))
    ends = " to ".join(dict.fromkeys([share(worst.least), share(worst.most)]))
    furthest = f"; furthest: {named(worst.size)}, {share(worst.observed)}, predicted {ends}"
    yield (
        f"SMACT is within ± {share(NEAR)} of its prediction in {near} of {len(every)} cells"
        f"{furthest if abs(worst.off) >= VISIBLE else ''}."
    )


def _bounds(findings: Findings) -> Iterator[str]:
    bounds, cells = findings.bounds, len(findings.grid.table)
    if not bounds.tested:
        return
    if bounds.violations:
        places = list(dict.fromkeys(named(violation.size) for violation in bounds.violations))
        yield (
            f"Bounds are violated in {len(places)} of {cells} cells (± {ROUNDING:g}): "
            f"{first_few(places, FEW)}; see below."
        )
    else:
        counts = {bound: count for bound, (count, _) in bounds.tested.items()}
        single = [count for bound, count in counts.items() if "share" not in bound]
        yield (
            f"All {len(counts)} bounds hold in all {cells} cells, in each of "
            f"{max(single or counts.values())} samples (± {ROUNDING:g})."
        )
    for bound, reason in bounds.untested.items():
        yield f"Not tested: {bound}: {reason}."
