"""Arms that alternate: settings, or a monitor, switched inside one process, and processes that take turns in one block."""

from __future__ import annotations

import math
import statistics
from functools import partial
from itertools import accumulate, pairwise
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.patches import Rectangle

from analysis.stats.effect import log_gains
from analysis.wording import number, unsigned

from .effects import UNTOUCHED
from .labels import arm_labels, joined, minus, room_for, time_unit, width_in
from .marks import BANDED, VERDICTS, above, ends_of, margin_band, names_beside
from .page import INSIDE, Section, dot, fill, line, stack
from .scene import NothingToDraw, comparison_of, panels_of
from .style import AGAIN, BAND, COLOURS, FAINT, GRID, INK, QUIET, SMALL, WRONG, looks_of, picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Cell, Comparison, Metric

    from .marks import Style
    from .page import Page
    from .scene import Panel, Scene
    from .style import Look

LEFT, STRIP, AIR, GAINS, AXIS = 0.75, 0.62, 0.06, 1.05, 0.40
MOST = 2  # processes whose steps are drawn: more look the same
UNDER, FOUND = COLOURS[0], AGAIN


class Words(NamedTuple):
    """How what was switched is spoken of."""

    title: str
    without: str
    under: str
    unseen: str


SETTINGS = Words("Settings switched inside a process", "as found", "under the tweak set", "What settings do when a program starts")
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


@picture(
    15,
    SETTINGS.title,
    "Every step with the arm it ran under, and by how much the settings changed it in each pair of segments.",
    DESIGNS=frozenset({"switch"}),
)
def switching(scene: Scene) -> Figure:
    """Draw a section a tweak set and workload: strips of steps over time, one a process, and below them the gain of each pair."""
    taken = [
        Taken(panel, arm, processes, comparison_of(scene, panel, arm))
        for panel in panels_of(scene)
        for arm in panel.arms
        if (processes := tuple(cell for cell in panel.cells if cell.tweakset == arm and cell.segments))
    ]
    if not taken:
        raise NothingToDraw("no settings were switched inside a process: `--design=switch` does that")
    words = MONITORS if any(one.panel.run.tweaksets[one.arm].monitor for one in taken) else SETTINGS
    legend = [
        dot(f"step {words.without}", FOUND, size=3.5),
        dot(f"step {words.under}", UNDER, size=3.5),
        dot("settling after a switch, not counted", size=3, markerfacecolor="none", markeredgewidth=0.6),
        line("median of a segment", INK, 1.8),
        dot("one pair", INK, "D", 4),
        dot("pair beyond the scale", WRONG, "v"),
        fill("95 % interval of all", BANDED, BANDED),
    ]
    margins = joined(unsigned(one.said.margin) for one in taken if one.said)
    legend += [fill(f"margin: ±{margins}")] if margins else []
    lead = (
        "Above: steps in the order they ran, a strip a process; both segments of a pair did the same work. Below: how much faster it was "
        f"{words.under}, pair by pair. {words.unseen} is not seen."
    )
    sections = []
    for one in taken:
        title = f"{one.panel.title} · {one.arm}{f' {UNTOUCHED}' if one.said and one.said.untouched else ''}"
        tall = 0.26 + len(one.processes[:MOST]) * (STRIP + AIR) + 2 * AXIS + 0.3 + GAINS + 0.05
        sections.append(Section(title, tall, partial(_switched, taken=one), lines=[_finding(one)], run=one.panel.run))
    hidden = max(len(one.processes) for one in taken)
    notes = [f"Steps of the first {MOST} of {hidden} processes; pairs of all of them below."] if hidden > MOST else []
    return stack(scene, words.title, lead, sections, legend, notes)


def _finding(taken: Taken) -> str:
    if taken.said is None:
        return "Nothing was compared."
    if taken.said.primary is None:
        return f"{taken.said.verdict}: {taken.said.reason}"
    effect, several = taken.said.primary, "" if len(taken.processes) == 1 else "es"
    pairs = sum(len(cell.segments) // 2 for cell in taken.processes)
    whole = (
        f"{number(effect.gain)} % [{number(effect.low)}, {number(effect.high)}]: {taken.said.verdict}. "
        f"{pairs} pairs in {len(taken.processes)} process{several}."
    )
    if taken.said.carry_over is not None:
        early, late, p = taken.said.carry_over
        whole += f" First half of the segments {number(early)} %, second half {number(late)} % (carry-over: p {p:.2g})."
    return minus(whole)


def _switched(sheet: Page, top: float, taken: Taken) -> None:
    shown = taken.processes[:MOST]
    every = [wall for cell in shown for segment in cell.segments if segment.steps for wall in segment.steps.wall_s]
    scale, unit = time_unit([statistics.median(every)])
    limits = _range([wall * scale for wall in every])
    longest = max(math.fsum(wall for segment in cell.segments if segment.steps for wall in segment.steps.wall_s) for cell in shown)
    down = top + 0.2
    sheet.text(LEFT, down - 0.03, f"step time, {unit}", va="bottom", fontsize=SMALL, color=QUIET)
    for at, cell in enumerate(shown):
        axes = sheet.axes(LEFT, down, INSIDE - LEFT - 0.05, STRIP, xlim=(0, longest), ylim=limits)
        axes.locator_params(axis="y", nbins=3)
        _strip(axes, cell, scale, limits[1])
        style: Style = {"rotation": 90, "ha": "center", "va": "center", "fontsize": SMALL, "color": QUIET}
        sheet.text(LEFT - 0.48, down + STRIP / 2, f"process {cell.block}", **style)
        down += STRIP + AIR
        axes.tick_params(axis="x", labelbottom=at == len(shown) - 1)
        axes.set_xlabel("time in steps, s" if at == len(shown) - 1 else "")
    _pair_gains(sheet, down + AXIS + 0.3 - AIR, taken)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Answer the range of steps but for the stalls, which would squash all others; they stand at the upper edge."""
    ordered = sorted(values)
    low, high = ordered[0], ordered[max(0, math.ceil(0.98 * len(ordered)) - 1)]
    room = 0.12 * (high - low) or 0.1 * high
    return low - room, high + room


def _strip(axes: Axes, cell: Cell, scale: float, highest: float) -> None:
    at = 0.0
    for segment in cell.segments:
        if segment.steps is None:
            continue
        walls, settle = segment.steps.wall_s, segment.steps.warmup
        color = UNDER if segment.tweakset == cell.tweakset else FOUND
        middles = [at + done - wall / 2 for done, wall in zip(accumulate(walls), walls, strict=True)]
        heights = [min(wall * scale, highest) for wall in walls]
        hollow: Style = {"markerfacecolor": "none", "markeredgecolor": color, "markersize": 2.2, "markeredgewidth": 0.5, "rasterized": True}
        axes.plot(middles[:settle], heights[:settle], "o", **hollow)
        axes.plot(middles[settle:], heights[settle:], "o", color=color, markersize=2.6, alpha=0.7, markeredgewidth=0, rasterized=True)
        ends = [at + math.fsum(walls[:settle]), at + math.fsum(walls)]
        level = statistics.median(walls[settle:]) * scale
        axes.plot(ends, [level] * 2, color=color, linewidth=1.8, solid_capstyle="butt", zorder=3)
        at = ends[1]


def pair_gains(taken: Taken, metric: Metric, baseline: str) -> list[list[tuple[int, float]]]:
    """Answer the gain of each pair, a fraction, with the pair's number; a list a process."""
    result = []
    for cell in taken.processes:
        sides: dict[int, dict[bool, float]] = {}
        for segment in cell.segments:
            if metric.name in segment.metrics:
                sides.setdefault(segment.block, {})[segment.tweakset == baseline] = segment.metrics[metric.name]
        pairs = [(at, side) for at, side in sides.items() if len(side) == 2]
        gains = log_gains(metric, [side[True] for _, side in pairs], [side[False] for _, side in pairs])
        result.append([(at, math.expm1(gain)) for (at, _), gain in zip(pairs, gains, strict=True)])
    return result


def _pair_gains(sheet: Page, top: float, taken: Taken) -> None:
    metric = taken.said.primary_metric if taken.said else taken.panel.metric
    processes = [[100 * gain for _, gain in gains] for gains in pair_gains(taken, metric, taken.panel.run.baseline)]
    count = sum(map(len, processes))
    axes = sheet.axes(LEFT, top, INSIDE - LEFT - 0.05, GAINS, xlim=(0.3, count + 0.7))
    margin = taken.said.margin if taken.said else 0.0
    axes.axhspan(*margin_band(margin), color=BAND, linewidth=0, zorder=0)
    value, low, high = ends_of(taken.said.primary if taken.said else None, 100)
    if value is not None and low is not None and high is not None:
        axes.axhspan(low, high, color=BANDED, linewidth=0, zorder=0.5)
        axes.axhline(value, color=UNDER, linewidth=1.2, zorder=1)
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    reach = _reach([gain for gains in processes for gain in gains], [150 * margin, abs(low or 0.0), abs(high or 0.0)])
    axes.set_ylim(-reach, reach)
    at = 0
    for cell, gains in zip(taken.processes, processes, strict=True):
        if at:
            axes.axvline(at + 0.5, color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
        spots = range(at + 1, at + len(gains) + 1)
        inside = [(spot, gain) for spot, gain in zip(spots, gains, strict=True) if abs(gain) <= reach]
        axes.plot([spot for spot, _ in inside], [gain for _, gain in inside], "D", color=INK, markersize=3.2, zorder=3, linestyle="none")
        for spot, gain in zip(spots, gains, strict=True):
            if abs(gain) > reach:
                axes.plot([spot], [math.copysign(0.95 * reach, gain)], "^" if gain > 0 else "v", color=WRONG, markersize=5, zorder=3)
        if len(taken.processes) > 1 and gains:
            above(axes, at + 0.6, f"{'process ' if not at else ''}{cell.block}", ha="left")
        at += len(gains)
    axes.set_ylabel("gain, %")
    axes.locator_params(axis="x", integer=True)
    axes.locator_params(axis="y", nbins=5)
    axes.set_xlabel("pair of segments, in the order they ran")
    if taken.said is not None:
        word = taken.said.verdict
        look: Style = {"ha": "right", "va": "bottom", "fontsize": SMALL, "fontweight": "bold", "color": VERDICTS[word]["color"]}
        sheet.text(INSIDE, top - 0.16, word, **look)


def _reach(values: Sequence[float], least: Sequence[float]) -> float:
    """Answer how far the axis of gains reaches, in percent; a pair that a stall struck must not squash the others."""
    sizes = sorted(map(abs, values)) or [1.0]
    usual = max(4 * statistics.median(sizes), sizes[math.ceil(0.7 * len(sizes)) - 1])
    return 1.15 * max([min(usual, sizes[-1]), *least, 0.1])


LANE, HEAD = 0.26, 0.2
SLOW = 1.25  # times the median slice of its arm in the block
ROOM = 0.9  # of a lane; the median slice fills half of it, one of twice the time all of it


class Slice(NamedTuple):
    """When an arm had its turn, seconds from the first of the block, and its steps' mean time over that of the arm's median slice."""

    begin_s: float
    end_s: float
    slowness: float


class Strip(NamedTuple):
    """The slices of a block by arm, one a round."""

    block: int
    blocks: int
    lanes: Mapping[str, Sequence[Slice]]


@picture(
    29,
    "Arms taking turns in one block",
    "Which arm had its slice when, how slow each slice was, and how much of the time was measured.",
    DESIGNS=frozenset({"turns"}),
)
def turns(scene: Scene) -> Figure:
    """Draw a section a workload: a lane an arm, a bar a slice."""
    result = [(panel, strip) for panel in panels_of(scene) if (strip := strip_of(panel)) is not None]
    if not result:
        raise NothingToDraw("no cells took turns (`--design=turns`), or the file does not say when")
    names = list(dict.fromkeys(name for _, strip in result for name in strip.lanes))
    labels, looks = arm_labels(scene.runs, names), looks_of(scene)
    left = room_for(list(labels.values()), 1.75)
    lead = (
        "A bar is a slice of a few steps; its height is their mean time, half a lane for the arm's median slice of this block. "
        "What slows all bars of a round alike is the machine, and falls on all arms; white between bars is switching."
    )
    legend = [line(f"slower than {SLOW:g} times its arm's median slice", WRONG, 2), line("a round begins", FAINT, 0.8)]
    sections = []
    for panel, strip in result:
        draw = partial(_lanes, left=left, strip=strip, looks=looks, labels=labels)
        title, tall = f"{panel.title} · block {strip.block}", HEAD + LANE * len(strip.lanes) + 0.5
        sections.append(Section(title, tall, draw, _summary(strip), run=panel.run))
    return stack(scene, turns.TITLE, lead, sections, legend)


def strip_of(panel: Panel) -> Strip | None:
    """The slices of a workload's most uneven block, whose rounds differ most: it shows what taking turns takes out."""
    blocks: dict[int, list[Cell]] = {}
    for cell in panel.cells:
        if cell.slice_starts_s:
            blocks.setdefault(cell.block, []).append(cell)
    if not blocks:
        return None
    block = max(blocks, key=lambda block: _unevenness(blocks[block]))
    begin_s = min(cell.slice_starts_s[0] for cell in blocks[block])
    lanes = {cell.tweakset: _slices(cell, begin_s) for cell in blocks[block]}
    return Strip(block, len(blocks), {arm: lanes[arm] for arm in panel.arms if arm in lanes})


def _unevenness(cells: Sequence[Cell]) -> float:
    """Standard deviation over rounds of the mean log step time of all arms."""
    return pstdev(fmean(math.log(fmean(part)) for part in of_round) for of_round in zip(*(cell.slices_s for cell in cells), strict=False))


def _slices(cell: Cell, begin_s: float) -> list[Slice]:
    usual = median(fmean(part) for part in cell.slices_s)
    timed = zip(cell.slice_starts_s, cell.slices_s, strict=True)
    return [Slice(at - begin_s, at - begin_s + math.fsum(part), fmean(part) / usual) for at, part in timed]


def _summary(strip: Strip) -> str:
    every = [one for lane in strip.lanes.values() for one in lane]
    span_s, slow = max(one.end_s for one in every), sum(one.slowness > SLOW for one in every)
    share = math.fsum(one.end_s - one.begin_s for one in every) / span_s
    which = f"the most uneven of {strip.blocks}; " if strip.blocks > 1 else ""
    return f"{which}{slow} of {len(every)} slices slow; {unsigned(share)} of {span_s:.0f} s measured"


def _lanes(sheet: Page, top: float, left: float, strip: Strip, looks: Mapping[str, Look], labels: Mapping[str, str]) -> None:
    count, wide = len(strip.lanes), INSIDE - left - 0.05
    top += HEAD
    last_s = max(lane[-1].end_s for lane in strip.lanes.values())
    axes = sheet.axes(left, top, wide, LANE * count, xlim=(0, last_s), ylim=(count, 0), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("time in the block, s")
    begins = [min(one.begin_s for one in of_round) for of_round in zip(*strip.lanes.values(), strict=False)]
    sheet.text(left - 0.1, top - 0.02, "round", ha="right", va="bottom", fontsize=SMALL, color=QUIET)
    for at, (begin_s, end_s) in enumerate(pairwise([*begins, last_s]), 1):
        axes.axvline(begin_s, color=FAINT, linewidth=0.8, zorder=0)
        if (end_s - begin_s) / last_s * wide > width_in(f"{at}", SMALL):  # else it would lie over its neighbour
            above(axes, (begin_s + end_s) / 2, f"{at}")
    for at, (arm, lane) in enumerate(strip.lanes.items()):
        axes.axhline(at + 1, color=GRID, linewidth=0.6, zorder=0)
        for one in lane:
            high = ROOM * min(1.0, one.slowness / 2)
            # Not a bar of the axes: their limits stand, and need not be looked for with each of hundreds.
            axes.add_artist(Rectangle((one.begin_s, at + 1), one.end_s - one.begin_s, -high, color=looks[arm].color, linewidth=0))
            if one.slowness > SLOW:
                axes.plot([one.begin_s, one.end_s], [at + 1 - high] * 2, color=WRONG, linewidth=2, solid_capstyle="butt")
    names_beside(sheet, top, left, [labels[arm] for arm in strip.lanes], LANE)
