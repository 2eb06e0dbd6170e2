"""The measurement itself: cells in the order they ran, steps inside them, their distribution, and the energy they took."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Sized
from functools import partial
from typing import TypeVar

import numpy as np

from analysis.summary import energy_j_per_sample, power_w, time_weighted, why_missing
from analysis.terms import Cell, Steps
from analysis.wording import digits

from .effects import gain_of
from .labels import arm_labels, joined, room_for, time_unit
from .marks import FOOT, ROW, Axes, Style, bars, dots, log_or_linear, names_beside, row_axes, trailing_mean
from .page import Page, Section, Spec, body_width, dot, fill, line
from .scene import TIMELESS, Panel, Scene, comparison_of, measured, panels_of, some
from .style import AGAIN, BAR, FAINT, INK, QUIET, SMALL, WARM_UP, Look, looks_of, picture

T = TypeVar("T", bound="Sized")
STRIP, TALL_STRIP, STRIP_GAP, TICKS = 0.33, 0.8, 0.05, 0.4
FEW_STRIPS, MOST_STRIPS = 8, 6  # strips that may be taller; and of one workload
LONG = 200  # steps: above it single steps are dots in a cloud and a trailing mean shows the way


@picture(30, "Step times inside the cells", NOT_OF=TIMELESS)
def steps(scene: Scene) -> Spec:
    """How each step of each cell went: warm-up, stalls, and drift inside a process."""
    timed = _by_arm(scene, _timed)
    shown = [(panel, {arm: arms[arm] for arm in _largest(scene, panel, arms)}) for panel, arms in timed]
    every = [cell for _, arms in shown for cells in arms.values() for cell in cells]
    legend = [
        dot("one step of one cell", QUIET, size=3),
        line("median of the blocks", INK, 1.3) if any(len(cell.wall_s) <= LONG for cell in every) else None,
        line("trailing mean of a thirtieth of the cell", INK, 1.3) if any(len(cell.wall_s) > LONG for cell in every) else None,
        fill("warm-up, not measured", WARM_UP) if any(cell.warmup for cell in every) else None,
    ]
    lead = "A strip a tweak set, a dot a step; higher is slower. Strips of a workload share a scale, logarithmic if it spans much."
    tall = STRIP if sum(len(arms) for _, arms in shown) > FEW_STRIPS else TALL_STRIP
    left = room_for(arm_labels(scene.runs, [arm for _, arms in shown for arm in arms]).values(), 1.75) + TICKS
    looks = looks_of(scene)
    sections, hidden = [], 0
    for (panel, all_arms), (_, arms) in zip(timed, shown, strict=True):
        cells = [cell for arm in all_arms.values() for cell in arm]
        unit = time_unit([max(max(cell.wall_s) for cell in cells)])[1]
        beside = f"step time, {unit}; {sum(len(cell.wall_s) for cell in cells)} steps of {len(cells)} cells"
        draw = partial(_strips, panel=panel, arms=arms, left=left, tall=tall, looks=looks)
        sections.append(Section(panel.title, (tall + STRIP_GAP) * len(arms) + 0.45, draw, beside, run=panel.run))
        hidden += len(all_arms) - len(arms)
    note = f"Of each workload the baseline and the tweak sets that differ most from it, {MOST_STRIPS} at most; {hidden} more ran."
    return Spec(lead, sections, legend, [note] if hidden else [])


def _by_arm(scene: Scene, of_arm: Callable[[Panel, str], T]) -> list[tuple[Panel, dict[str, T]]]:
    """Return what each arm has of each workload, where it has anything. Raises: NothingToDraw, where no step has a time."""
    every = ((panel, {arm: values for arm in panel.arms if len(values := of_arm(panel, arm))}) for panel in panels_of(scene))
    return some(((panel, arms) for panel, arms in every if arms), "the file keeps no times of single steps")


def _timed(panel: Panel, arm: str) -> list[Steps]:
    return [cell.steps for cell in measured(panel, arm) if cell.steps is not None]


def _largest(scene: Scene, panel: Panel, arms: Mapping[str, object]) -> list[str]:
    """Choose the tweak sets that are worth a strip: the baseline, then those that differ most; in the order of the run."""

    def size(arm: str) -> float:
        comparison = comparison_of(scene, panel, arm)
        return math.inf if arm == panel.run.baseline else abs((gain_of(comparison) if comparison else None) or 0.0)

    largest = sorted(arms, key=lambda arm: -size(arm))[:MOST_STRIPS]
    return [arm for arm in arms if arm in largest]


def _strips(
    sheet: Page, top: float, panel: Panel, arms: Mapping[str, list[Steps]], left: float, tall: float, looks: Mapping[str, Look]
) -> None:
    every = [cell for cells in arms.values() for cell in cells]
    low, high = min(min(cell.wall_s) for cell in every), max(max(cell.wall_s) for cell in every)
    scale, _ = time_unit([high])
    names_beside(sheet, top, left - TICKS, arm_labels([panel.run], arms).values(), tall + STRIP_GAP, lines=2)
    for row, (arm, cells) in enumerate(arms.items()):
        axes = sheet.axes(left, top + (tall + STRIP_GAP) * row, body_width() - left - 0.02, tall)
        axes.set_xlim(0, max(len(cell.wall_s) for cell in every) + 1)
        log_or_linear(axes, "y", low * scale, high * scale, most=2 if tall == STRIP else 5)
        axes.axvspan(0, max(cell.warmup for cell in cells) + 0.5, color=WARM_UP, linewidth=0, zorder=0)
        _steps(axes, cells, scale, looks[arm])
        if row < len(arms) - 1:
            axes.set_xticks([])
        else:
            axes.set_xlabel("step of the cell, from its first")


def _steps(axes: Axes, cells: Sequence[Steps], scale: float, look: Look) -> None:
    long = max(len(cell.wall_s) for cell in cells) > LONG
    for cell in cells:
        wall = np.asarray(cell.wall_s) * scale
        at = np.arange(1, len(wall) + 1)
        dots(axes, at, wall, look.color, markersize=1.2 if long else 3, alpha=0.35 if long else 0.5)
        if long:
            axes.plot(at, trailing_mean(wall, len(wall) // 30), color=INK, linewidth=0.9, rasterized=True)
    if not long:
        shortest = min(len(cell.wall_s) for cell in cells)
        middle = np.median([cell.wall_s[:shortest] for cell in cells], axis=0) * scale
        axes.plot(np.arange(1, shortest + 1), middle, color=INK, linewidth=1.0)


@picture(40, "Distribution of step times", NOT_OF=TIMELESS)
def distribution(scene: Scene) -> Spec:
    """Where in the distribution the tweak sets differ: short steps, typical ones, or the tail."""
    timed = _by_arm(scene, _walls)
    legend = [
        dot("one measured step", QUIET, size=3),
        line("10th to 90th percentile", INK, 1.2, marker="|", markersize=7),
        dot("median", INK, "D", 4.5, markerfacecolor="white"),
        line("10th percentile, median, 90th of the baseline", FAINT, 1.2, linestyle=(0, (3, 2))),
    ]
    lead = "All measured steps of all cells; left is faster. Steps are no replicates: they cannot say how sure a difference is."
    left = room_for(arm_labels(scene.runs, [arm for panel, _ in timed for arm in panel.arms]).values(), 1.8)
    looks = looks_of(scene)
    sections = []
    for panel, arms in timed:
        draw = partial(_spread, panel=panel, arms=arms, left=left, looks=looks)
        beside = f"{sum(map(len, arms.values()))} measured steps"
        sections.append(Section(panel.title, 0.29 * len(arms) + FOOT, draw, beside, run=panel.run))
    return Spec(lead, sections, legend)


def _walls(panel: Panel, arm: str) -> np.ndarray:
    cells = _timed(panel, arm)
    return np.concatenate([cell.wall_s[cell.warmup :] for cell in cells]) if cells else np.array([])


def _spread(sheet: Page, top: float, panel: Panel, arms: Mapping[str, np.ndarray], left: float, looks: Mapping[str, Look]) -> None:
    every = np.concatenate(list(arms.values()))
    scale, unit = time_unit([float(np.quantile(every, 0.9))])
    names = arm_labels([panel.run], arms).values()
    axes = row_axes(sheet, top, left, names, 0.29, lines=2, xlabel=f"step time, {unit}", grid="x")
    log_or_linear(axes, "x", float(every.min()) * scale, float(every.max()) * scale, most=8)
    for row, (arm, walls) in enumerate(arms.items()):
        ends = np.quantile(walls, (0.10, 0.50, 0.90)) * scale
        # The jitter is part of the picture: the same each time.
        dots(axes, walls * scale, row + 0.06 + np.random.default_rng(row).uniform(-0.2, 0.32, len(walls)), looks[arm].color)
        axes.plot(ends[[0, 2]], [row - 0.3] * 2, color=INK, marker="|", markersize=6, linewidth=1.3)
        axes.plot(ends[1], row - 0.3, "D", color=INK, markerfacecolor="white", markersize=4)
        if arm == panel.run.baseline:
            for end in ends:
                axes.axvline(end, color=FAINT, linestyle=(0, (3, 2)), linewidth=0.8, zorder=0.5)


@picture(70, "Power and energy per sample")
def energy(scene: Scene) -> Spec:
    """What the same work cost in watts and joules under each tweak set, where power was measured."""
    panels = panels_of(scene)
    those = (panel for panel in panels if any(power_w(cell) is not None for arm in panel.arms for cell in measured(panel, arm)))
    powered = some(those, f"power was not measured: {why_missing([cell for panel in panels for cell in panel.cells])}")
    lead = "All GPUs together, without the host, over the measured steps: energy a sample is Σ power · time / samples."
    legend = [
        fill("all measured steps together", BAR, BAR),
        fill("baseline", AGAIN, AGAIN),
        dot("one block", size=3.5, markerfacecolor="white")
        if any(len(measured(panel, arm)) > 1 for panel in powered for arm in panel.arms)
        else None,
    ]
    left = room_for(arm_labels(scene.runs, [arm for panel in powered for arm in panel.arms]).values(), 1.75)
    sections = [
        Section(panel.title, ROW * len(panel.arms) + FOOT, partial(_bars, panel=panel, left=left), run=panel.run) for panel in powered
    ]
    lost = [panel.title for panel in panels if panel not in powered]
    return Spec(lead, sections, legend, [f"Power was not measured: {joined(lost)}."] if lost else [])


COLUMNS: tuple[tuple[str, Callable[[Sequence[Cell]], float | None]], ...] = (
    ("mean power, W", lambda cells: time_weighted(cells, power_w)),
    ("energy a sample, J", energy_j_per_sample),
)


def _bars(sheet: Page, top: float, panel: Panel, left: float) -> None:
    names_beside(sheet, top, left, arm_labels([panel.run], panel.arms).values(), lines=2)
    wide = (body_width() - left + 0.1) / len(COLUMNS) - 0.1
    small: Style = {"va": "center", "fontsize": SMALL}
    for place, (label, value_of) in enumerate(COLUMNS):
        start = left + place * (wide + 0.1)
        axes = sheet.axes(start, top, wide - 0.55, ROW * len(panel.arms), grid="x", most={"x": 4})
        axes.set(ylim=(len(panel.arms) - 0.5, -0.5), yticks=[], xlabel=label)
        largest = 0.0
        for row, arm in enumerate(panel.arms):
            value, middle = value_of(measured(panel, arm)), top + ROW * (row + 0.5)
            if value is None:
                sheet.text(start + 0.06, middle, "not measured", color=AGAIN, **small)
                continue
            bars(axes, row, [(value, AGAIN if arm == panel.run.baseline else BAR)])
            points = [point for cell in measured(panel, arm) if (point := value_of([cell])) is not None]
            if len(points) > 1:
                look: Style = {"color": INK, "markersize": 3, "markerfacecolor": "white", "markeredgewidth": 0.7}
                axes.plot(points, [row] * len(points), "o", **look)
            sheet.text(start + wide - 0.49, middle, digits(value), **small)
            largest = max(largest, value, *points)
        axes.set_xlim(0, 1.04 * largest or 1.0)
