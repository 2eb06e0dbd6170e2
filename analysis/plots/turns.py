"""One block whose arms took turns: which arm had its slice when, and how slow it was beside that arm's others."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING, NamedTuple

from analysis.wording import unsigned

from .lettering import fitted, room_for, width_in
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .points import spoken
from .scene import NothingToDraw, panels_of
from .style import FAINT, GRID, INK, QUIET, SMALL, WRONG, drawn, looks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from analysis.terms import Cell

    from .page import Page
    from .scene import Panel, Scene
    from .style import Look

TITLE = "Arms taking turns in one block"
ANSWERS = "Which arm had its slice when, how slow each slice was, and how much of the time was measured."
ORDER = 29
DESIGNS = frozenset({"turns"})

LANE, HEAD, AXIS, NAMES = 0.26, 0.2, 0.5, 1.75
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


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a workload: a lane an arm, a bar a slice."""
    found = [(panel, strip) for panel in panels_of(scene) if (strip := strip_of(panel)) is not None]
    if not found:
        raise NothingToDraw("no cells took turns (`--design=turns`), or the file does not say when")
    names = list(dict.fromkeys(name for _, strip in found for name in strip.lanes))
    labels, looks = spoken(scene.runs, names), looks_of(scene)
    left = room_for(list(labels.values()), NAMES)
    lead = (
        "A bar is a slice of a few steps; its height is their mean time, half a lane for the arm's median slice of this block. "
        "What slows all bars of a round alike is the machine, and falls on all arms; white between bars is switching."
    )
    legend = [
        Entry(f"slower than {SLOW:g} times its arm's median slice", {"color": WRONG, "linewidth": 2}),
        Entry("a round begins", {"color": FAINT, "linewidth": 0.8}),
    ]
    tall = [PANEL_HEAD + HEAD + LANE * len(strip.lanes) + AXIS for _, strip in found]
    sheet = page(scene, TITLE, lead, sum(tall), legend)
    top = 0.0
    for (panel, strip), height in zip(found, tall, strict=True):
        panel_head(sheet, top, f"{panel.title} · block {strip.block}", _said(strip))
        _lanes(sheet, top + PANEL_HEAD + HEAD, left, strip, {name: looks[name] for name in strip.lanes}, labels)
        top += height
    return sheet.figure


def strip_of(panel: Panel) -> Strip | None:
    """The slices of a workload's most uneven block, whose rounds differ most: it shows what taking turns takes out."""
    blocks: dict[int, list[Cell]] = {}
    for cell in panel.cells:
        if cell.slice_starts_s:
            blocks.setdefault(cell.block, []).append(cell)
    if not blocks:
        return None
    block = max(blocks, key=lambda one: _unevenness(blocks[one]))
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


def _said(strip: Strip) -> str:
    every = [one for lane in strip.lanes.values() for one in lane]
    span_s, slow = max(one.end_s for one in every), sum(one.slowness > SLOW for one in every)
    share = math.fsum(one.end_s - one.begin_s for one in every) / span_s
    which = f"the most uneven of {strip.blocks}; " if strip.blocks > 1 else ""
    return f"{which}{slow} of {len(every)} slices slow; {unsigned(share)} of {span_s:.0f} s measured"


def _lanes(  # noqa: PLR0913, PLR0917  # a place, and what stands there
    sheet: Page, top: float, left: float, strip: Strip, looks: Mapping[str, Look], labels: Mapping[str, str]
) -> None:
    count, wide = len(strip.lanes), INSIDE - left - 0.05
    last_s = max(lane[-1].end_s for lane in strip.lanes.values())
    axes = sheet.axes(left, top, wide, LANE * count, xlim=(0, last_s), ylim=(count, 0), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("time in the block, s")
    begins = [min(one.begin_s for one in of_round) for of_round in zip(*strip.lanes.values(), strict=False)]
    sheet.text(left - 0.1, top - 0.02, "round", ha="right", va="bottom", fontsize=SMALL, color=QUIET)
    for number, (begin_s, end_s) in enumerate(pairwise([*begins, last_s]), 1):
        axes.axvline(begin_s, color=FAINT, linewidth=0.8, zorder=0)
        if (end_s - begin_s) / last_s * wide > width_in(f"{number}", SMALL):  # else it would lie over its neighbour
            middle, above = (begin_s + end_s) / 2, axes.get_xaxis_transform()
            axes.text(middle, 1.02, f"{number}", transform=above, ha="center", va="bottom", fontsize=SMALL, color=QUIET)
    for at, (arm, lane) in enumerate(strip.lanes.items()):
        axes.axhline(at + 1, color=GRID, linewidth=0.6, zorder=0)
        for one in lane:
            high = ROOM * min(1.0, one.slowness / 2)
            axes.bar(one.begin_s, -high, one.end_s - one.begin_s, bottom=at + 1, align="edge", color=looks[arm].color, linewidth=0)
            if one.slowness > SLOW:
                axes.plot([one.begin_s, one.end_s], [at + 1 - high] * 2, color=WRONG, linewidth=2, solid_capstyle="butt")
        name = fitted([labels[arm]], left - 0.12, lines=1)[labels[arm]]
        sheet.text(left - 0.1, top + LANE * (at + 0.55), name, ha="right", va="center", color=INK)
