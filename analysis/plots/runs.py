"""The measurement: the whole run over time, and the steps inside its cells."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from analysis.checks import not_put_back
from analysis.terms import Cell, Run, Steps
from analysis.wording import unit_of

from .labels import fitted, measure_of, room_for
from .marks import MUCH, Axes, Style, above, dots, round_ticks, row_axes, ticks, trailing_mean
from .page import ROUND, Chart, Entry, Page, Plot, body_width, dot, fill, line
from .scene import TIMELESS, Panel, Scene, measured, panels_of, some
from .style import AGAIN, BAND, FAINT, INK, QUIET, SMALL, WRONG, ArmStyle, looks_of, picture

WARM_UP = "#f3e3c3"
MOST_LOOKS = 7  # tweak sets distinguishable by colour and mark
LEFT = 0.5
NUMBER_IN = 0.45  # room for the number of a block
STEP: Style = {"markersize": 2, "alpha": 0.5, "zorder": 1.5}
ORDER = "cells in the order they ran"
DOUBT: Style = {
    "marker": "s",
    "markersize": 10,
    "markerfacecolor": "none",
    "markeredgecolor": "#E69F00",
    "markeredgewidth": 1.3,
}
MARKED = {
    "failed": dot("failed", WRONG, "x"),
    "skipped": dot("skipped", QUIET, "x"),
    "doubt": dot("not put back, or changed by others", **DOUBT),
}


@picture(27, "The whole run, cell by cell", NOT_OF=TIMELESS)
def run_order(scene: Scene) -> Plot:
    """Every cell in run order: drift of the machine, lost cells, and settings not put back."""
    orderless = (
        "one cell per tweak set and no record of run order: drift cannot be separated from a tweak"
    )
    panels = some((panel for panel in panels_of(scene) if panel.run.replicated), orderless)
    looks, legend = _looks(scene, list(dict.fromkeys(arm for one in panels for arm in one.arms)))
    sections = []
    for panel in panels:
        measure = measure_of(panel.metric, [*_values(panel).values()])
        beside = f"{measure.label} ({panel.metric.better} is better)"
        draw = partial(_order, panel=panel, looks=looks, scale=measure.scale)
        sections.append(Chart(panel.title, 1.77, draw, beside, run=panel.run))
    cells = [cell for panel in panels for cell in panel.cells]
    drawn = {cell.outcome for cell in cells} | {"doubt" for cell in cells if in_doubt(cell)}
    legend += [
        line("median of the block", AGAIN, 3, alpha=0.6),
        *(entry for what, entry in MARKED.items() if what in drawn),
    ]
    lead = (
        "Each mark is a cell, in the order they ran. Marks that rise or fall together from left "
        "to right are the machine's drift, not a tweak's effect."
    )
    return Plot(lead, sections, legend)


def _looks(scene: Scene, names: Sequence[str]) -> tuple[Mapping[str, ArmStyle], list[Entry]]:
    looks = looks_of(scene)
    labels = fitted(names, 2.6, SMALL, lines=1)
    changed = [name for name in names if looks[name].color not in {INK, AGAIN}]
    alike = changed if len(names) > MOST_LOOKS else []
    legend = [
        dot(labels[name], looks[name].color, looks[name].marker)
        for name in names
        if name not in alike
    ]
    if alike:
        kind = "monitors" if all(run.is_monitored for run in scene.runs) else "tweak sets"
        legend.append(dot(f"one of {len(alike)} {kind}", "#5b9bd0", size=4))
    return {**looks, **dict.fromkeys(alike, ArmStyle("#5b9bd0", "o", "-"))}, legend


def _values(panel: Panel) -> dict[str, float]:
    name = panel.metric.name
    return {cell.id: cell.metrics[name] for cell in panel.cells if name in cell.metrics}


def places_of(run: Run) -> dict[str, int]:
    """Return the place of each of a run's cells in the order they ran, by id."""
    return {cell.id: at for at, cell in enumerate(sorted(run.cells, key=lambda cell: cell.order))}


def in_doubt(cell: Cell) -> bool:
    """Return whether settings were not restored, or changed by others, or metrics disagree."""
    left_alone = cell.applied and cell.applied.left_alone
    return bool(cell.contradictions or not_put_back(cell) or left_alone)


def _order(
    sheet: Page, top: float, panel: Panel, looks: Mapping[str, ArmStyle], scale: float
) -> None:
    values, places = _values(panel), places_of(panel.run)
    axes = sheet.axes(LEFT, top + 0.14, body_width() - LEFT - 0.02, 1.15, grid="y", xlabel=ORDER)
    axes.margins(y=0.12)
    axes.set_xlim(-1, len(places))
    _blocks(axes, panel, places, {name: scale * value for name, value in values.items()})

    def plot(cells: Iterable[Cell], **style: Any) -> None:
        points = [(places[cell.id], scale * values[cell.id]) for cell in cells if cell.id in values]
        xs, ys = ([point[at] for point in points] for at in (0, 1))
        axes.plot(xs, ys, linestyle="none", **style)

    for arm in reversed(panel.arms):  # the baseline above all others
        style: Style = {"color": looks[arm].color, "marker": looks[arm].marker, "label": arm}
        edge: Style = {"markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.4}
        plot(measured(panel, arm), **style, **edge)
    for outcome, color in (("skipped", QUIET), ("failed", WRONG)):
        lost = [places[cell.id] for cell in panel.cells if cell.outcome == outcome]
        cross: Style = {"color": color, "markersize": 5, "clip_on": False}
        axes.plot(lost, [0.03] * len(lost), "x", transform=axes.get_xaxis_transform(), **cross)
    plot(filter(in_doubt, panel.cells), **DOUBT)


def _blocks(
    axes: Axes, panel: Panel, places: Mapping[str, int], heights: Mapping[str, float]
) -> None:
    blocks = sorted({cell.block for cell in panel.cells})
    apart = math.ceil(len(blocks) * NUMBER_IN / (body_width() - LEFT))
    for at, block in enumerate(blocks):
        cells = [cell.id for cell in panel.cells if cell.block == block]
        own = [places[cell] for cell in cells]
        begin, end = min(own) - 0.5, max(own) + 0.5
        if at % apart == 0:
            above(axes, (begin + end) / 2, str(block) if at else f"block {block}")
        if at % 2 == 0:
            axes.axvspan(begin, end, color=BAND, linewidth=0, zorder=0)
        values = [heights[cell] for cell in cells if cell in heights]
        if len(values) > 1:
            median: Style = {"color": AGAIN, "linewidth": 3, "alpha": 0.6, "zorder": 1}
            axes.hlines(statistics.median(values), begin, end, **median)


STRIP, TALL_STRIP, TICKS = 0.38, 0.85, 0.4
FEW_STRIPS, MOST_STRIPS = 8, 6  # up to this many strips may be taller; strips per workload
FULL = 0.76  # share of a strip that its scale fills


@picture(30, "Step times inside the cells", NOT_OF=TIMELESS)
def steps(scene: Scene) -> Plot:
    """Step times in each cell: warm-up, stalls, and drift inside a process."""
    timed = (
        (panel, {arm: own for arm in panel.arms if (own := _timed(panel, arm))})
        for panel in panels_of(scene)
    )
    every = some((both for both in timed if both[1]), "the file has no times of single steps")
    shown = [(panel, dict(list(arms.items())[:MOST_STRIPS])) for panel, arms in every]
    cells = [cell for _, arms in shown for own in arms.values() for cell in own]
    legend = [
        dot("one step of one cell", QUIET, size=3),
        line("median of the blocks, smoothed in long cells", INK, 1.3),
        fill("warm-up, not measured", WARM_UP) if any(cell.warmup for cell in cells) else None,
    ]
    lead = (
        "A strip per tweak set, a dot per step; higher is slower. Strips of a workload share a "
        "scale."
    )
    tall = STRIP if sum(len(arms) for _, arms in shown) > FEW_STRIPS else TALL_STRIP
    left = room_for([arm for _, arms in shown for arm in arms], 1.75) + TICKS
    looks = looks_of(scene)
    sections = []
    for panel, arms in shown:
        own = [cell for cells in arms.values() for cell in cells]
        unit = unit_of([min(min(cell.wall_s) for cell in own)])[1]
        count = sum(len(cell.wall_s) for cell in own)
        beside = f"step time, {unit}; {count} steps of {len(own)} cells"
        draw = partial(_strips, arms=arms, left=left, tall=tall, looks=looks)
        sections.append(Chart(panel.title, tall * len(arms) + 0.45, draw, beside, run=panel.run))
    hidden = sum(len(arms) for _, arms in every) - sum(len(arms) for _, arms in shown)
    note = f"The first {MOST_STRIPS} tweak sets of each workload; {hidden} more ran."
    return Plot(lead, sections, legend, [note] if hidden else [])


def _timed(panel: Panel, arm: str) -> list[Steps]:
    return [cell.steps for cell in measured(panel, arm) if cell.steps is not None]


def _strips(
    sheet: Page,
    top: float,
    arms: Mapping[str, list[Steps]],
    left: float,
    tall: float,
    looks: Mapping[str, ArmStyle],
) -> None:
    every = [cell for cells in arms.values() for cell in cells]
    low, high = min(min(cell.wall_s) for cell in every), max(max(cell.wall_s) for cell in every)
    most = max(len(cell.wall_s) for cell in every)
    scale, _ = unit_of([low])
    logarithmic, few = high / low > MUCH, 2 if tall == STRIP else 3
    curve = np.log if logarithmic else np.asarray
    ends = low * scale, high * scale
    even = MaxNLocator(few, steps=ROUND).tick_values(*ends).tolist()  # type: ignore[attr-defined]
    even = [number for number in even if ends[0] <= number <= ends[1]]
    thinned = even[:: max(1, math.ceil(len(even) / few))]
    numbers = round_ticks(*ends, few) if logarithmic else thinned
    bottom, span = curve(low), (curve(high) - curve(low)) or 0.1 * high

    def height(values: np.ndarray | float, row: int) -> np.ndarray:
        heights: np.ndarray = row + 0.43 - FULL * (curve(values) - bottom) / span
        return heights

    place: Style = {"xlim": (0, most + 1), "xlabel": "step number in the cell"}
    axes = row_axes(sheet, top, left, arms, tall, lines=2, numbers=TICKS, **place)
    written = {
        float(height(number / scale, row)): f"{number:g}"
        for row in range(len(arms))
        for number in numbers
    }
    ticks(axes, "y", written, written)
    for row, (arm, cells) in enumerate(arms.items()):
        axes.axhline(row + 0.5, color=FAINT, linewidth=0.7)
        if warmup := max(cell.warmup for cell in cells):
            axes.fill_between(
                [0, warmup + 0.5], row - 0.4, row + 0.5, color=WARM_UP, linewidth=0, zorder=0
            )
        walls = [np.asarray(cell.wall_s) for cell in cells]
        at = np.concatenate([np.arange(1, len(wall) + 1) for wall in walls])
        dots(axes, at, height(np.concatenate(walls), row), looks[arm].color, **STEP)
        shortest = min(map(len, walls))
        middle = np.median([wall[:shortest] for wall in walls], axis=0)
        way = height(trailing_mean(middle, max(1, shortest // 30)), row)
        axes.plot(np.arange(1, shortest + 1), way, color=INK, linewidth=0.9)
