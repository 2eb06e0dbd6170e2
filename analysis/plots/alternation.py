"""Settings or a monitor switched inside one process."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from analysis.stats.effect import log_gains
from analysis.terms import Cell, Comparison, Metric
from analysis.wording import unit_of

from .effects import UNTOUCHED
from .marks import Axes, Style, above, beyond, dots, ends_of, margin_band, reach_of
from .page import Chart, Page, Plot, body_width, dot, fill, line, margin_entry
from .scene import Panel, Scene, comparison_of, panels_of, some
from .style import AGAIN, BAND, COLOURS, FAINT, INK, QUIET, SMALL, WRONG, picture

LEFT, STRIP, GAINS, AXIS = 0.75, 0.68, 1.05, 0.40
MOST = 2  # processes with drawn steps: further ones look alike
UNDER, FOUND = COLOURS[0], AGAIN
BANDED = "#cfe0ee"  # an interval as an area
HOLLOW: Style = {"markerfacecolor": "none", "markeredgewidth": 0.5}


class Switched(NamedTuple):
    """One tweak set under one workload: its processes, each with segments, and its comparison."""

    panel: Panel
    arm: str
    processes: Sequence[Cell]
    comparison: Comparison | None


@picture(15, "Settings or monitors switched inside a process", DESIGNS=frozenset({"switch"}))
def switching(scene: Scene) -> Plot:
    """Every step with the arm it ran under, and the effect in each pair of segments."""
    every = (
        Switched(panel, arm, processes, comparison_of(scene, panel, arm))
        for panel in panels_of(scene)
        for arm in panel.arms
        if (processes := [cell for cell in panel.cells if cell.tweakset == arm and cell.segments])
    )
    switched = some(every, "no settings were switched inside a process (`--design=switch`)")
    legend = [
        dot("step of the baseline", FOUND, size=3.5),
        dot("step under the tweak set or monitor", UNDER, size=3.5),
        dot("settling after a switch, not counted", size=3, **HOLLOW),
        line("median of a segment", INK, 1.8),
        dot("one pair", INK, "D", 4),
        dot("pair beyond the scale", WRONG, "v"),
        fill("95 % interval of all", BANDED, BANDED),
        margin_entry(
            (result.comparison.margin for result in switched if result.comparison), "margin: ±{}"
        ),
    ]
    lead = (
        f"Above: steps of the first {MOST} processes in the order they ran; both segments of a "
        "pair did the same work. Below: gain of each pair, of all processes. Effects at program "
        "start are not seen."
    )
    sections = []
    for result in switched:
        untouched = f" {UNTOUCHED}" if result.comparison and result.comparison.untouched else ""
        title = f"{result.panel.title} · {result.arm}{untouched}"
        tall = 0.25 + len(result.processes[:MOST]) * STRIP + 2 * AXIS + 0.3 + GAINS
        draw = partial(_switched, switched=result)
        sections.append(Chart(title, tall, draw, run=result.panel.run))
    return Plot(lead, sections, legend)


def _switched(sheet: Page, top: float, switched: Switched) -> None:
    cells = switched.processes[:MOST]
    walls = [
        [wall for segment in cell.segments if segment.steps for wall in segment.steps.wall_s]
        for cell in cells
    ]
    every = sorted(wall for own in walls for wall in own)
    scale, unit = unit_of([statistics.median(every)])
    # Stalls would compress all other steps, so they are drawn at the upper edge.
    low, high = every[0] * scale, every[max(0, math.ceil(0.98 * len(every)) - 1)] * scale
    room = 0.12 * (high - low) or 0.1 * high
    ends: Style = {"xlim": (0, max(map(math.fsum, walls))), "ylim": (low - room, high + room)}
    sheet.text(LEFT, top + 0.17, f"step time, {unit}", va="bottom", fontsize=SMALL, color=QUIET)
    for at, cell in enumerate(cells):
        down, last = top + 0.2 + STRIP * at, at == len(cells) - 1
        axes = sheet.axes(
            LEFT, down, body_width() - LEFT - 0.05, STRIP - 0.06, most={"y": 3}, **ends
        )
        _strip(axes, cell, scale, high + room)
        small: Style = {"va": "center", "fontsize": SMALL, "color": QUIET}
        sheet.text(
            LEFT - 0.48,
            down + STRIP / 2,
            f"process {cell.block}",
            rotation=90,
            ha="center",
            **small,
        )
        axes.tick_params(axis="x", labelbottom=last)
        axes.set_xlabel("time in steps, s" if last else "")
    _pair_gains(sheet, top + 0.5 + STRIP * len(cells) + AXIS - 0.06, switched)


def _strip(axes: Axes, cell: Cell, scale: float, highest: float) -> None:
    begin = 0.0
    for segment in cell.segments:
        if segment.steps is None:
            continue
        walls, settle = np.array(segment.steps.wall_s), segment.steps.warmup
        ends = begin + np.cumsum(walls)
        color = UNDER if segment.tweakset == cell.tweakset else FOUND
        at, heights = ends - walls / 2, np.minimum(walls * scale, highest)
        dots(axes, at[:settle], heights[:settle], color, markersize=2.2, **HOLLOW)
        dots(axes, at[settle:], heights[settle:], color, alpha=0.7)
        level = np.median(walls[settle:]) * scale
        level_ends = [ends[settle - 1] if settle else begin, ends[-1]]
        median: Style = {"color": color, "linewidth": 1.8, "solid_capstyle": "butt", "zorder": 3}
        axes.plot(level_ends, [level] * 2, **median)
        begin = float(ends[-1])


def pair_gains(processes: Sequence[Cell], metric: Metric, baseline: str) -> list[list[float]]:
    """Return the gain of each pair of segments, a fraction; one list per process."""
    result = []
    for cell in processes:
        sides = defaultdict[int, dict[bool, float]](dict)
        for segment in cell.segments:
            if metric.name in segment.metrics:
                of_baseline = segment.tweakset == baseline
                sides[segment.block][of_baseline] = segment.metrics[metric.name]
        pairs = [side for side in sides.values() if len(side) == 2]
        gains = log_gains(metric, *([side[found] for side in pairs] for found in (True, False)))
        result.append([math.expm1(gain) for gain in gains])
    return result


def _pair_gains(sheet: Page, top: float, switched: Switched) -> None:
    comparison = switched.comparison
    metric = comparison.primary_metric if comparison else switched.panel.metric
    processes = pair_gains(switched.processes, metric, switched.panel.run.baseline)
    every = [100 * gain for gains in processes for gain in gains]
    margin = comparison.margin if comparison else 0.0
    value, low, high = ends_of(comparison.primary if comparison else None, 100)
    reach = reach_of(((gain, None, None) for gain in every), max(150 * margin, 0.1), [low, high])
    settings: Style = {
        "xlim": (0.3, len(every) + 0.7),
        "ylim": (-reach, reach),
        "most": {"x": 10, "y": 5},
        "xlabel": "pair of segments, in the order they ran",
        "ylabel": "gain, %",
    }
    axes = sheet.axes(LEFT, top, body_width() - LEFT - 0.05, GAINS, **settings)
    axes.axhspan(*margin_band(margin), color=BAND, linewidth=0, zorder=0)
    if value is not None and low is not None and high is not None:
        axes.axhspan(low, high, color=BANDED, linewidth=0, zorder=0.5)
        axes.axhline(value, color=UNDER, linewidth=1.2, zorder=1)
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    spots = range(1, len(every) + 1)
    inside = [gain if abs(gain) <= reach else math.nan for gain in every]
    axes.plot(spots, inside, "D", color=INK, markersize=3.2, zorder=3)
    beyond(axes, spots, every, (-reach, reach), WRONG)
    begins = [0, *accumulate(map(len, processes))]
    for cell, begin, end in zip(switched.processes, begins, begins[1:], strict=False):
        if begin:
            axes.axvline(begin + 0.5, color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
        if len(processes) > 1 and end > begin:
            above(
                axes, begin + 0.6, str(cell.block) if begin else f"process {cell.block}", ha="left"
            )
