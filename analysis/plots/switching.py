"""Settings, or a monitor, switched inside a process: every step with the arm it ran under, and what each pair of segments says."""

from __future__ import annotations

import math
import statistics
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.stats.effect import log_gains
from analysis.wording import number, unsigned

from .forest import UNTOUCHED, VERDICTS
from .lettering import fitted, wrapped
from .measures import minus, time_unit
from .page import HEAD_LINE, INSIDE, Entry, page
from .scene import NothingToDraw, comparison_of, panels_of
from .style import AGAIN, BAND, COLOURS, FAINT, GRID, HEAD, INK, QUIET, SMALL, TEXT, WRONG, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Cell, Comparison, Effect, Metric

    from .page import Page
    from .scene import Panel, Scene

TITLE = "Settings switched inside a process"
ANSWERS = "Every step with the arm it ran under, and by how much the settings changed it in each pair of segments."
ORDER = 15
DESIGNS = frozenset({"switch"})

LEFT, STRIP, AIR, GAINS, AXIS, BETWEEN, LABELS = 0.75, 0.62, 0.06, 1.05, 0.40, 0.30, 0.2
MOST = 4  # processes whose steps are drawn
UNDER, FOUND = COLOURS[0], AGAIN


class Words(NamedTuple):
    """How what was switched is spoken of."""

    title: str
    without: str
    under: str
    unseen: str


SETTINGS = Words(TITLE, "as found", "under the tweak set", "What settings do when a program starts")
MONITORS = Words(
    "Monitors stopped and continued inside a process",
    "without the monitor",
    "with the monitor at work",
    "What a monitor does at its start and for its report",
)


class Taken(NamedTuple):
    """One tweak set under one workload: its processes, each with segments, and what was said of it."""

    panel: Panel
    arm: str
    processes: tuple[Cell, ...]
    said: Comparison | None


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a tweak set and workload: strips of steps over time, one a process, and below them the gain of each pair."""
    taken = [
        Taken(panel, arm, processes, comparison_of(scene, panel, arm))
        for panel in panels_of(scene)
        for arm in panel.arms
        if (processes := tuple(cell for cell in panel.cells if cell.tweakset == arm and cell.segments))
    ]
    if not taken:
        raise NothingToDraw("no settings were switched inside a process: `--design=switch` does that")
    words = MONITORS if any(one.panel.run.tweaksets[one.arm].monitor for one in taken) else SETTINGS
    dot = {"marker": "o", "markersize": 3.5, "linestyle": "none"}
    legend = [
        Entry(f"step {words.without}", dot | {"color": FOUND}),
        Entry(f"step {words.under}", dot | {"color": UNDER}),
        Entry(
            "settling after a switch, not counted", dot | {"color": INK, "markerfacecolor": "none", "markersize": 3, "markeredgewidth": 0.6}
        ),
        Entry("median of a segment", {"color": INK, "linewidth": 1.8}),
        Entry("one pair", {"marker": "D", "markersize": 4, "linestyle": "none", "color": INK}),
        Entry("pair beyond the scale", {"marker": "v", "markersize": 5, "linestyle": "none", "color": WRONG}),
        Entry("95 % interval of all", {"facecolor": "#cfe0ee"}, patch=True),
    ]
    margins = dict.fromkeys(unsigned(one.said.margin) for one in taken if one.said)
    legend += [Entry(f"margin: ±{', '.join(margins)}", {"facecolor": BAND, "edgecolor": GRID}, patch=True)] if margins else []
    lead = (
        "Above: steps in the order they ran, a strip a process; both segments of a pair did the same work. Below: how much faster it was "
        f"{words.under}, pair by pair. {words.unseen} is not seen."
    )
    tall = [_tall(one) for one in taken]
    sheet = page(scene, words.title, lead, sum(tall), legend, _notes(taken))
    top = 0.0
    for one, height in zip(taken, tall, strict=True):
        _panel(sheet, top, one)
        top += height
    return sheet.figure


def _shown(one: Taken) -> Sequence[Cell]:
    return one.processes[:MOST]


def _tall(one: Taken) -> float:
    strips = len(_shown(one)) * (STRIP + AIR) + AXIS
    return 0.28 + HEAD_LINE * 0.92 * len(_finding(one)) + 0.24 + strips + BETWEEN + GAINS + AXIS + 0.05


def _finding(one: Taken) -> list[str]:
    said = one.said
    if said is None:
        return wrapped("Nothing was compared.", INSIDE, TEXT)
    if said.primary is None:
        return wrapped(f"{said.verdict}: {said.reason}", INSIDE, TEXT)
    effect = said.primary
    pairs = sum(len(cell.segments) // 2 for cell in one.processes)
    whole = (
        f"{number(effect.gain)} % [{number(effect.low)}, {number(effect.high)}]: {said.verdict}. {pairs} pairs in {len(one.processes)} "
        f"process{'' if len(one.processes) == 1 else 'es'}."
    )
    if said.carry_over is not None:
        early, late, p = said.carry_over
        whole += f" First half of the segments {number(early)} %, second half {number(late)} % (carry-over: p {p:.2g})."
    return wrapped(minus(whole.replace("carry-over", "carry over")).replace("carry over", "carry-over"), INSIDE, TEXT)


def _panel(sheet: Page, top: float, one: Taken) -> None:
    sheet.rule(top + 0.02)
    title = f"{one.panel.title} · {one.arm}{f' {UNTOUCHED}' if one.said and one.said.untouched else ''}"
    sheet.text(0, top + 0.07, fitted([title], INSIDE, HEAD, lines=1, weight="bold")[title], fontsize=HEAD, fontweight="bold")
    down = top + 0.26
    for line in _finding(one):
        sheet.text(0, down, line, fontsize=TEXT)
        down += HEAD_LINE * 0.92
    down += 0.26
    every = [wall for cell in _shown(one) for segment in cell.segments if segment.steps for wall in segment.steps.wall_s]
    scale, unit = time_unit([statistics.median(every)])
    low, high = _range([wall * scale for wall in every])
    longest = max(math.fsum(wall for segment in cell.segments if segment.steps for wall in segment.steps.wall_s) for cell in _shown(one))
    sheet.text(LEFT, down - 0.03, f"step time, {unit}", va="bottom", fontsize=SMALL, color=QUIET)
    for at, cell in enumerate(_shown(one)):
        axes = sheet.axes(LEFT, down, INSIDE - LEFT - 0.05, STRIP, xlim=(0, longest), ylim=(low, high))
        axes.locator_params(axis="y", nbins=3)
        _strip(axes, cell, scale, (low, high))
        sheet.text(
            LEFT - 0.42, down + STRIP / 2, f"process {cell.block}", rotation=90, ha="center", va="center", fontsize=SMALL, color=QUIET
        )
        down += STRIP + AIR
        if at < len(_shown(one)) - 1:
            axes.tick_params(axis="x", labelbottom=False)
        else:
            axes.set_xlabel("time in steps, s")
    _gains(sheet, down + AXIS + BETWEEN - AIR, one)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Answer the range of steps but for the stalls, which would squash all others; they stand at the upper edge."""
    ordered = sorted(values)
    low, high = ordered[0], ordered[max(0, math.ceil(0.98 * len(ordered)) - 1)]
    room = 0.12 * (high - low) or 0.1 * high
    return low - room, high + room


def _strip(axes: Axes, cell: Cell, scale: float, ends: tuple[float, float]) -> None:
    at = 0.0
    for segment in cell.segments:
        if segment.steps is None:
            continue
        walls, settle = segment.steps.wall_s, segment.steps.warmup
        color = UNDER if segment.tweakset == cell.tweakset else FOUND
        middles = [at + done - wall / 2 for done, wall in zip(accumulate(walls), walls, strict=True)]
        heights = [min(wall * scale, ends[1]) for wall in walls]
        axes.plot(
            middles[:settle],
            heights[:settle],
            "o",
            markerfacecolor="none",
            markeredgecolor=color,
            markersize=2.2,
            markeredgewidth=0.5,
            rasterized=True,
        )
        axes.plot(middles[settle:], heights[settle:], "o", color=color, markersize=2.6, alpha=0.7, markeredgewidth=0, rasterized=True)
        begin, end = at + math.fsum(walls[:settle]), at + math.fsum(walls)
        axes.plot(
            [begin, end], [statistics.median(walls[settle:]) * scale] * 2, color=color, linewidth=1.8, solid_capstyle="butt", zorder=3
        )
        at = end


def pair_gains(one: Taken, metric: Metric, baseline: str) -> list[list[tuple[int, float]]]:
    """Answer the gain of each pair, a fraction, with the pair's number; a list a process."""
    found = []
    for cell in one.processes:
        sides: dict[int, dict[bool, float]] = {}
        for segment in cell.segments:
            if metric.name in segment.metrics:
                sides.setdefault(segment.block, {})[segment.tweakset == baseline] = segment.metrics[metric.name]
        pairs = [(number, side) for number, side in sides.items() if len(side) == 2]
        gains = log_gains(metric, [side[True] for _, side in pairs], [side[False] for _, side in pairs])
        found.append([(number, math.expm1(gain)) for (number, _), gain in zip(pairs, gains, strict=True)])
    return found


def _gains(sheet: Page, top: float, one: Taken) -> None:
    metric = one.said.primary_metric if one.said else one.panel.metric
    processes = pair_gains(one, metric, one.panel.run.baseline)
    count = sum(map(len, processes))
    axes = sheet.axes(LEFT, top, INSIDE - LEFT - 0.05, GAINS, xlim=(0.3, count + 0.7))
    margin = one.said.margin if one.said else 0.0
    axes.axhspan(100 / (1 + margin) - 100, 100 * margin, color=BAND, linewidth=0, zorder=0)
    effect = one.said.primary if one.said else None
    if effect is not None:
        axes.axhspan(100 * effect.low, 100 * effect.high, color="#cfe0ee", linewidth=0, zorder=0.5)
        axes.axhline(100 * effect.gain, color=UNDER, linewidth=1.2, zorder=1)
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    reach = _reach([100 * gain for gains in processes for _, gain in gains], [150 * margin, *(_ends(effect) if effect else ())])
    axes.set_ylim(-reach, reach)
    at = 0
    for cell, gains in zip(one.processes, processes, strict=True):
        if at:
            axes.axvline(at + 0.5, color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
        places = range(at + 1, at + len(gains) + 1)
        _pairs(axes, places, [100 * gain for _, gain in gains], reach)
        if len(one.processes) > 1 and gains:
            where: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "left", "va": "bottom"}
            axes.text(at + 0.6, 1.01, f"{'process ' if not at else ''}{cell.block}", fontsize=SMALL, color=QUIET, **where)
        at += len(gains)
    axes.set_ylabel("gain, %")
    axes.locator_params(axis="x", integer=True)
    axes.locator_params(axis="y", nbins=5)
    axes.set_xlabel("pair of segments, in the order they ran")
    if one.said is not None:
        word = one.said.verdict
        sheet.text(INSIDE, top - 0.04, word, ha="right", va="bottom", fontsize=SMALL, fontweight="bold", color=VERDICTS[word]["color"])


def _ends(effect: Effect) -> tuple[float, float]:
    return abs(100 * effect.low), abs(100 * effect.high)


def _reach(values: Sequence[float], least: Sequence[float]) -> float:
    """Answer how far the axis of gains reaches, in percent; a pair that a stall struck must not squash the others."""
    sizes = sorted(map(abs, values)) or [1.0]
    usual = max(4 * statistics.median(sizes), sizes[math.ceil(0.7 * len(sizes)) - 1])
    return 1.15 * max([min(usual, sizes[-1]), *least, 0.1])


def _pairs(axes: Axes, places: Sequence[int], gains: Sequence[float], reach: float) -> None:
    """Mark the pairs; one beyond the axis has an arrow at its edge."""
    inside = [(place, gain) for place, gain in zip(places, gains, strict=True) if abs(gain) <= reach]
    axes.plot([place for place, _ in inside], [gain for _, gain in inside], "D", color=INK, markersize=3.2, zorder=3, linestyle="none")
    for place, gain in zip(places, gains, strict=True):
        if abs(gain) > reach:
            axes.plot([place], [math.copysign(0.95 * reach, gain)], "^" if gain > 0 else "v", color=WRONG, markersize=5, zorder=3)


def _notes(taken: Sequence[Taken]) -> list[str]:
    hidden = [one for one in taken if len(one.processes) > MOST]
    return [
        f"{one.panel.title} · {one.arm}: steps of the first {MOST} of {len(one.processes)} processes; all of them below." for one in hidden
    ]
