"""Pictures of a grid of GPU metrics: heat maps over blocks × threads, and relations of metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from analysis.plots.marks import ticks
from analysis.plots.page import Chart, Entry, Page, Plot, SmallPanel, SmallPanels, body_width
from analysis.plots.scene import NothingToDraw, some
from analysis.plots.style import COLOURS, FAINT, INK, MARKERS, QUIET, SMALL, draw_into, house_style

from .answers import relation
from .findings import limits
from .grid import ACTIVE, GRACT, LABELS, SMACT, SMOCC, UTILIZATION

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from .findings import Findings, FittedLine
    from .grid import KernelGrid

    Looks = Mapping[int, Mapping[str, Any]]

GRID_TITLE = "The same kernels in three metrics"
HEADS = {UTILIZATION: "Utilisation, %", GRACT: "GRACT", SMACT: "SMACT", SMOCC: "SMOCC"}
SCALES = {UTILIZATION: 100.0}
SHADES = LinearSegmentedColormap.from_list(
    "house", ["#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"]
)
ROW, HEAD_IN, BELOW = 0.235, 0.30, 0.56
GRID_LEFT, GRID_GAP = 0.62, 0.10
DARK = 0.5
MOST_ROWS, MOST_COLUMNS = 60, 16


def draw(grids: Sequence[Findings], folder: Path) -> dict[str, str]:
    """Draw every grid; return each picture's file or error. Raises: OSError."""
    drawings: dict[str, Callable[[], Figure]] = {}
    for at, findings in enumerate(grids, 1):
        end = f"_{at}" if at > 1 else ""
        drawings[f"gpu_metrics_grid{end}"] = partial(draw_grid, findings)
        drawings[f"gpu_metrics_relations{end}"] = partial(draw_relations, findings)
    return draw_into(folder, drawings)


@house_style()
def draw_grid(findings: Findings) -> Figure:
    """Draw a heat map per metric: blocks down, threads across. Raises: NothingToDraw."""
    grid, (blocks, threads) = findings.grid, _sides(findings.grid)
    some(_metrics(grid), "no cell has utilisation, SMACT or SMOCC")
    if len(blocks) > MOST_ROWS or len(threads) > MOST_COLUMNS:
        raise NothingToDraw(f"{len(blocks)} × {len(threads)} cells do not fit on a page")
    tall = HEAD_IN + ROW * len(blocks) + BELOW
    basis = f"mean of the active part ({grid.label(ACTIVE)})"
    section = Chart("While the kernel ran", tall, partial(_maps, grid=grid), basis)
    notes = [
        "White: no such cell." * (len(grid.table) < len(blocks) * len(threads)),
        (
            "SMACT: share of SMs with a warp, over time. SMOCC: resident warps as a share of "
            "those that fit. 1 is the maximum."
        ),
    ]
    lead = (
        "Each row is a number of blocks, each column a number of threads per block; dark is busy."
    )
    if (misled := findings.misled) is not None:
        lead = (
            f"Utilisation reaches 90 % in {misled.busy} of {misled.cells} kernels; in "
            f"{misled.busy_low_smact} of these SMACT, the share of SMs with work, never reaches "
            f"0.3. {lead}"
        )
    return _laid_out(findings, GRID_TITLE, Plot(lead, [section], notes=notes))


def _laid_out(findings: Findings, title: str, spec: Plot) -> Figure:
    chip, run = findings.grid.chip, findings.grid.run
    gpu = f"GPU: {chip.name or 'not named'}{f', {chip.sms} SMs' if chip.sms else ''}."
    return spec._replace(notes=[*spec.notes, gpu]).lay_out((run,), title)


def _sides(grid: KernelGrid) -> tuple[list[int], list[int]]:
    blocks, threads = (
        sorted(set(grid.table.index.get_level_values(level))) for level in ("blocks", "threads")
    )
    return blocks, threads


def _metrics(grid: KernelGrid) -> list[str]:
    known = [metric for metric in HEADS if grid.column(metric)]
    return [metric for metric in known if metric != GRACT or UTILIZATION not in known]


def _maps(sheet: Page, top: float, grid: KernelGrid) -> None:
    metrics, (blocks, threads) = _metrics(grid), _sides(grid)
    wide = (body_width() - GRID_LEFT - GRID_GAP * (len(metrics) - 1)) / len(metrics)
    points = SMALL if wide / len(threads) > 0.27 else SMALL - 1.5
    for at, metric in enumerate(metrics):
        left = GRID_LEFT + at * (wide + GRID_GAP)
        sheet.text(left, top + HEAD_IN - 0.22, HEADS[metric], fontweight="bold")
        place = left, top + HEAD_IN, wide, ROW * len(blocks)
        axes = sheet.axes(*place, xticks=range(len(threads)), yticks=[], label=LABELS[metric])
        axes.set_xlabel("threads per block")
        axes.set_xticklabels([str(thread) for thread in threads], fontsize=points)
        axes.tick_params(length=0)
        axes.spines[:].set(visible=True, color=FAINT, linewidth=0.6)
        scale = SCALES.get(metric, 1.0)
        values = grid.table[f"{metric}_{ACTIVE}"].unstack().to_numpy() / scale
        axes.imshow(values, cmap=SHADES, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        for (row, column), value in np.ndenumerate(values):
            if np.isnan(value):
                continue
            percent = metric == UTILIZATION
            text = f"{value * scale:.0f}" if percent else f"{value:.2f}".removeprefix("0")
            color = "white" if value > DARK else INK
            style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": color}
            axes.text(column, row, text, fontsize=points, **style)
    right: dict[str, Any] = {"ha": "right", "fontsize": SMALL}
    for row, many in enumerate(blocks):
        middle = top + HEAD_IN + ROW * (row + 0.5)
        sheet.text(GRID_LEFT - 0.07, middle, str(many), va="center", **right)
    sheet.text(GRID_LEFT - 0.07, top + HEAD_IN - 0.2, "blocks", color=QUIET, **right)


RELATIONS_TITLE = "Relations between GPU metrics"
RELATIONS = SmallPanels(3, above=0.28, tall=1.72, below=BELOW, left=0.5, gap=0.12)
COURSES = SmallPanels(1, above=0.28, tall=2.1, below=BELOW, left=0.5)
FAR = 8  # ratio of blocks between neighbours; beyond, no line connects them
FINE = 400
DOT: dict[str, Any] = {"markersize": 4, "markeredgewidth": 0}


@house_style()
def draw_relations(findings: Findings) -> Figure:
    """Draw three relations and, below, SMACT over blocks. Raises: NothingToDraw."""
    grid, (blocks, threads) = findings.grid, _sides(findings.grid)
    lines = [line for line in findings.lines if line.n]
    every = [*zip(COLOURS, MARKERS, strict=True), (INK, "P")]
    looks: dict[int, dict[str, Any]] = {
        thread: dict(zip(("color", "marker"), every[at % len(every)], strict=True))
        for at, thread in enumerate(threads)
    }
    legend = [
        Entry(
            f"{number} thread{'s' * (number > 1)}", {**look, "markersize": 5, "linestyle": "none"}
        )
        for number, look in looks.items()
    ]
    sections = []
    if lines:
        draw = partial(_relation, grid=grid, looks=looks)
        sections.append(RELATIONS.section("", lines, draw, grid="both", most={"x": 4, "y": 4}))
    if grid.column(SMACT) and len(blocks) > 1:
        over = partial(_course, grid=grid, looks=looks)
        sections.append(COURSES.section("", ["SMACT over blocks"], over))
    some(sections, "no cell has two of utilisation, GRACT, SMACT and SMOCC")
    courses = [dip for (metric, _), dip in findings.dips.items() if metric == SMACT]
    dips = sum(dip is not None for dip in courses)
    sentences = [
        *(relation(line.x, line.y, line.r2) for line in lines if line.r2 is not None),
        f"SMACT falls with more blocks at {dips} of {len(courses)} block sizes",
        "A dot is a kernel, its colour the threads per block.",
    ]
    basis = [f"Figures: {grid.label(ACTIVE)}."]
    return _laid_out(findings, RELATIONS_TITLE, Plot(". ".join(sentences), sections, legend, basis))


def _relation(panel: SmallPanel, line: FittedLine, grid: KernelGrid, looks: Looks) -> None:
    axes, y = panel.axes, line.y.rpartition(" ")[2]
    pairs, scale = grid.pairs(line.x, y), SCALES.get(line.x, 1.0)
    x_name, y_name = (HEADS[name] for name in (line.x, y))
    span = (-0.03 * scale, 1.05 * scale)
    up = f"{y_name}, %" if scale > 1 else y_name
    axes.set(xlabel=x_name, ylabel=up, xlim=span, ylim=span)
    r2 = f"R² {line.r2:.3f}" if line.r2 is not None else "no line"
    panel.head(f"{y_name} on {x_name.partition(',')[0]}: {r2}", back=0.45)
    if line.slope is not None and line.intercept is not None:
        ends = np.array([end(value for value, _ in pairs.values()) for end in (min, max)])
        fit = line.slope * ends + line.intercept
        axes.plot(ends, fit, color=FAINT, linewidth=1.6, zorder=1)
    for threads, look in looks.items():
        dots = np.array([both for size, both in pairs.items() if size[1] == threads])
        if dots.size:
            places = dots[:, 0], dots[:, 1] * scale
            axes.plot(*places, linestyle="none", alpha=0.85, zorder=3, **DOT, **look)


def _course(panel: SmallPanel, title: str, grid: KernelGrid, looks: Looks) -> None:
    axes, chip, (blocks, _) = panel.axes, grid.chip, _sides(grid)
    panel.head(title, back=0.1)
    for threads, look in looks.items():
        points: list[tuple[int, float]] = []
        for (many, number), value in grid.column(SMACT).items():
            if number == threads:
                points += [(many, float("nan"))] if points and many > FAR * points[-1][0] else []
                points.append((many, value))
        axes.plot(*np.array(points).reshape(-1, 2).T, linewidth=1.1, **DOT, **look)
    if chip.sms is not None:
        fine = np.unique(np.round(np.geomspace(blocks[0], blocks[-1], FINE)).astype(int))
        most = [limit[0] for many in fine if (limit := limits((int(many), 1), chip)) is not None]
        axes.plot(fine, most, color=QUIET, linestyle="--", linewidth=1.0, zorder=2)
        bound = f"bound: min(b, {chip.sms}) / {chip.sms}"
        style: dict[str, Any] = {"ha": "right", "va": "bottom", "color": QUIET}
        axes.text(blocks[-1], 1.03, bound, fontsize=SMALL, **style)
    axes.set_xscale("log", base=2)
    axes.set(xlabel="blocks", ylabel="SMACT", ylim=(-0.03, 1.18))
    shown: list[int] = []
    for many in blocks:
        shown += [many] if not shown or many >= 1.7 * shown[-1] else []
    ticks(axes, "x", shown, lambda value: f"{value:.0f}")
    axes.tick_params(axis="x", rotation=30)
    axes.grid(visible=True)
