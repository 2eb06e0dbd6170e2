"""What one metric tells of another: GRACT on utilisation, SMACT on GRACT, SMOCC on SMACT, and SMACT over blocks; a dot a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter, NullLocator

from analysis.studies.gpu.bounds import limits
from analysis.studies.gpu.relations import lines
from analysis.studies.gpu.sentences import CLOSE_R2
from analysis.studies.gpu.terms import GRACT, MAX, SMACT, SMOCC, UTILIZATION

from .gpu_metrics_grid import gpu_of
from .page import INSIDE, Entry, page
from .scene import NothingToDraw, Scene
from .style import COLOURS, FAINT, INK, MARKERS, QUIET, SMALL, house_style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.gpu.findings import Findings
    from analysis.studies.gpu.relations import FittedLine
    from analysis.studies.gpu.terms import CellTable, Chip

    from .page import Page

    Looks = Mapping[int, Mapping[str, Any]]

NEEDS = "a grid of GPU metrics"  # drawn by its own command
TITLE = "What one GPU metric tells of another"
TALL, TOP, LEFT, GAP, BELOW = 1.72, 0.34, 0.42, 0.56, 0.56
COURSE = 2.1
FAR = 8  # times as many blocks: between such no line is drawn, for nothing is known there
FINE = 400


class Panel(NamedTuple):
    """One relation: two metrics, how they are called, and what the second is multiplied by."""

    x: str
    y: str
    right: str
    up: str
    scale: float = 1.0


PANELS = (
    Panel(UTILIZATION, GRACT, "utilisation", "GRACT", 100.0),
    Panel(GRACT, SMACT, "GRACT", "SMACT"),
    Panel(SMACT, SMOCC, "SMACT", "SMOCC"),
)


@house_style()
def draw(findings: Findings) -> Figure:
    """Draw three relations above, SMACT over blocks below, all of one table. Raises: NothingToDraw."""
    peaks = findings.widest.get(MAX, findings.over)
    table = findings.over if findings.grid.whole_run or len(findings.over.rows) > len(peaks.rows) else peaks
    there = [panel for panel in PANELS if table.pairs(panel.x, panel.y)]
    course = any(SMACT in row for row in table.rows.values()) and len({size[0] for size in table.rows}) > 1
    if not there and not course:
        raise NothingToDraw("no cell has two of utilisation, GRACT, SMACT and SMOCC")
    looks = _looks(sorted({size[1] for size in table.rows}))
    legend = [
        Entry(f"{number} thread{'' if number == 1 else 's'}", {**look, "markersize": 5, "linestyle": "none"})
        for number, look in looks.items()
    ]
    above = (TOP + TALL + BELOW) if there else 0.0
    once = "" if findings.grid.whole_run else "; each kernel ran once, so no interval can be put around a line"
    runs = (findings.grid.run,) if findings.grid.run is not None else ()
    notes = [f"Figures: {table.label}{once}.", gpu_of(findings)]
    fits = [next((line for line in lines(table) if (line.x, line.y.rpartition(" ")[2]) == (panel.x, panel.y)), None) for panel in there]
    body = above + ((TOP + COURSE + BELOW) if course else 0.0)
    sheet = page(Scene(runs), TITLE, _lead(findings, fits), body, legend, notes)
    wide = (INSIDE - LEFT - GAP * 2) / 3
    for at, (panel, line) in enumerate(zip(there, fits, strict=True)):
        left = LEFT + at * (wide + GAP)
        _relation(sheet.axes(left, TOP, wide, TALL), table, panel, looks, line)
        r2 = f"R² {line.r2:.3f}" if line is not None and line.r2 is not None else "no line"
        sheet.text(left - 0.1, TOP - 0.24, f"{panel.up} on {panel.right}: {r2}", fontweight="bold")
    if course:
        _course(sheet, above, findings.grid.chip, table, looks)
    return sheet.figure


def _looks(threads: Sequence[int]) -> dict[int, dict[str, Any]]:
    every = [*({"color": color, "marker": mark} for color, mark in zip(COLOURS, MARKERS, strict=True)), {"color": INK, "marker": "P"}]
    return {thread: {**every[at % len(every)]} for at, thread in enumerate(threads)}


def _lead(findings: Findings, fits: Sequence[FittedLine | None]) -> str:
    by = {line.x: line for line in fits if line is not None}
    said = []
    gract, smact = by.get(UTILIZATION), by.get(GRACT)
    if gract is not None and gract.r2 is not None:
        said.append("GRACT repeats what utilisation says" if gract.r2 >= CLOSE_R2 else "GRACT and utilisation differ")
    elif gract is not None:
        said.append("Utilisation hardly differs from kernel to kernel")
    if smact is not None and (smact.r2 is None or smact.r2 < CLOSE_R2):
        said.append("and neither tells how many SMs had work" if said else "GRACT does not tell how many SMs had work")
    lead = f"{', '.join(said)}. " if said else ""
    every = [course for course in findings.courses if course.metric == SMACT]
    dips = [course for course in every if course.dip is not None]
    if dips:
        return f"{lead}More blocks do not always keep more SMs busy: SMACT falls on the way at {len(dips)} of {len(every)} block sizes."
    return f"{lead}A dot is a kernel, its colour the threads of a block." + (" SMACT never falls with more blocks." if every else "")


def _relation(axes: Axes, table: CellTable, panel: Panel, looks: Looks, line: FittedLine | None) -> None:
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
    """Answer the points of a line, with a gap where nothing lies between two that are far apart."""
    joined: list[tuple[float, float]] = []
    for many, value in points:
        if joined and many > FAR * joined[-1][0]:
            joined.append((float(many), float("nan")))
        joined.append((float(many), value))
    return np.array(joined)


def _apart(blocks: Sequence[int]) -> list[int]:
    """Answer the numbers of blocks that can be written below an axis without touching."""
    kept: list[int] = []
    for many in blocks:
        if not kept or many >= 1.7 * kept[-1]:
            kept.append(many)
    return kept
