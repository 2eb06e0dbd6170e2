"""Pictures of a grid of GPU metrics: heat maps over blocks × threads, and relations of metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from analysis.plots.marks import ticks
from analysis.plots.page import Chart, Entry, Page, Plot, SmallPanel, SmallPanels, body_width
from analysis.plots.scene import NothingToDraw, some
from analysis.plots.style import (
    COLOURS,
    FAINT,
    INK,
    MARKERS,
    QUIET,
    SMALL,
    WRONG,
    draw_into,
    house_style,
)

from .answers import CLOSE_R2
from .answers import RELATIONS as SENTENCES
from .findings import limits
from .grid import ACTIVE, GRACT, LABELS, SMACT, SMOCC, UTILIZATION, named

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from .findings import Findings, FittedLine
    from .grid import KernelGrid, Size

    Looks = Mapping[int, Mapping[str, Any]]

GRID_TITLE = "The same kernels in three metrics"
HEADS = {UTILIZATION: "Utilisation, %", GRACT: "GRACT", SMACT: "SMACT", SMOCC: "SMOCC"}
SCALES = {UTILIZATION: 100.0}  # for the others the maximum is 1
SHADES = LinearSegmentedColormap.from_list(
    "house", ["#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"]
)
ROW, HEAD_IN, BELOW = 0.235, 0.30, 0.56
GRID_LEFT, GRID_GAP = 0.62, 0.10
DARK = 0.5
MOST_ROWS, MOST_COLUMNS = 60, 16
NAMED = 6


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
    grid = findings.grid
    some(_metrics(grid), "no cell has utilisation, SMACT or SMOCC")
    odd, broken = (
        set(findings.launches),
        {violation.size for violation in findings.bounds.violations},
    )
    blocks, threads = _sides(grid)
    if len(blocks) > MOST_ROWS or len(threads) > MOST_COLUMNS:
        raise NothingToDraw(f"{len(blocks)} × {len(threads)} cells do not fit on a page")
    draw = partial(_maps, grid=grid, odd=odd, broken=broken)
    tall = HEAD_IN + ROW * len(blocks) + BELOW
    sections = [
        Chart("While the kernel ran", tall, draw, f"mean of the active part ({grid.label(ACTIVE)})")
    ]
    notes = [
        "White: no such cell." * (len(grid.table) < len(blocks) * len(threads)),
        f"Framed in red: different number of launches ({_names(odd)})." if odd else "",
        f"Struck through: violated bound ({_names(broken)})." if broken else "",
        (
            "SMACT: share of SMs with a warp, over time. SMOCC: resident warps as a share of "
            "those that fit. 1 is the maximum."
        ),
    ]
    lead = (
        "Each row is a number of blocks, each column a number of threads per block; dark is busy."
    )
    if (misled := findings.misled) is not None:
        low = (
            f"; in {misled.busy_low_smact} of these SMACT, the share of SMs with work, never "
            "reaches 0.3"
            if misled.busy_low_smact
            else ""
        )
        lead = f"Utilisation reaches 90 % in {misled.busy} of {misled.cells} kernels{low}. {lead}"
    return _laid_out(findings, GRID_TITLE, Plot(lead, sections, notes=notes))


def _laid_out(findings: Findings, title: str, spec: Plot) -> Figure:
    """Lay out a picture, with its GPU and run."""
    chip, run = findings.grid.chip, findings.grid.run
    gpu = f"GPU: {chip.name or 'not named'}{f', {chip.sms} SMs' if chip.sms else ''}."
    return spec._replace(notes=[*spec.notes, gpu]).lay_out((run,), title)


def _names(sizes: set[Size]) -> str:
    return ", ".join(map(named, sorted(sizes)[:NAMED]))


def _sides(grid: KernelGrid) -> tuple[list[int], list[int]]:
    blocks, threads = (
        sorted(set(grid.table.index.get_level_values(level))) for level in ("blocks", "threads")
    )
    return blocks, threads


def _metrics(grid: KernelGrid) -> list[str]:
    known = [metric for metric in HEADS if grid.column(metric)]
    return [metric for metric in known if metric != GRACT or UTILIZATION not in known]


def _maps(sheet: Page, top: float, grid: KernelGrid, odd: set[Size], broken: set[Size]) -> None:
    metrics, (blocks, threads) = _metrics(grid), _sides(grid)
    wide = (body_width() - GRID_LEFT - GRID_GAP * (len(metrics) - 1)) / len(metrics)
    points = SMALL if wide / len(threads) > 0.27 else SMALL - 1.5
    for at, metric in enumerate(metrics):
        left = GRID_LEFT + at * (wide + GRID_GAP)
        sheet.text(left, top + HEAD_IN - 0.22, HEADS[metric], fontweight="bold")
        axes = sheet.axes(
            left,
            top + HEAD_IN,
            wide,
            ROW * len(blocks),
            xticks=range(len(threads)),
            yticks=[],
            label=LABELS[metric],
        )
        axes.set_xlabel("threads per block")
        axes.set_xticklabels([str(thread) for thread in threads], fontsize=points)
        axes.tick_params(length=0)
        axes.spines[:].set(visible=True, color=FAINT, linewidth=0.6)
        scale = SCALES.get(metric, 1.0)
        values = grid.table[f"{metric}_{ACTIVE}"].unstack().to_numpy() / scale
        axes.imshow(values, cmap=SHADES, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        for size in grid.table.index:
            row, column = blocks.index(size[0]), threads.index(size[1])
            value = float(values[row, column])
            if not np.isnan(value):
                shown = (
                    f"{value * scale:.0f}"
                    if metric == UTILIZATION
                    else f"{value:.2f}".removeprefix("0")
                )
                color = "white" if value > DARK else INK
                axes.text(
                    column,
                    row,
                    shown,
                    ha="center",
                    va="center_baseline",
                    fontsize=points,
                    color=color,
                )
            if size in odd:
                axes.add_patch(
                    Rectangle(
                        (column - 0.46, row - 0.44),
                        0.92,
                        0.88,
                        fill=False,
                        edgecolor=WRONG,
                        linewidth=1.4,
                    )
                )
            if size in broken:
                axes.plot(
                    [column - 0.4, column + 0.4], [row + 0.4, row - 0.4], color=WRONG, linewidth=1.2
                )
    right: dict[str, Any] = {"ha": "right", "fontsize": SMALL}
    for row, many in enumerate(blocks):
        sheet.text(
            GRID_LEFT - 0.07, top + HEAD_IN + ROW * (row + 0.5), str(many), va="center", **right
        )
    sheet.text(GRID_LEFT - 0.07, top + HEAD_IN - 0.2, "blocks", color=QUIET, **right)


# Relations between metrics, one dot per kernel.

RELATIONS_TITLE = "Relations between GPU metrics"
RELATIONS = SmallPanels(3, above=0.28, tall=1.72, below=BELOW, left=0.5, gap=0.12)
COURSES = SmallPanels(1, above=0.28, tall=2.1, below=BELOW, left=0.5)
FAR = 8  # ratio of blocks between neighbours; beyond, no line connects them
FINE = 400
SAME = 0.01  # of full scale: a metric that differs by less shows no relation


class Relation(NamedTuple):
    """Two metrics, and the regression of the second on the first."""

    x: str
    y: str
    line: FittedLine | None

    @property
    def scale(self) -> float:
        return SCALES.get(self.x, 1.0)  # the first is the one in percent, if any


@house_style()
def draw_relations(findings: Findings) -> Figure:
    """Draw three relations and, below, SMACT over blocks. Raises: NothingToDraw."""
    grid = findings.grid
    fits = {(one.x, one.y.rpartition(" ")[2]): one for one in findings.lines}
    pairs = [
        pair for pair in ((UTILIZATION, GRACT), (GRACT, SMACT), (SMACT, SMOCC)) if grid.pairs(*pair)
    ]
    relations = [Relation(*pair, fits.get(pair)) for pair in pairs]
    blocks, threads = _sides(grid)
    course = bool(grid.column(SMACT)) and len(blocks) > 1
    every = [*zip(COLOURS, MARKERS, strict=True), (INK, "P")]
    looks = {
        thread: dict(zip(("color", "marker"), every[at % len(every)], strict=True))
        for at, thread in enumerate(threads)
    }
    legend = [
        Entry(
            f"{number} thread{'' if number == 1 else 's'}",
            {**look, "markersize": 5, "linestyle": "none"},
        )
        for number, look in looks.items()
    ]
    sections = []
    if relations:
        sections.append(
            RELATIONS.section(
                "",
                relations,
                partial(_relation, grid=grid, looks=looks),
                grid="both",
                most={"x": 4, "y": 4},
            )
        )
    if course:
        sections.append(
            COURSES.section("", ["SMACT over blocks"], partial(_course, grid=grid, looks=looks))
        )
    some(sections, "no cell has two of utilisation, GRACT, SMACT and SMOCC")
    spec = Plot(
        _relations_lead(findings, relations), sections, legend, [f"Figures: {grid.label(ACTIVE)}."]
    )
    return _laid_out(findings, RELATIONS_TITLE, spec)


def _relations_lead(findings: Findings, relations: Sequence[Relation]) -> str:
    words = []
    for one in relations:
        values = [value for value, _ in findings.grid.pairs(one.x, one.y).values()]
        if max(values) - min(values) < SAME * one.scale:
            words.append(f"{LABELS[one.x]} hardly differs between kernels")
        elif one.line is not None and one.line.r2 is not None:
            words.append(SENTENCES[one.line.x, one.line.y][one.line.r2 < CLOSE_R2])
    relation = "; ".join(words)
    courses = [course for course in findings.courses if course.metric == SMACT]
    dips = sum(course.dip is not None for course in courses)
    fall = (
        f"More blocks do not always keep more SMs busy: SMACT falls in between at {dips} of "
        f"{len(courses)} block sizes"
    )
    sentences = [
        relation[:1].upper() + relation[1:],
        fall if dips else "SMACT never falls with more blocks" if courses else "",
        "A dot is a kernel, its colour the threads per block.",
    ]
    return ". ".join(filter(None, sentences))


def _relation(panel: SmallPanel, one: Relation, grid: KernelGrid, looks: Looks) -> None:
    """Draw both metrics on their full scale: small differences must look small."""
    axes, pairs = panel.axes, grid.pairs(one.x, one.y)
    names = {
        metric: head.lower() if metric == UTILIZATION else head for metric, head in HEADS.items()
    }
    up = f"{HEADS[one.y]}, %" if one.scale > 1 else HEADS[one.y]
    axes.set(
        xlabel=names[one.x],
        ylabel=up,
        xlim=(-0.03 * one.scale, 1.05 * one.scale),
        ylim=(-0.03 * one.scale, 1.05 * one.scale),
    )
    r2 = f"R² {one.line.r2:.3f}" if one.line is not None and one.line.r2 is not None else "no line"
    panel.head(f"{HEADS[one.y]} on {names[one.x].partition(',')[0]}: {r2}", back=0.45)
    if one.line is not None and one.line.slope is not None and one.line.intercept is not None:
        span = np.array([end(value for value, _ in pairs.values()) for end in (min, max)])
        axes.plot(
            span, one.line.slope * span + one.line.intercept, color=FAINT, linewidth=1.6, zorder=1
        )
    for threads, look in looks.items():
        dots = np.array([both for size, both in pairs.items() if size[1] == threads])
        if dots.size:
            axes.plot(
                dots[:, 0],
                dots[:, 1] * one.scale,
                linestyle="none",
                markersize=4,
                markeredgewidth=0,
                alpha=0.85,
                zorder=3,
                **look,
            )


def _course(panel: SmallPanel, title: str, grid: KernelGrid, looks: Looks) -> None:
    """Draw SMACT over blocks, below the bound set by the SMs; no line across wide gaps."""
    axes, chip, (blocks, _) = panel.axes, grid.chip, _sides(grid)
    panel.head(title, back=0.1)
    for threads, look in looks.items():
        points: list[tuple[int, float]] = []
        for (many, number), value in grid.column(SMACT).items():
            if number == threads:
                points += [(many, float("nan"))] if points and many > FAR * points[-1][0] else []
                points.append((many, value))
        axes.plot(
            [many for many, _ in points],
            [value for _, value in points],
            markersize=4,
            markeredgewidth=0,
            linewidth=1.1,
            **look,
        )
    if chip.sms is not None:
        fine = np.unique(np.round(np.geomspace(blocks[0], blocks[-1], FINE)).astype(int))
        most = [limit[0] for many in fine if (limit := limits((int(many), 1), chip)) is not None]
        axes.plot(fine, most, color=QUIET, linestyle="--", linewidth=1.0, zorder=2)
        axes.text(
            blocks[-1],
            1.03,
            f"bound: min(b, {chip.sms}) / {chip.sms}",
            ha="right",
            va="bottom",
            fontsize=SMALL,
            color=QUIET,
        )
    axes.set_xscale("log", base=2)
    axes.set(xlabel="blocks", ylabel="SMACT", ylim=(-0.03, 1.18))
    shown: list[int] = []  # numbers that fit below the axis without overlap
    for many in blocks:
        shown += [many] if not shown or many >= 1.7 * shown[-1] else []
    ticks(axes, "x", shown, lambda value: f"{value:.0f}")
    axes.tick_params(axis="x", rotation=30)
    axes.grid(visible=True)
