"""Arms that alternate: settings, or a monitor, switched inside one process, and processes that take turns in one block."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from statistics import fmean, pstdev
from typing import NamedTuple

from matplotlib.patches import Rectangle

from analysis.stats.effect import log_gains
from analysis.terms import Cell, Comparison, Metric
from analysis.wording import number, spoken, unsigned

from .effects import UNTOUCHED, gain_with_interval
from .labels import arm_labels, minus, room_for, time_unit, width_in
from .marks import BANDED, Axes, Style, above, beyond, ends_of, margin_band, reach_of, row_axes
from .page import Page, Section, Spec, body_width, dot, fill, line, margin_entry
from .scene import Panel, Scene, comparison_of, panels_of, some
from .style import AGAIN, BAND, COLOURS, FAINT, GRID, INK, QUIET, SMALL, WRONG, Look, looks_of, picture

LEFT, STRIP, AIR, GAINS, AXIS = 0.75, 0.62, 0.06, 1.05, 0.40
MOST = 2  # processes whose steps are drawn: more look the same
UNDER, FOUND = COLOURS[0], AGAIN


class Switched(NamedTuple):
    """One tweak set under one workload: its processes, each with segments, and how it compares."""

    panel: Panel
    arm: str
    processes: tuple[Cell, ...]
    comparison: Comparison | None


@picture(15, "Settings switched inside a process", DESIGNS=frozenset({"switch"}))
def switching(scene: Scene) -> Spec:
    """Every step with the arm it ran under, and by how much the settings changed it in each pair of segments."""
    every = (
        Switched(panel, arm, processes, comparison_of(scene, panel, arm))
        for panel in panels_of(scene)
        for arm in panel.arms
        if (processes := tuple(cell for cell in panel.cells if cell.tweakset == arm and cell.segments))
    )
    switched = some(every, "no settings were switched inside a process: `--design=switch` does that")
    watched = any(result.panel.run.tweaksets[result.arm].monitor for result in switched)
    without, under = ("without the monitor", "with the monitor at work") if watched else ("as found", "under the tweak set")
    unseen = "What a monitor does at its start and for its report" if watched else "What settings do when a program starts"
    legend = [
        dot(f"step {without}", FOUND, size=3.5),
        dot(f"step {under}", UNDER, size=3.5),
        dot("settling after a switch, not counted", size=3, markerfacecolor="none", markeredgewidth=0.6),
        line("median of a segment", INK, 1.8),
        dot("one pair", INK, "D", 4),
        dot("pair beyond the scale", WRONG, "v"),
        fill("95 % interval of all", BANDED, BANDED),
        margin_entry((result.comparison.margin for result in switched if result.comparison), "margin: ±{}"),
    ]
    lead = (
        "Above: steps in the order they ran, a strip a process; both segments of a pair did the same work. Below: how much faster it was "
        f"{under}, pair by pair. {unseen} is not seen."
    )
    sections = []
    for result in switched:
        untouched = f" {UNTOUCHED}" if result.comparison and result.comparison.untouched else ""
        tall = 0.26 + len(result.processes[:MOST]) * (STRIP + AIR) + 2 * AXIS + 0.3 + GAINS + 0.05
        draw = partial(_switched, switched=result)
        title = f"{result.panel.title} · {result.arm}{untouched}"
        sections.append(Section(title, tall, draw, lines=[_finding(result)], run=result.panel.run))
    hidden = max(len(result.processes) for result in switched)
    notes = [f"Steps of the first {MOST} of {hidden} processes; pairs of all of them below."] if hidden > MOST else []
    return Spec(lead, sections, legend, notes, "Monitors stopped and continued inside a process" if watched else "")


def _finding(switched: Switched) -> str:
    comparison = switched.comparison
    if comparison is None:
        return "Nothing was compared."
    if comparison.primary is None:
        return f"{spoken(comparison.verdict)}: {comparison.reason}"
    processes = len(switched.processes)
    pairs = sum(len(cell.segments) // 2 for cell in switched.processes)
    text = f"{gain_with_interval(comparison.primary).replace(' ', ' % ', 1)}: {spoken(comparison.verdict)}. "
    text += f"{pairs} pairs in {processes} process{'' if processes == 1 else 'es'}."
    if comparison.carry_over is not None:
        early, late, p = comparison.carry_over
        text += f" First half of the segments {number(early)} %, second half {number(late)} % (carry-over: p {p:.2g})."
    return minus(text)


def _switched(sheet: Page, top: float, switched: Switched) -> None:
    cells = switched.processes[:MOST]
    measured = [[segment for segment in cell.segments if segment.steps] for cell in cells]
    every = sorted(wall for segments in measured for segment in segments for wall in segment.steps.wall_s)  # type: ignore[union-attr]  # it has steps
    scale, unit = time_unit([statistics.median(every)])
    # Stalls would squash all other steps; they stand at the upper edge.
    low, high = every[0] * scale, every[max(0, math.ceil(0.98 * len(every)) - 1)] * scale
    room = 0.12 * (high - low) or 0.1 * high
    longest = max(math.fsum(wall for segment in segments for wall in segment.steps.wall_s) for segments in measured)  # type: ignore[union-attr]  # as above
    down = top + 0.2
    sheet.text(LEFT, down - 0.03, f"step time, {unit}", va="bottom", fontsize=SMALL, color=QUIET)
    for at, cell in enumerate(cells):
        ends: Style = {"xlim": (0, longest), "ylim": (low - room, high + room)}
        axes = sheet.axes(LEFT, down, body_width() - LEFT - 0.05, STRIP, most={"y": 3}, **ends)
        _strip(axes, cell, scale, high + room)
        style: Style = {"rotation": 90, "ha": "center", "va": "center", "fontsize": SMALL, "color": QUIET}
        sheet.text(LEFT - 0.48, down + STRIP / 2, f"process {cell.block}", **style)
        down += STRIP + AIR
        last = at == len(cells) - 1
        axes.tick_params(axis="x", labelbottom=last)
        axes.set_xlabel("time in steps, s" if last else "")
    _pair_gains(sheet, down + AXIS + 0.3 - AIR, switched)


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


def pair_gains(processes: Sequence[Cell], metric: Metric, baseline: str) -> list[list[float]]:
    """Return the gain of each pair of segments, a fraction; a list a process."""
    result = []
    for cell in processes:
        sides: dict[int, dict[bool, float]] = {}
        for segment in cell.segments:
            if metric.name in segment.metrics:
                sides.setdefault(segment.block, {})[segment.tweakset == baseline] = segment.metrics[metric.name]
        pairs = [side for side in sides.values() if len(side) == 2]
        result.append([math.expm1(gain) for gain in log_gains(metric, [side[True] for side in pairs], [side[False] for side in pairs])])
    return result


def _pair_gains(sheet: Page, top: float, switched: Switched) -> None:
    comparison = switched.comparison
    metric = comparison.primary_metric if comparison else switched.panel.metric
    processes = [[100 * gain for gain in gains] for gains in pair_gains(switched.processes, metric, switched.panel.run.baseline)]
    every = [gain for gains in processes for gain in gains]
    margin = comparison.margin if comparison else 0.0
    value, low, high = ends_of(comparison.primary if comparison else None, 100)
    reach = reach_of(((gain, None, None) for gain in every), max(150 * margin, 0.1), [low, high])
    scale: Style = {"xlim": (0.3, len(every) + 0.7), "ylim": (-reach, reach), "most": {"x": 10, "y": 5}}
    wide = body_width() - LEFT - 0.05
    axes = sheet.axes(LEFT, top, wide, GAINS, ylabel="gain, %", xlabel="pair of segments, in the order they ran", **scale)
    axes.axhspan(*margin_band(margin), color=BAND, linewidth=0, zorder=0)
    if value is not None and low is not None and high is not None:
        axes.axhspan(low, high, color=BANDED, linewidth=0, zorder=0.5)
        axes.axhline(value, color=UNDER, linewidth=1.2, zorder=1)
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    spots = range(1, len(every) + 1)
    inside = [(spot, gain) for spot, gain in zip(spots, every, strict=True) if abs(gain) <= reach]
    axes.plot([spot for spot, _ in inside], [gain for _, gain in inside], "D", color=INK, markersize=3.2, zorder=3, linestyle="none")
    beyond(axes, spots, every, (-reach, reach), WRONG)
    at = 0
    for cell, gains in zip(switched.processes, processes, strict=True):
        if at:
            axes.axvline(at + 0.5, color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
        if len(switched.processes) > 1 and gains:
            above(axes, at + 0.6, f"{'process ' if not at else ''}{cell.block}", ha="left")
        at += len(gains)


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


@picture(29, "Arms taking turns in one block", DESIGNS=frozenset({"turns"}))
def turns(scene: Scene) -> Spec:
    """Which arm had its slice when, how slow each slice was, and how much of the time was measured."""
    took = ((panel, strip) for panel in panels_of(scene) if (strip := strip_of(panel)) is not None)
    result = some(took, "no cells took turns (`--design=turns`), or the file does not say when")
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
    return Spec(lead, sections, legend)


def strip_of(panel: Panel) -> Strip | None:
    """Return the slices of a workload's most uneven block, whose rounds differ most: it shows what taking turns takes out."""
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
    rounds = zip(*(cell.slices_s for cell in cells), strict=False)
    return pstdev(fmean(math.log(fmean(walls)) for walls in slices) for slices in rounds)


def _slices(cell: Cell, begin_s: float) -> list[Slice]:
    usual = statistics.median(fmean(walls) for walls in cell.slices_s)
    timed = zip(cell.slice_starts_s, cell.slices_s, strict=True)
    return [Slice(at - begin_s, at - begin_s + math.fsum(walls), fmean(walls) / usual) for at, walls in timed]


def _summary(strip: Strip) -> str:
    slices = [piece for lane in strip.lanes.values() for piece in lane]
    span_s, slow = max(piece.end_s for piece in slices), sum(piece.slowness > SLOW for piece in slices)
    share = math.fsum(piece.end_s - piece.begin_s for piece in slices) / span_s
    which = f"the most uneven of {strip.blocks}; " if strip.blocks > 1 else ""
    return f"{which}{slow} of {len(slices)} slices slow; {unsigned(share)} of {span_s:.0f} s measured"


def _lanes(sheet: Page, top: float, left: float, strip: Strip, looks: Mapping[str, Look], labels: Mapping[str, str]) -> None:
    top += HEAD
    last_s = max(lane[-1].end_s for lane in strip.lanes.values())
    names = [labels[arm] for arm in strip.lanes]
    axes = row_axes(sheet, top, left, names, LANE, right=0.05, xlim=(0, last_s), xlabel="time in the block, s")
    begins = [min(piece.begin_s for piece in slices) for slices in zip(*strip.lanes.values(), strict=False)]
    sheet.text(left - 0.1, top - 0.02, "round", ha="right", va="bottom", fontsize=SMALL, color=QUIET)
    for at, (begin_s, end_s) in enumerate(pairwise([*begins, last_s]), 1):
        axes.axvline(begin_s, color=FAINT, linewidth=0.8, zorder=0)
        if (end_s - begin_s) / last_s * (body_width() - left) > width_in(f"{at}", SMALL):  # else it would lie over its neighbour
            above(axes, (begin_s + end_s) / 2, f"{at}")
    for at, (arm, lane) in enumerate(strip.lanes.items()):
        foot = at + 0.5
        axes.axhline(foot, color=GRID, linewidth=0.6, zorder=0)
        for piece in lane:
            high, wide = ROOM * min(1.0, piece.slowness / 2), piece.end_s - piece.begin_s
            # Not a bar of the axes: their limits stand, and need not be looked for with each of hundreds.
            axes.add_artist(Rectangle((piece.begin_s, foot), wide, -high, color=looks[arm].color, linewidth=0))
            if piece.slowness > SLOW:
                axes.plot([piece.begin_s, piece.end_s], [foot - high] * 2, color=WRONG, linewidth=2, solid_capstyle="butt")
