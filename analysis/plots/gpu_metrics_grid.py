"""Three heat maps over blocks × threads, side by side: what utilisation says, what SMACT says, and what SMOCC says of the same kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from analysis.studies.gpu.findings import shown_table
from analysis.studies.gpu.terms import ACTIVE, GRACT, MAX, MEAN, MEDIAN, SAID, SMACT, SMOCC, UTILIZATION, named

from .page import INSIDE, Section, stack
from .scene import NothingToDraw, Scene
from .style import FAINT, INK, QUIET, SMALL, WRONG, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.gpu.findings import Findings
    from analysis.studies.gpu.terms import CellTable, Size

    from .page import Page

NEEDS = "a grid of GPU metrics"  # drawn by its own command
TITLE = "The same kernels, as three metrics see them"
WORDS = {
    ACTIVE: ("While the kernel ran", "mean of the active part"),
    MEAN: ("Whole logs", "means, the idle ends included: what ran for seconds looks less busy than it was"),
    MEDIAN: ("Whole logs", "medians"),
    MAX: ("Peaks", "the highest sample"),
}
HEADS = {UTILIZATION: "Utilisation, %", GRACT: "GRACT", SMACT: "SMACT", SMOCC: "SMOCC"}
SHADES = LinearSegmentedColormap.from_list("house", ["#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"])
ROW, HEAD_IN, BELOW = 0.235, 0.30, 0.56
LEFT, GAP = 0.62, 0.10
DARK = 0.5
MOST_ROWS, MOST_COLUMNS = 60, 16
NAMED = 6


@dataclass(frozen=True, slots=True)
class Marks:
    """Cells that did not run what the others ran, and those that break a bound."""

    odd: frozenset[Size]
    broken: frozenset[Size]


@house_style()
def draw(findings: Findings) -> Figure:
    """Draw a row of blocks for each size, threads across, a map a metric. Raises: NothingToDraw."""
    tables = [table for table in _tables(findings) if _metrics(table)]
    if not tables:
        raise NothingToDraw("no cell has utilisation, SMACT or SMOCC")
    for table in tables:
        blocks, threads = _sides(table)
        if len(blocks) > MOST_ROWS or len(threads) > MOST_COLUMNS:
            raise NothingToDraw(f"{len(blocks)} × {len(threads)} cells have no room on a page")
    marks = Marks(
        frozenset({odd.size for odd in findings.odd} | set(findings.launches)),
        frozenset(violation.size for violation in findings.bounds.violations),
    )
    sections = []
    for table in tables:
        head, beside = WORDS[table.statistic]
        tall = HEAD_IN + ROW * len(_sides(table)[0]) + BELOW
        sections.append(Section(head, tall, partial(_maps, table=table, marks=marks), f"{beside} ({table.label})"))
    runs = (findings.grid.run,) if findings.grid.run is not None else ()
    return stack(Scene(runs), TITLE, _lead(findings), sections, notes=_notes(findings, tables, marks))


def _tables(findings: Findings) -> list[CellTable]:
    """Our own active means first; then summary tables that lay beside and hold more cells."""
    own = shown_table(findings)
    return [own, findings.over] if len(findings.over.rows) > len(own.rows) else [own]


def _sides(table: CellTable) -> tuple[list[int], list[int]]:
    return sorted({size[0] for size in table.rows}), sorted({size[1] for size in table.rows})


def _metrics(table: CellTable) -> list[str]:
    there = [metric for metric in HEADS if any(metric in row for row in table.rows.values())]
    return [metric for metric in there if metric != GRACT or UTILIZATION not in there]


def _lead(findings: Findings) -> str:
    misled = findings.misled
    how = "Each row is a number of blocks, each column a number of threads a block; dark is busy."
    if misled is None:
        return how
    seen = f"Utilisation reaches 90 % in {misled.busy} of {misled.cells} kernels"
    if misled.busy_low_smact:
        seen += f"; in {misled.busy_low_smact} of these SMACT, the share of SMs with work, never reaches 0.3"
    return f"{seen}. {how}"


def _notes(findings: Findings, tables: list[CellTable], marks: Marks) -> list[str]:
    sizes = {size for table in tables for size in table.rows}
    notes = []
    if any(len(table.rows) < len(_sides(table)[0]) * len(_sides(table)[1]) for table in tables):
        notes.append("White: no such cell.")
    if marks.odd & sizes:
        notes.append(f"Framed in red: how long it ran does not fit the others ({', '.join(map(named, sorted(marks.odd)[:NAMED]))}).")
    if marks.broken & sizes:
        notes.append(f"Struck through: a bound is broken ({', '.join(map(named, sorted(marks.broken)[:NAMED]))}).")
    notes.append("SMACT: share of the SMs that have a warp, over time. SMOCC: warps there are, of those that fit. 1 is all.")
    return [*notes, gpu_of(findings)]


def gpu_of(findings: Findings) -> str:
    """Say which GPU a picture is of."""
    chip = findings.grid.chip
    return f"GPU: {chip.name or 'not named'}{f', {chip.sms} SMs' if chip.sms else ''}."


def _maps(sheet: Page, top: float, table: CellTable, marks: Marks) -> None:
    metrics, blocks = _metrics(table), _sides(table)[0]
    wide = (INSIDE - LEFT - GAP * (len(metrics) - 1)) / len(metrics)
    for at, metric in enumerate(metrics):
        left = LEFT + at * (wide + GAP)
        sheet.text(left, top + HEAD_IN - 0.22, HEADS[metric], fontweight="bold")
        axes = sheet.axes(left, top + HEAD_IN, wide, ROW * len(blocks))
        _map(axes, table, metric, SMALL if wide / len(_sides(table)[1]) > 0.27 else SMALL - 1.5)
        _mark(axes, table, marks)
    for row, many in enumerate(blocks):
        sheet.text(LEFT - 0.07, top + HEAD_IN + ROW * (row + 0.5), str(many), ha="right", va="center", fontsize=SMALL)
    sheet.text(LEFT - 0.07, top + HEAD_IN - 0.2, "blocks", ha="right", fontsize=SMALL, color=QUIET)


def _map(axes: Axes, table: CellTable, metric: str, points: float) -> None:
    blocks, threads = _sides(table)
    scale = 100.0 if metric == UTILIZATION else 1.0
    values = np.array([[table.rows.get((many, few), {}).get(metric, np.nan) for few in threads] for many in blocks])
    axes.imshow(values / scale, cmap=SHADES, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True):
        value = float(values[row, column])
        shown = f"{value:.0f}" if metric == UTILIZATION else f"{value:.2f}".removeprefix("0")
        color = "white" if value / scale > DARK else INK
        axes.text(float(column), float(row), shown, ha="center", va="center_baseline", fontsize=points, color=color)
    axes.set(xticks=range(len(threads)), yticks=[], xlabel="threads a block", label=SAID[metric])
    axes.set_xticklabels([str(thread) for thread in threads], fontsize=points)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set(visible=True, color=FAINT, linewidth=0.6)


def _mark(axes: Axes, table: CellTable, marks: Marks) -> None:
    blocks, threads = _sides(table)
    for many, few in table.rows:
        row, column = blocks.index(many), threads.index(few)
        if (many, few) in marks.odd:
            axes.add_patch(Rectangle((column - 0.46, row - 0.44), 0.92, 0.88, fill=False, edgecolor=WRONG, linewidth=1.4))
        if (many, few) in marks.broken:
            axes.plot([column - 0.4, column + 0.4], [row + 0.4, row - 0.4], color=WRONG, linewidth=1.2)
