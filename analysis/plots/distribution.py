"""The distribution of step times in each arm: every step as a dot, and the quantiles that a mean hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .lettering import room_for
from .measures import time_unit
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .points import fitted_arms, spoken
from .scene import NothingToDraw, measured, panels_of
from .style import FAINT, INK, QUIET, drawn, looks_of
from .ticks import log_or_linear

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from .page import Page
    from .scene import Panel, Scene
    from .style import Look

TITLE = "Distribution of step times"
ANSWERS = "Where in the distribution the tweak sets differ: short steps, typical ones, or the tail."
ORDER = 40
NOT_OF = frozenset({"iteration", "job", "point"})

ROW = 0.29
QUANTILES = (0.10, 0.50, 0.90)


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a row a tweak set with all measured steps of its cells; the baseline's quantiles go down through the other rows."""
    panels = [panel for panel in panels_of(scene) if any(len(_times(panel, arm)) for arm in panel.arms)]
    if not panels:
        raise NothingToDraw("the file keeps no times of single steps")
    looks = looks_of(scene)
    legend = [
        Entry("one measured step", {"color": QUIET, "marker": "o", "markersize": 3, "linestyle": "none"}),
        Entry("10th to 90th percentile", {"color": INK, "marker": "|", "markersize": 7}),
        Entry("median", {"color": INK, "marker": "D", "markersize": 4.5, "linestyle": "none", "markerfacecolor": "white"}),
        Entry("10th percentile, median, 90th of the baseline", {"color": FAINT, "linestyle": (0, (3, 2))}),
    ]
    lead = "All measured steps of all cells; left is faster. Steps are no replicates: they cannot say how sure a difference is."
    tall = [PANEL_HEAD + ROW * len(panel.arms) + 0.46 for panel in panels]
    sheet = page(scene, TITLE, lead, sum(tall), legend)
    left = room_for(spoken(scene.runs, [arm for panel in panels for arm in panel.arms]).values(), 1.8)
    top = 0.0
    for panel, height in zip(panels, tall, strict=True):
        _panel(sheet, top, left, panel, looks)
        top += height
    return sheet.figure


def _times(panel: Panel, arm: str) -> np.ndarray:
    cells = [cell.steps for cell in measured(panel, arm) if cell.steps is not None]
    return np.concatenate([steps.wall_s[steps.warmup :] for steps in cells]) if cells else np.array([])


def _panel(sheet: Page, top: float, left: float, panel: Panel, looks: Mapping[str, Look]) -> None:
    times = {arm: found for arm in panel.arms if len(found := _times(panel, arm))}
    every = np.concatenate(list(times.values()))
    scale, unit = time_unit([float(np.quantile(every, 0.9))])
    panel_head(sheet, top, panel.title, f"{len(every)} measured steps")
    axes = sheet.axes(left, top + PANEL_HEAD, INSIDE - left - 0.02, ROW * len(times))
    axes.set(ylim=(len(times) - 0.5, -0.5), yticks=[], xlabel=f"step time, {unit}")
    axes.spines["left"].set_visible(False)
    log_or_linear(axes, "x", float(every.min()) * scale, float(every.max()) * scale, most=8)
    axes.grid(axis="x")
    names = fitted_arms([panel.run], times, left - 0.15)
    for row, (arm, found) in enumerate(times.items()):
        wall, ends = found * scale, np.quantile(found, QUANTILES) * scale
        # The jitter is part of the picture: the same each time.
        up = row + 0.06 + np.random.default_rng(row).uniform(-0.2, 0.32, len(wall))
        size, alpha = (2.6, 0.45) if len(wall) < 600 else (1.6, 0.22)
        axes.plot(wall, up, "o", color=looks[arm].color, markersize=size, alpha=alpha, markeredgewidth=0, rasterized=True)
        axes.plot(ends[[0, 2]], [row - 0.3] * 2, color=INK, marker="|", markersize=6, linewidth=1.3)
        axes.plot(ends[1], row - 0.3, "D", color=INK, markerfacecolor="white", markersize=4)
        sheet.text(left - 0.1, top + PANEL_HEAD + ROW * (row + 0.5), names[arm], ha="right", va="center", linespacing=1.0)
        if arm == panel.run.baseline:
            for end in ends:
                axes.axvline(end, color=FAINT, linestyle=(0, (3, 2)), linewidth=0.8, zorder=0.5)
