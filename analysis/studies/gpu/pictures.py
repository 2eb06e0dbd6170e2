"""Heat maps of GPU metrics over blocks × threads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from analysis.plots.page import Chart, Page, Plot, body_width
from analysis.plots.scene import NothingToDraw, some
from analysis.plots.style import FAINT, INK, QUIET, SMALL, draw_into, house_style

from .grid import ACTIVE, GRACT, LABELS, SMACT, SMOCC, UTILIZATION

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from .findings import Findings
    from .grid import KernelGrid

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
    drawings = {
        f"gpu_metrics_grid{f'_{at}' * (at > 1)}": partial(draw_grid, findings)
        for at, findings in enumerate(grids, 1)
    }
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
    chip = grid.chip
    notes.append(f"GPU: {chip.name or 'not named'}{f', {chip.sms} SMs' if chip.sms else ''}.")
    return Plot(lead, [section], notes=notes).lay_out((grid.run,), GRID_TITLE)


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
