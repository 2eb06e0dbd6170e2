"""Telemetry over time: what GPU and host did while the cells ran, sample by sample and as a trailing mean."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from analysis.quantities import QUANTITIES

from .lettering import fitted
from .page import INSIDE, Entry, arms_legend, page
from .points import fitted_arms
from .pooled import traces_of
from .scene import NothingToDraw, panels_of, series_key
from .style import BAND, GRID, QUIET, SMALL, drawn, looks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.quantities import Quantity
    from analysis.telemetry import Series

    from .page import Page
    from .pooled import Trace
    from .scene import Panel, Scene
    from .style import Look

TITLE = "Telemetry over time"
ANSWERS = "What GPU, processor, memory and disk did while the cells ran, and whether the arms differ in it."
ORDER = 80

LEFT, ROW, GAP, TITLES, FOOT = 1.62, 0.5, 0.11, 0.3, 0.45
ROUND = [1, 2, 5, 10]
MANY = 3000  # points of lines, above which they are drawn in pixels
ABREAST = 4  # workloads side by side; more begin a new band of rows


class Column(NamedTuple):
    """One workload: its panel, the samples of its cells, and quantity → tweak set → trace."""

    panel: Panel
    cells: Sequence[Series]
    traces: Mapping[Quantity, Mapping[str, Trace]]

    def all(self) -> list[Trace]:
        """Every trace of the workload."""
        return [trace for arms in self.traces.values() for trace in arms.values()]


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a row a quantity and a column a workload: every sample faintly, over them the trailing mean of each tweak set."""
    columns = [column for panel in panels_of(scene) if (column := _column(scene, panel)).traces]
    if not columns:
        raise NothingToDraw(scene.series_missing or "nothing was sampled beside the cells")
    flat = [one for one in QUANTITIES if _is_zero(one, columns)]
    shown = [one for one in QUANTITIES if one not in flat and any(one in column.traces for column in columns)]
    looks = looks_of(scene)
    names = list(dict.fromkeys(arm for column in columns for arm in column.panel.arms))
    legend = arms_legend(looks, names, fitted_arms(scene.runs, names, 2.6, SMALL, lines=1), lines=True)
    if any((one.measured_from_s or 0) > 0 for column in columns for one in column.cells):
        legend.append(Entry("measured steps", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    windows = sorted({trace.window for column in columns for trace in column.all()})
    lead = (
        f"Dots: samples of every cell. Lines: mean over the cells of a tweak set, trailing over {' or '.join(map(str, windows))} samples."
    )
    notes = ["Devices of a kind are taken together. Samples far from all others, and cells longer than most, are cut off."]
    notes += [f"Sampled, and 0 throughout: {', '.join(one.label for one in flat)}."] if flat else []
    notes += [f"Without samples: {scene.series_missing}."] if scene.series_missing else []
    bands = [columns[first : first + ABREAST] for first in range(0, len(columns), ABREAST)]
    tall = TITLES + (ROW + GAP) * len(shown) + FOOT
    sheet = page(scene, TITLE, lead, tall * len(bands), legend, notes)
    for at, band in enumerate(bands):
        _titles(sheet, tall * at, band)
        for row, quantity in enumerate(shown):
            axes = _row(sheet, tall * at + TITLES + (ROW + GAP) * row, quantity, band, looks)
            for one in axes if row == len(shown) - 1 else ():
                one.tick_params(labelbottom=True, bottom=True)
                one.spines["bottom"].set_visible(True)
                one.set_xlabel("s since the cell began")
    return sheet.figure


def _column(scene: Scene, panel: Panel) -> Column:
    cells = [scene.series[key] for cell in panel.cells if (key := series_key(panel.run, cell.id)) in scene.series]
    return Column(panel, cells, {one: traces for one in QUANTITIES if (traces := traces_of(scene, panel, one))})


def _is_zero(quantity: Quantity, columns: Sequence[Column]) -> bool:
    mine = [trace for column in columns for trace in column.traces.get(quantity, {}).values()]
    return bool(mine) and all(np.nanmax(np.abs(trace.raw)) == 0 for trace in mine)


def _titles(sheet: Page, top: float, band: Sequence[Column]) -> None:
    sheet.rule(top + 0.02)
    wide = (INSIDE - LEFT + GAP) / len(band)
    names = fitted([column.panel.title for column in band], wide - GAP, lines=1, weight="bold")
    for place, column in enumerate(band):
        sheet.text(LEFT + wide * place, top + 0.07, names[column.panel.title], fontweight="bold")


def _row(sheet: Page, top: float, quantity: Quantity, band: Sequence[Column], looks: Mapping[str, Look]) -> list[Axes]:
    """Draw one quantity under the workloads of a band, all to one scale."""
    sheet.text(0, top + ROW / 2, f"{quantity.label}\n{quantity.unit}", va="center", fontsize=SMALL)
    limits = _limits([trace for column in band for trace in column.traces.get(quantity, {}).values()])
    wide = (INSIDE - LEFT + GAP) / len(band)
    row = []
    for place, column in enumerate(band):
        axes = sheet.axes(LEFT + wide * place, top, wide - GAP, ROW, ylim=limits)
        _traces(axes, column.traces.get(quantity, {}), looks, in_pixels=sum(len(one.time_s) for one in column.all()) > MANY / len(band))
        _window(axes, column)
        axes.yaxis.set_major_locator(MaxNLocator(3, steps=ROUND))
        axes.xaxis.set_major_locator(MaxNLocator(3 if len(band) > 1 else 8, steps=ROUND))
        axes.grid(axis="y")
        axes.tick_params(labelleft=place == 0, left=place == 0, labelbottom=False, bottom=False)
        axes.spines["left"].set_visible(place == 0)
        axes.spines["bottom"].set_visible(False)
        row.append(axes)
    return row


def _traces(axes: Axes, arms: Mapping[str, Trace], looks: Mapping[str, Look], *, in_pixels: bool) -> None:
    for arm, trace in arms.items():
        alpha = 0.15 if len(trace.raw) > MANY // 3 else 0.35
        axes.plot(trace.raw_s, trace.raw, "o", color=looks[arm].color, markersize=1.4, markeredgewidth=0, alpha=alpha, rasterized=True)
    for arm, trace in arms.items():
        axes.plot(trace.time_s, trace.mean, color=looks[arm].color, linestyle=looks[arm].dashes, linewidth=1.1, rasterized=in_pixels)
    if not arms:
        axes.text(0.5, 0.5, "not sampled", transform=axes.transAxes, ha="center", va="center", fontsize=SMALL, color=QUIET)


def _limits(traces: Sequence[Trace]) -> tuple[float, float]:
    if not traces:
        return 0.0, 1.0
    raw, means = (
        np.concatenate([one[np.isfinite(one)] for one in values]) for values in zip(*((t.raw, t.mean) for t in traces), strict=True)
    )
    low, high = (float(function([*np.quantile(raw, [0.005, 0.995]), *means])) for function in (np.min, np.max))
    # A row that hardly moves is drawn as one that hardly moves.
    room = max(0.06 * (high - low), 0.01 * abs(high), 1e-9)
    return low - room, high + room


def _window(axes: Axes, column: Column) -> None:
    """Show the time in which most cells ran, and shade where their measured steps lay; before them is start-up and warm-up."""
    axes.set_xlim(0, max(float(trace.time_s[-1]) for trace in column.all()) or 1.0)
    ends = [
        (one.measured_from_s, one.measured_to_s)
        for one in column.cells
        if one.measured_from_s is not None and one.measured_to_s is not None
    ]
    start, end = (statistics.median(side) for side in zip(*ends, strict=True)) if ends else (0.0, 0.0)
    if start > 0:
        axes.axvspan(start, end, color=BAND, linewidth=0, zorder=0)
