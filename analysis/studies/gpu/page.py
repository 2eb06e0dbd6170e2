"""One grid as text of at most 100 columns: what it says, both metrics of the SMs over the grid, then every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page

from .relations import allocated_mib
from .sampled import idle
from .sentences import heading, sentences, share
from .terms import (
    ACTIVE,
    DRAM,
    GRACT,
    MAX,
    MEAN,
    MEDIAN,
    MEMORY_MIB,
    MEMORY_UTILIZATION,
    SAID,
    SMACT,
    SMOCC,
    STATISTICS,
    TENSOR,
    UTILIZATION,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .findings import Findings
    from .terms import Cell, Size, Table

ACROSS = 12  # numbers of blocks beside one another
LINES = 8  # lines of a log that could not be read
TOGETHER = ((UTILIZATION, GRACT), (SMACT, SMOCC), (MEMORY_MIB, MEMORY_UTILIZATION), (TENSOR, DRAM))
ASIDE = 0.05  # what stays below it everywhere has a sentence and no table
PERCENT = {UTILIZATION, MEMORY_UTILIZATION}


def render(findings: Findings, *, color: bool = False) -> str:
    """Write the page of one grid."""
    return on_page(_parts(findings), color=color)


def _parts(findings: Findings) -> Iterator[RenderableType]:
    first, *rest = map(one_line, heading(findings))
    yield Text(first, "bold")
    yield from map(Text, rest)
    yield ""
    yield hanging([("•", sentence) for sentence in sentences(findings)])
    for metric in (SMACT, SMOCC):
        yield from _matrix(findings.over, metric)
    yield from _cells(findings)
    yield from _predicted(findings)
    yield from _violations(findings)
    if findings.grid.ignored:
        yield ""
        more = len(findings.grid.ignored) - LINES
        lines = [("left out", line) for line in findings.grid.ignored[:LINES]]
        yield hanging([*lines, *([("left out", f"and {more} lines more")] if more > 0 else [])], "yellow")


def _matrix(table: Table, metric: str) -> Iterator[RenderableType]:
    """Lay one metric out as the kernels were: threads down, blocks across."""
    rows = {size: row[metric] for size, row in table.rows.items() if metric in row}
    blocks = sorted({size[0] for size in rows})
    across = -(-len(blocks) // max(1, -(-len(blocks) // ACROSS)))  # pages of equal width
    for start in range(0, len(blocks), max(1, across)):
        part = blocks[start : start + across]
        yield ""
        yield Text(f"{SAID[metric]} ({table.label}): threads a block down, blocks across")
        threads = sorted({size[1] for size in rows if size[0] in part})
        yield columns(
            ["", *map(str, part)], [[str(thread), *(share(rows.get((many, thread))) for many in part)] for thread in threads], left=0
        )


def _cells(findings: Findings) -> Iterator[RenderableType]:
    shown = False
    for metrics in TOGETHER:
        there = [metric for metric in metrics if peak(findings, metric) > (-1 if metric in {UTILIZATION, GRACT, SMACT, SMOCC} else ASIDE)]
        if there:
            yield ""
            yield _table(findings, there)
            shown = True
    if shown:
        yield hanging(
            [
                (
                    "n",
                    "samples, of each log (or run) where they differ; figures are means over runs. Idle: before and after the active part.",
                ),
                (
                    "active",
                    "mean of the longest stretch in which something ran (GRACT above 0); the others are of the whole log.",
                ),
            ],
            "dim",
            "dim",
        )
        if any(MEMORY_MIB in row for row in findings.tables[MEAN].rows.values()):
            yield hanging([("MiB", "used memory; 8bt: what the kernel allocates, two arrays of float.")], "dim", "dim")


def peak(findings: Findings, metric: str) -> float:
    """Answer the highest sample of a metric in any cell; -1 where it was not recorded."""
    table = findings.tables.get(MAX)
    return max((row[metric] for row in table.rows.values() if metric in row), default=-1.0) if table is not None else -1.0


def _table(findings: Findings, metrics: Sequence[str]) -> RenderableType:
    heads = ["blocks", "threads", "n", "idle"]
    if MEMORY_MIB in metrics:
        heads.append("8bt\nMiB")
    for metric in metrics:
        unit = " %" if metric in PERCENT else " MiB" if metric == MEMORY_MIB else ""
        name = {UTILIZATION: "util", MEMORY_UTILIZATION: "mem util", MEMORY_MIB: "used"}.get(metric, SAID[metric])
        heads += [f"{name}{unit}\n{MEAN}", f"\n{MEDIAN}", f"\n{MAX}", f"\n{ACTIVE}"]
    rows = []
    by_size: dict[Size, list[Cell]] = {}
    for cell in findings.grid.cells:
        by_size.setdefault(cell.size, []).append(cell)
    for size, cells in by_size.items():
        row = [*map(str, size), *_counts(cells)]
        if MEMORY_MIB in metrics:
            row.append(f"{allocated_mib(size):.2f}")
        for metric in metrics:
            form = share if metric not in PERCENT and metric != MEMORY_MIB else lambda value: "–" if value is None else f"{value:.1f}"
            row += [form(findings.tables[statistic].rows.get(size, {}).get(metric)) for statistic in STATISTICS]
        rows.append(row)
    return columns(heads, rows, left=0)


def _counts(cells: Sequence[Cell]) -> tuple[str, str]:
    """Write how many samples the runs of one size have, and how many of them lie before and after the active part."""
    counts = "/".join(dict.fromkeys(str(len(log)) for log in cells[0].logs))
    if len(cells) > 1:
        each = sorted(max(map(len, cell.logs)) for cell in cells)
        counts = f"{len(cells)}×{each[0]}" if each[0] == each[-1] else f"{len(cells)}×{each[0]}-{each[-1]}"
    ends = [idle(cell) for cell in cells]
    return counts, f"{sum(before for before, _, _ in ends)}+{sum(after for _, _, after in ends)}"


def _predicted(findings: Findings) -> Iterator[RenderableType]:
    every = findings.predictions.cells
    if every:
        yield ""
        yield Text("SMACT as predicted, b / (SMs × ⌈b / SMs⌉) to min(b, SMs) / SMs, × duty, and as seen (median)")
        heads = ["blocks", "threads", "duty", "least", "most", "seen", "off"]
        yield columns(
            heads,
            [
                [
                    *map(str, predicted.size),
                    share(predicted.duty),
                    share(predicted.least),
                    share(predicted.most),
                    share(predicted.observed),
                    f"{predicted.off:+.3f}",
                ]
                for predicted in every
            ],
            left=0,
        )


def _violations(findings: Findings) -> Iterator[RenderableType]:
    every = findings.bounds.violations
    if every:
        yield ""
        yield Text("Bounds that were broken")
        heads = ["bound", "cell", "samples", "of", "furthest", "limit"]
        yield columns(
            heads,
            [
                [
                    violation.bound,
                    one_line(violation.place, 40),
                    str(violation.count),
                    str(violation.of),
                    f"{violation.worst:.3f}",
                    f"{violation.limit:.3f}",
                ]
                for violation in every
            ],
            left=2,
        )
