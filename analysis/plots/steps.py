"""Step times inside the cells, step by step: warm-up, stalls and drift inside a process, which every summary hides."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .lettering import room_for
from .measures import time_unit
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .points import fitted_arms, spoken
from .scene import NothingToDraw, measured, panels_of
from .style import GRID, INK, QUIET, WARM_UP, drawn, looks_of
from .ticks import log_or_linear
from .trailing import trailing_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Steps

    from .page import Page
    from .scene import Panel, Scene
    from .style import Look

TITLE = "Step times inside the cells"
ANSWERS = "How each step of each cell went: warm-up, stalls, and drift inside a process."
ORDER = 30
NOT_OF = frozenset({"iteration", "job", "point"})

TICKS, STRIP, TALL_STRIP, GAP = 0.4, 0.33, 0.8, 0.05
FEW = 8  # strips, which may be taller
LONG = 200  # steps: above it single steps are dots in a cloud and a trailing mean shows the way


class Place(NamedTuple):
    """Where the strips of a panel stand, and how tall each is; inches in the body of the page."""

    top: float
    left: float
    strip: float


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a strip a tweak set: its cells' steps over one another; a line follows the middle, or the trailing mean of a long cell."""
    panels = [panel for panel in panels_of(scene) if any(_timed(panel, arm) for arm in panel.arms)]
    if not panels:
        raise NothingToDraw("the file keeps no times of single steps")
    looks = looks_of(scene)
    every = [steps for panel in panels for arm in panel.arms for steps in _timed(panel, arm)]
    legend = [Entry("one step of one cell", {"color": QUIET, "marker": "o", "markersize": 3, "linestyle": "none"})]
    if any(len(steps.wall_s) <= LONG for steps in every):
        legend.append(Entry("median of the blocks", {"color": INK, "linewidth": 1.3}))
    if any(len(steps.wall_s) > LONG for steps in every):
        legend.append(Entry("trailing mean of a thirtieth of the cell", {"color": INK, "linewidth": 1.3}))
    if any(steps.warmup for steps in every):
        legend.append(Entry("warm-up, not measured", {"facecolor": WARM_UP, "edgecolor": GRID}, patch=True))
    rows = [sum(bool(_timed(panel, arm)) for arm in panel.arms) for panel in panels]
    strip = STRIP if sum(rows) > FEW else TALL_STRIP
    tall = [PANEL_HEAD + (strip + GAP) * count + 0.45 for count in rows]
    lead = "A strip a tweak set, a dot a step; higher is slower. Strips of a workload share a scale, logarithmic if it spans much."
    sheet = page(scene, TITLE, lead, sum(tall), legend)
    left = room_for(spoken(scene.runs, [arm for panel in panels for arm in panel.arms]).values(), 1.75) + TICKS
    top = 0.0
    for panel, height in zip(panels, tall, strict=True):
        _panel(sheet, Place(top, left, strip), panel, looks)
        top += height
    return sheet.figure


def _timed(panel: Panel, arm: str) -> list[Steps]:
    return [cell.steps for cell in measured(panel, arm) if cell.steps is not None]


def _panel(sheet: Page, place: Place, panel: Panel, looks: Mapping[str, Look]) -> None:
    top, left, strip = place
    arms = {arm: cells for arm in panel.arms if (cells := _timed(panel, arm))}
    every = [steps for cells in arms.values() for steps in cells]
    longest = max(len(steps.wall_s) for steps in every)
    low, high = min(min(steps.wall_s) for steps in every), max(max(steps.wall_s) for steps in every)
    scale, unit = time_unit([high])
    panel_head(sheet, top, panel.title, f"step time, {unit}; {sum(len(steps.wall_s) for steps in every)} steps of {len(every)} cells")
    names = fitted_arms([panel.run], arms, left - TICKS - 0.15)
    for row, (arm, cells) in enumerate(arms.items()):
        at = top + PANEL_HEAD + (strip + GAP) * row
        axes = sheet.axes(left, at, INSIDE - left - 0.02, strip)
        sheet.text(left - TICKS - 0.1, at + strip / 2, names[arm], ha="right", va="center", linespacing=1.0)
        axes.set_xlim(0, longest + 1)
        log_or_linear(axes, "y", low * scale, high * scale, most=2 if strip == STRIP else 5)
        axes.axvspan(0, max(steps.warmup for steps in cells) + 0.5, color=WARM_UP, linewidth=0, zorder=0)
        _strip(axes, cells, scale, looks[arm])
        if row < len(arms) - 1:
            axes.set_xticks([])
        else:
            axes.set_xlabel("step of the cell, from its first")


def _strip(axes: Axes, cells: Sequence[Steps], scale: float, look: Look) -> None:
    long = max(len(steps.wall_s) for steps in cells) > LONG
    for steps in cells:
        wall = np.asarray(steps.wall_s) * scale
        at = np.arange(1, len(wall) + 1)
        size = 1.2 if long else 3
        axes.plot(at, wall, "o", color=look.color, markersize=size, alpha=0.35 if long else 0.5, markeredgewidth=0, rasterized=True)
        if long:
            axes.plot(at, trailing_mean(wall, len(wall) // 30), color=INK, linewidth=0.9, rasterized=True)
    if not long:
        shortest = min(len(steps.wall_s) for steps in cells)
        middle = np.median([steps.wall_s[:shortest] for steps in cells], axis=0) * scale
        axes.plot(np.arange(1, shortest + 1), middle, color=INK, linewidth=1.0)
