"""Search: every cell that was tried, and what the best candidates came to when they were run again.

The best of many noisy cells is mostly lucky, so what was seen while exploring stands beside what the confirming cells alone say.
"""

from __future__ import annotations

import math
import statistics
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from analysis.wording import number

from .designed import concluded, conclusion_head, conclusion_in
from .lettering import fitted, room_for, wrapped
from .measures import minus
from .page import INSIDE, LINE, Entry, page
from .scene import NothingToDraw
from .searched import story_of
from .style import AGAIN, BAND, COLOURS, FAINT, GRID, INK, MARKERS, QUIET, SMALL, WRONG, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .page import Page
    from .scene import Scene
    from .searched import Candidate, Story, Tried

TITLE = "Search: what was tried and what was confirmed"
ANSWERS = "How fast each combination was that the search tried, and what its best candidates came to when they were run again."
ORDER = 17
DESIGNS = frozenset({"search"})

LEFT, STAGES, TALL, AXIS, ROW, HEAD_IN, NAMES, WORDS = 0.62, 0.2, 1.75, 0.46, 0.36, 0.28, 1.6, 2.3
LEAST = 1.0  # percent that a scale spans to either side, however little cells differ
STOCK: dict[str, Any] = {"color": INK, "marker": "o"}
TRIED: dict[str, Any] = {"color": AGAIN, "marker": "o", "markersize": 4, "markerfacecolor": "white", "linestyle": "none"}


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a run: cells by their order, then a row a candidate with what was promised and what was confirmed."""
    stories = [story for run in concluded(scene, "search") if (story := story_of(run)) is not None]
    if not stories:
        raise NothingToDraw("the run's conclusion does not say which cells the search asked for")
    looks = [Entry(f"candidate {at + 1}", {**_look(at), "linestyle": "none", "markersize": 5.5}) for at in range(_most(stories))]
    legend = [
        Entry("combination tried", TRIED),
        Entry("best so far", {"color": QUIET, "linewidth": 1.0, "linestyle": (0, (2, 2))}),
        Entry("stock", {**STOCK, "linestyle": "none", "markersize": 5}),
        *looks,
        Entry("mean when run again", {"color": INK, "linewidth": 2.0}),
    ]
    if any(cell.log is None for story in stories for cell in story.cells):
        legend.append(Entry("failed", {"color": WRONG, "marker": "x", "linestyle": "none"}))
    lead = (
        "Cost of a step (its time) against stock; lower is faster. The best of many noisy cells is mostly lucky: only what candidates came "
        "to when they were run again beside stock is claimed."
    )
    tall = [_tall(story) for story in stories]
    sheet = page(scene, TITLE, lead, sum(tall), legend)
    top = 0.0
    for story, height in zip(stories, tall, strict=True):
        _panel(sheet, conclusion_head(sheet, top, story.run), story)
        top += height
    return sheet.figure


def _most(stories: Sequence[Story]) -> int:
    return max(len(story.candidates) for story in stories)


def _look(at: int) -> dict[str, Any]:
    return {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[(at + 1) % len(MARKERS)]}


def _levels(candidate: Candidate) -> list[str]:
    """What a candidate is, in lines."""
    said = ", ".join(f"{name} = {'as found' if level is None else level}" for name, level in candidate.levels.items())
    return wrapped(f"{candidate.name}: {said}.", INSIDE, SMALL)


def _tall(story: Story) -> float:
    lines = sum(len(_levels(one)) for one in story.candidates)
    rows = HEAD_IN + ROW * len(story.candidates) + AXIS + 0.1 if story.candidates else 0.0
    return conclusion_in(story.run) + STAGES + TALL + AXIS + rows + LINE * lines + 0.1


def _panel(sheet: Page, top: float, story: Story) -> None:
    axes = sheet.axes(LEFT, top + STAGES, INSIDE - LEFT - 0.05, TALL, xlim=(0.2, len(story.cells) + 0.8))
    axes.set_xlabel("cell, in the order they ran")
    axes.set_ylabel("cost of a step against stock, %")
    axes.locator_params(axis="x", integer=True)
    axes.grid(axis="y")
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    _stages(axes, story)
    _tried(axes, story)
    _again(axes, story)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -LEAST), max(high, LEAST))
    down = top + STAGES + TALL + AXIS
    if story.candidates:
        down = _rows(sheet, down, story)
    for candidate in story.candidates:
        for line in _levels(candidate):
            sheet.text(0, down, line, fontsize=SMALL, color=QUIET)
            down += LINE


def _stages(axes: Axes, story: Story) -> None:
    first = next((at for at, cell in enumerate(story.cells, 1) if cell.confirms), None)
    style: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "va": "bottom", "fontsize": SMALL, "color": QUIET}
    axes.text(0.4, 1.02, "exploring", ha="left", **style)
    if first is not None:
        axes.axvspan(first - 0.5, len(story.cells) + 0.8, color=BAND, linewidth=0, zorder=0)
        axes.text(len(story.cells) + 0.6, 1.02, "confirming: candidates beside stock", ha="right", **style)


def _tried(axes: Axes, story: Story) -> None:
    """Mark the exploring cells, stock and later candidates among them, and the best of them so far."""
    known = [(at, cell) for at, cell in enumerate(story.cells, 1) if not cell.confirms and cell.log is not None]
    axes.plot([at for at, _ in known], [_percent(cell) for _, cell in known], zorder=2, **TRIED)
    best = list(accumulate((_percent(cell) for _, cell in known), min))
    axes.step([at for at, _ in known], best, where="post", color=QUIET, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    for at, cell in known:
        looks = [_look(place) for place, one in enumerate(story.candidates) if one.levels == cell.levels]
        looks += [STOCK] if not any(cell.levels.values()) else []
        for look in looks:
            axes.plot([at], [_percent(cell)], markersize=5.5, linestyle="none", zorder=3, **look)
    lost = [at for at, cell in enumerate(story.cells, 1) if cell.log is None]
    axes.plot(lost, [0.03] * len(lost), "x", color=WRONG, markersize=5, transform=axes.get_xaxis_transform(), clip_on=False)


def _again(axes: Axes, story: Story) -> None:
    """Mark the confirming cells by what was run, with the mean of each over the stage."""
    confirming = [(at, cell) for at, cell in enumerate(story.cells, 1) if cell.confirms and cell.log is not None]
    stock: Mapping[str, str | None] = dict.fromkeys(story.cells[0].levels)
    arms = [(STOCK, stock), *((_look(at), one.levels) for at, one in enumerate(story.candidates))]
    for look, levels in arms:
        there = [(at, _percent(cell)) for at, cell in confirming if cell.levels == levels]
        if there:
            axes.plot([at for at, _ in there], [value for _, value in there], markersize=5.5, linestyle="none", zorder=3, **look)
            ends = [confirming[0][0] - 0.5, len(story.cells) + 0.5]
            axes.plot(ends, [statistics.fmean(value for _, value in there)] * 2, color=look["color"], linewidth=2.0, alpha=0.7, zorder=2)


def _percent(cell: Tried) -> float:
    return 100 * math.expm1(cell.log or 0.0)


def _rows(sheet: Page, top: float, story: Story) -> float:
    """Draw a row a candidate: promised and confirmed; answers where the rows end."""
    left = room_for([one.name for one in story.candidates], NAMES) + 0.2
    wide = INSIDE - left - WORDS - 0.15
    tall = ROW * len(story.candidates)
    legend = "× luckiest cell while exploring    ◇ expected by the model    ■ confirmed, 95 %".replace("    ", " · ")
    sheet.text(0, top + 0.06, legend, fontsize=SMALL, color=QUIET)
    top += HEAD_IN
    ends = [
        one
        for candidate in story.candidates
        for one in (candidate.seen, candidate.promised, *(candidate.confirmed or ()))
        if one is not None
    ]
    low, high = min([-LEAST / 100, *ends]), max([LEAST / 100, *ends])
    room = 0.08 * (high - low) or 0.05
    axes = sheet.axes(
        left, top, wide, tall, ylim=(len(story.candidates) - 0.5, -0.5), yticks=[], xlim=(100 * (low - room), 100 * (high + room))
    )
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="x", color=GRID)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("cost of a step against stock, %")
    names = fitted([one.name for one in story.candidates], left - 0.3, lines=1)
    for row, one in enumerate(story.candidates):
        look = _look(row)
        middle = top + ROW * (row + 0.5)
        sheet.text(left - 0.15, middle, names[one.name], ha="right", va="center", color=look["color"], fontweight="bold")
        if one.seen is not None:
            axes.plot([100 * one.seen], [row], marker="x", color=look["color"], markersize=6, linestyle="none", zorder=3)
        if one.promised is not None:
            axes.plot(
                [100 * one.promised],
                [row],
                marker="D",
                color=look["color"],
                markerfacecolor="white",
                markersize=5.5,
                linestyle="none",
                zorder=3,
            )
        said = f"expected {number(one.promised)}" if one.promised is not None else "nothing expected"
        again = "not measured again"
        if one.confirmed is not None:
            change, begin, end = one.confirmed
            axes.plot([100 * begin, 100 * end], [row + 0.2] * 2, color=look["color"], linewidth=1.8, solid_capstyle="butt", zorder=2)
            axes.plot([100 * change], [row + 0.2], marker="s", color=look["color"], markersize=5.5, linestyle="none", zorder=3)
            again = f"came to {number(change)} [{number(begin)}, {number(end)}]"
        text = f"{said}\n{again}"
        sheet.text(left + wide + 0.12, middle, minus(text), va="center", fontsize=SMALL, linespacing=1.15)
        axes.axhline(row + 0.5, color=FAINT, linewidth=0.4)
    return top + tall + AXIS + 0.1
