"""Pictures of a grid of GPU metrics, drawn by its own command: heat maps over blocks × threads, and what one metric tells of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullLocator

from analysis.plots.page import INSIDE, Entry, Page, Section, Spec
from analysis.plots.scene import NothingToDraw
from analysis.plots.style import COLOURS, FAINT, INK, MARKERS, QUIET, SMALL, WRONG, house_style

from .answers import CLOSE_R2
from .checks import limits
from .findings import Findings, FittedLine, lines, shown_table
from .grid import ACTIVE, GRACT, LABELS, MAX, MEAN, MEDIAN, SMACT, SMOCC, UTILIZATION, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .grid import CellTable, Chip, Size

    Looks = Mapping[int, Mapping[str, Any]]

NEEDS = "a grid of GPU metrics"  # drawn by its own command
GRID_TITLE = "The same kernels, as three metrics see them"
WORDS = {
    ACTIVE: ("While the kernel ran", "mean of the active part"),
    MEAN: ("Whole logs", "means, the idle ends included: what ran for seconds looks less busy than it was"),
    MEDIAN: ("Whole logs", "medians"),
    MAX: ("Peaks", "the highest sample"),
}
HEADS = {UTILIZATION: "Utilisation, %", GRACT: "GRACT", SMACT: "SMACT", SMOCC: "SMOCC"}
SHADES = LinearSegmentedColormap.from_list("house", ["#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"])
ROW, HEAD_IN, BELOW = 0.235, 0.30, 0.56
GRID_LEFT, GRID_GAP = 0.62, 0.10
DARK = 0.5
MOST_ROWS, MOST_COLUMNS = 60, 16
NAMED = 6


@dataclass(frozen=True, slots=True)
class Marks:
    """Cells that did not run what the others ran, and those that break a bound."""

    odd: frozenset[Size]
    broken: frozenset[Size]


@house_style()
def draw_grid(findings: Findings) -> Figure:
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
    return Spec(_grid_lead(findings), sections, notes=_notes(findings, tables, marks)).lay_out(runs, GRID_TITLE)


def _tables(findings: Findings) -> list[CellTable]:
    """Our own active means first; then summary tables that lay beside and hold more cells."""
    own = shown_table(findings)
    return [own, findings.over] if len(findings.over.rows) > len(own.rows) else [own]


def _sides(table: CellTable) -> tuple[list[int], list[int]]:
    return sorted({size[0] for size in table.rows}), sorted({size[1] for size in table.rows})


def _metrics(table: CellTable) -> list[str]:
    there = [metric for metric in HEADS if any(metric in row for row in table.rows.values())]
    return [metric for metric in there if metric != GRACT or UTILIZATION not in there]


def _grid_lead(findings: Findings) -> str:
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
    wide = (INSIDE - GRID_LEFT - GRID_GAP * (len(metrics) - 1)) / len(metrics)
    for at, metric in enumerate(metrics):
        left = GRID_LEFT + at * (wide + GRID_GAP)
        sheet.text(left, top + HEAD_IN - 0.22, HEADS[metric], fontweight="bold")
        axes = sheet.axes(left, top + HEAD_IN, wide, ROW * len(blocks))
        _map(axes, table, metric, SMALL if wide / len(_sides(table)[1]) > 0.27 else SMALL - 1.5)
        _mark(axes, table, marks)
    for row, many in enumerate(blocks):
        sheet.text(GRID_LEFT - 0.07, top + HEAD_IN + ROW * (row + 0.5), str(many), ha="right", va="center", fontsize=SMALL)
    sheet.text(GRID_LEFT - 0.07, top + HEAD_IN - 0.2, "blocks", ha="right", fontsize=SMALL, color=QUIET)


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
    axes.set(xticks=range(len(threads)), yticks=[], xlabel="threads a block", label=LABELS[metric])
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


# What one metric tells of another, a dot a kernel.

RELATIONS_TITLE = "What one GPU metric tells of another"
TALL, TOP, LEFT, GAP = 1.72, 0.34, 0.42, 0.56
COURSE = 2.1
FAR = 8  # times as many blocks: between such no line is drawn, for nothing is known there
FINE = 400


class RelationPanel(NamedTuple):
    """One relation: two metrics, how they are called, and what the second is multiplied by."""

    x: str
    y: str
    right: str
    up: str
    scale: float = 1.0


PANELS = (
    RelationPanel(UTILIZATION, GRACT, "utilisation", "GRACT", 100.0),
    RelationPanel(GRACT, SMACT, "GRACT", "SMACT"),
    RelationPanel(SMACT, SMOCC, "SMACT", "SMOCC"),
)


@house_style()
def draw_relations(findings: Findings) -> Figure:
    """Draw three relations above, SMACT over blocks below, all of one table. Raises: NothingToDraw."""
    peaks = findings.widest.get(MAX, findings.over)
    table = findings.over if findings.grid.whole_run or len(findings.over.rows) > len(peaks.rows) else peaks
    panels = [panel for panel in PANELS if table.pairs(panel.x, panel.y)]
    course = any(SMACT in row for row in table.rows.values()) and len({size[0] for size in table.rows}) > 1
    if not panels and not course:
        raise NothingToDraw("no cell has two of utilisation, GRACT, SMACT and SMOCC")
    looks = _looks(sorted({size[1] for size in table.rows}))
    legend = [
        Entry(f"{number} thread{'' if number == 1 else 's'}", {**look, "markersize": 5, "linestyle": "none"})
        for number, look in looks.items()
    ]
    once = "" if findings.grid.whole_run else "; each kernel ran once, so no interval can be put around a line"
    runs = (findings.grid.run,) if findings.grid.run is not None else ()
    notes = [f"Figures: {table.label}{once}.", gpu_of(findings)]
    fits = [next((line for line in lines(table) if (line.x, line.y.rpartition(" ")[2]) == (panel.x, panel.y)), None) for panel in panels]
    wide = (INSIDE - LEFT - GAP * 2) / 3

    def relations(sheet: Page, top: float) -> None:
        for at, (panel, line) in enumerate(zip(panels, fits, strict=True)):
            left = LEFT + at * (wide + GAP)
            _relation(sheet.axes(left, top + TOP, wide, TALL), table, panel, looks, line)
            r2 = f"R² {line.r2:.3f}" if line is not None and line.r2 is not None else "no line"
            sheet.text(left - 0.1, top + TOP - 0.24, f"{panel.up} on {panel.right}: {r2}", fontweight="bold")

    sections = [Section("", TOP + TALL + BELOW, relations)] if panels else []
    if course:
        sections.append(Section("", TOP + COURSE + BELOW, partial(_course, chip=findings.grid.chip, table=table, looks=looks)))
    return Spec(_relations_lead(findings, fits), sections, legend, notes).lay_out(runs, RELATIONS_TITLE)


def _looks(threads: Sequence[int]) -> dict[int, dict[str, Any]]:
    every = [*({"color": color, "marker": mark} for color, mark in zip(COLOURS, MARKERS, strict=True)), {"color": INK, "marker": "P"}]
    return {thread: {**every[at % len(every)]} for at, thread in enumerate(threads)}


def _relations_lead(findings: Findings, fits: Sequence[FittedLine | None]) -> str:
    by = {line.x: line for line in fits if line is not None}
    parts = []
    gract, smact = by.get(UTILIZATION), by.get(GRACT)
    if gract is not None and gract.r2 is not None:
        parts.append("GRACT repeats what utilisation says" if gract.r2 >= CLOSE_R2 else "GRACT and utilisation differ")
    elif gract is not None:
        parts.append("Utilisation hardly differs from kernel to kernel")
    if smact is not None and (smact.r2 is None or smact.r2 < CLOSE_R2):
        parts.append("and neither tells how many SMs had work" if parts else "GRACT does not tell how many SMs had work")
    lead = f"{', '.join(parts)}. " if parts else ""
    every = [course for course in findings.courses if course.metric == SMACT]
    dips = [course for course in every if course.dip is not None]
    if dips:
        return f"{lead}More blocks do not always keep more SMs busy: SMACT falls on the way at {len(dips)} of {len(every)} block sizes."
    return f"{lead}A dot is a kernel, its colour the threads of a block." + (" SMACT never falls with more blocks." if every else "")


def _relation(axes: Axes, table: CellTable, panel: RelationPanel, looks: Looks, line: FittedLine | None) -> None:
    there = table.pairs(panel.x, panel.y)
    right = np.array([value for value, _ in there.values()])
    span = np.array([right.min(), right.max()])
    if line is not None and line.slope is not None and line.intercept is not None:
        axes.plot(span, line.slope * span + line.intercept, color=FAINT, linewidth=1.6, zorder=1)
    for threads, look in looks.items():
        dots = np.array([both for size, both in there.items() if size[1] == threads])
        if dots.size:
            axes.plot(dots[:, 0], dots[:, 1] * panel.scale, linestyle="none", markersize=4, markeredgewidth=0, alpha=0.85, zorder=3, **look)
    percent = ", %" if panel.scale != 1 else ""
    axes.set(xlabel=f"{panel.right}{percent}", ylabel=f"{panel.up}{percent}")
    axes.grid(visible=True)
    axes.locator_params(nbins=4)


def _course(sheet: Page, top: float, chip: Chip, table: CellTable, looks: Looks) -> None:
    """Draw SMACT over blocks, below the bound that the number of SMs puts on it."""
    sheet.text(LEFT - 0.1, top + TOP - 0.24, "SMACT over blocks", fontweight="bold")
    axes = sheet.axes(LEFT, top + TOP, INSIDE - LEFT - 0.1, COURSE)
    for threads, look in looks.items():
        points = [(size[0], row[SMACT]) for size, row in sorted(table.rows.items()) if size[1] == threads and SMACT in row]
        joined = _broken(points)
        if joined.size:
            axes.plot(joined[:, 0], joined[:, 1], markersize=4, markeredgewidth=0, linewidth=1.1, zorder=3, **look)
    blocks = sorted({size[0] for size in table.rows})
    if chip.sms is not None:
        fine = np.unique(np.round(np.geomspace(blocks[0], blocks[-1], FINE)).astype(int))
        most = [limit.smact for many in fine if (limit := limits((int(many), 1), chip)) is not None]
        axes.plot(fine, most, color=QUIET, linestyle="--", linewidth=1.0, zorder=2)
        axes.text(blocks[-1], 1.03, f"bound: min(b, {chip.sms}) / {chip.sms}", ha="right", va="bottom", fontsize=SMALL, color=QUIET)
    axes.set_xscale("log", base=2)
    axes.set(xlabel="blocks", ylabel="SMACT", ylim=(-0.03, 1.18))
    axes.set_xticks(_apart(blocks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", rotation=30)
    axes.grid(visible=True)


def _broken(points: Sequence[tuple[int, float]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the points of a line, with a gap where nothing lies between two that are far apart."""
    joined: list[tuple[float, float]] = []
    for many, value in points:
        if joined and many > FAR * joined[-1][0]:
            joined.append((float(many), float("nan")))
        joined.append((float(many), value))
    return np.array(joined)


def _apart(blocks: Sequence[int]) -> list[int]:
    """Return the numbers of blocks that can be written below an axis without touching."""
    kept: list[int] = []
    for many in blocks:
        if not kept or many >= 1.7 * kept[-1]:
            kept.append(many)
    return kept
