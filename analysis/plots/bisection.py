"""Bisection: which keys were set in which cell, how fast each cell was, and how the suspicion of each key moved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Rectangle

from .designed import concluded, conclusion_head, conclusion_in
from .lettering import fitted, room_for
from .page import INSIDE, Entry, page
from .parameters import COLOURS, FASTER, SLOWER, SMALLEST_SCALE
from .scene import NothingToDraw
from .style import AGAIN, BAND, FAINT, GRID, INK, QUIET, SMALL, WRONG, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Run

    from .page import Page
    from .scene import Scene

TITLE = "Bisection: where the suspicion fell"
ANSWERS = "Which keys were set in which cell, how fast each cell was beside its block, and how the suspicion of each key moved."
ORDER = 11
DESIGNS = frozenset({"bisect"})

KEYS, SPEED, ROW, GAP, BELIEF, AXIS, STAGES, WIDEST = 2.3, 0.7, 0.19, 0.28, 1.35, 0.42, 0.2, 0.3
LINES = ("#00795a", "#8f4b7d", "#8a5a00")  # of the most suspected keys; blue and orange are speed here
ENOUGH = 0.95
AFTER, NOBODY = "belief, after each cell", "no key at all (dashed)"


@dataclass(frozen=True, slots=True)
class Tried:
    """One cell: which keys were set, in which block and stage, and how much slower it was than its block, a fraction; None if it failed."""

    name: str
    block: int
    confirms: bool
    keys: frozenset[str]
    slower: float | None


@dataclass(frozen=True, slots=True)
class Story:
    """One bisection; `beliefs` holds after each cell how likely each key is, `none` that it is none of them."""

    run: Run
    keys: tuple[str, ...]
    cells: tuple[Tried, ...]
    beliefs: tuple[Mapping[str, float], ...]
    none: tuple[float, ...]


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a run: speed of each cell, keys by cells, and below them the belief after each cell."""
    stories = [story for run in concluded(scene, "bisect") if (story := story_of(run)) is not None]
    if not stories:
        raise NothingToDraw(
            "too few cells were measured to suspect any key, or the run's conclusion does not say which cells the bisection asked for"
        )
    legend = [
        Entry("key set, cell faster than its block", {"facecolor": FASTER}, patch=True),
        Entry("key set, cell slower", {"facecolor": SLOWER}, patch=True),
        Entry("blocks: cells that are compared with each other", {"facecolor": BAND, "edgecolor": GRID}, patch=True),
    ]
    if any(cell.slower is None for story in stories for cell in story.cells):
        legend.append(Entry("cell failed", {"color": WRONG, "marker": "x", "linestyle": "none"}))
    lead = (
        "From left to right the cells as they ran. Above: cost of a step (its time) against its block. Below: how likely a key matters, "
        "after each cell; one above 0.95 is named, if the cells that confirm it agree."
    )
    tall = [conclusion_in(story.run) + STAGES + SPEED + ROW * len(story.keys) + GAP + BELIEF + AXIS for story in stories]
    sheet = page(scene, TITLE, lead, sum(tall), legend)
    top = 0.0
    for story, height in zip(stories, tall, strict=True):
        _panel(sheet, conclusion_head(sheet, top, story.run), story)
        top += height
    return sheet.figure


def story_of(run: Run) -> Story | None:
    """Read a bisection's conclusion; None where it is not as this version of DeepTweak writes it."""
    found = run.design.conclusion
    try:
        asked, beliefs = list(found["cells"]), list(found["belief"])  # type: ignore[call-overload]  # tried
        costs = {at: float(one["cost"]) for at, one in enumerate(asked) if one["cost"] is not None}
        means: dict[int, float] = {}
        for block in {int(one["block"]) for one in asked}:
            mine = [math.log(costs[at]) for at, one in enumerate(asked) if at in costs and int(one["block"]) == block]
            means[block] = sum(mine) / len(mine) if mine else 0.0
        cells = tuple(
            Tried(
                name=str(one["name"]),
                block=int(one["block"]),
                confirms=one["stage"] == "confirmation",
                keys=frozenset(one["keys"]),
                slower=math.expm1(math.log(costs[at]) - means[int(one["block"])]) if at in costs else None,
            )
            for at, one in enumerate(asked)
        )
        known = tuple({str(key): float(value) for key, value in one["keys"].items()} for one in beliefs)
        none = tuple(float(one["none"]) for one in beliefs)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    keys = tuple(known[-1]) if known else ()
    return Story(run, keys, cells, known, none) if keys and len(known) == len(cells) else None


def _panel(sheet: Page, top: float, story: Story) -> None:
    last = story.beliefs[-1]
    keys = sorted(story.keys, key=lambda key: -last[key])
    colors = dict(zip(keys, LINES, strict=False))
    # Below, names stand left of the numbers of an axis.
    left = max(room_for(keys, KEYS) + 0.1, room_for([NOBODY, AFTER, *colors], KEYS - 0.5, SMALL) + 0.6)
    wide = min(INSIDE - left - 0.05, WIDEST * len(story.cells))
    ends = (0.5, len(story.cells) + 0.5)
    speed = sheet.axes(left, top + STAGES, wide, SPEED, xlim=ends, xticks=[])
    grid = sheet.axes(left, top + STAGES + SPEED, wide, ROW * len(keys), xlim=ends, ylim=(len(keys) - 0.5, -0.5), xticks=[], yticks=[])
    belief = sheet.axes(left, top + STAGES + SPEED + ROW * len(keys) + GAP, wide, BELIEF, xlim=ends, ylim=(-0.03, 1.03))
    for axes in (speed, grid, belief):
        _blocks(axes, story)
    _stages(speed, story)
    _speed(speed, story)
    sheet.text(left - 0.55, top + STAGES + SPEED / 2, "cost of a step,\n% of block", ha="right", va="center", fontsize=SMALL, color=QUIET)
    names = fitted(keys, left - 0.25, lines=1)
    for row, key in enumerate(keys):
        middle = top + STAGES + SPEED + ROW * (row + 0.5)
        sheet.text(left - 0.1, middle, names[key], ha="right", va="center", color=colors.get(key, INK))
    _grid(grid, story, keys)
    _belief(sheet, belief, (left, top + STAGES + SPEED + ROW * len(keys) + GAP), story, colors)


def _blocks(axes: Axes, story: Story) -> None:
    """Shade every other block."""
    for turn, block in enumerate(dict.fromkeys(cell.block for cell in story.cells)):
        mine = [at for at, cell in enumerate(story.cells, 1) if cell.block == block]
        if turn % 2 == 0:
            axes.axvspan(mine[0] - 0.5, mine[-1] + 0.5, color=BAND, linewidth=0, zorder=0)


def _stages(axes: Axes, story: Story) -> None:
    """Name the stages above the first cell of each run of them."""
    style: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "left", "va": "bottom", "fontsize": SMALL, "color": QUIET}
    said = ""
    for at, cell in enumerate(story.cells, 1):
        word = "confirming" if cell.confirms else "searching"
        if word != said:
            axes.text(at - 0.4, 1.04, word, **style)
        said = word


def _speed(axes: Axes, story: Story) -> None:
    at = [place for place, cell in enumerate(story.cells, 1) if cell.slower is not None]
    values = [100 * cell.slower for cell in story.cells if cell.slower is not None]
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    axes.vlines(at, 0, values, color=FAINT, linewidth=1.2, zorder=1)
    axes.plot(at, values, "o", color=INK, markersize=3.5, zorder=2)
    lost = [place for place, cell in enumerate(story.cells, 1) if cell.slower is None]
    axes.plot(lost, [0] * len(lost), "x", color=WRONG, markersize=6, zorder=3)
    reach = 1.25 * max([2.0, *map(abs, values)])
    axes.set_ylim(-reach, reach)
    axes.locator_params(axis="y", nbins=4)


def _grid(axes: Axes, story: Story, keys: Sequence[str]) -> None:
    largest = max([SMALLEST_SCALE, *(abs(cell.slower) for cell in story.cells if cell.slower is not None)])
    for place, cell in enumerate(story.cells, 1):
        face = FAINT if cell.slower is None else COLOURS(0.5 - max(-1.0, min(1.0, cell.slower / largest)) / 2)
        for row, key in enumerate(keys):
            if key in cell.keys:
                axes.add_patch(Rectangle((place - 0.44, row - 0.42), 0.88, 0.84, facecolor=face, edgecolor=AGAIN, linewidth=0.4))
            else:
                axes.plot([place], [row], ".", color=FAINT, markersize=2)
    axes.spines[:].set_visible(False)


def _belief(sheet: Page, axes: Axes, corner: tuple[float, float], story: Story, colors: Mapping[str, str]) -> None:
    left, top = corner
    at = range(1, len(story.cells) + 1)
    for key in story.keys:
        if key not in colors:
            axes.plot(at, [one[key] for one in story.beliefs], color=FAINT, linewidth=0.8, zorder=1)
    for key, color in reversed(list(colors.items())):
        axes.plot(at, [one[key] for one in story.beliefs], color=color, linewidth=1.6, marker="o", markersize=3, zorder=3)
    axes.plot(at, story.none, color=INK, linewidth=1.4, linestyle=(0, (4, 2)), zorder=2)
    axes.axhline(ENOUGH, color=QUIET, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    axes.set_yticks([0, 0.5, ENOUGH])
    axes.set_yticklabels(["0", "0.5", "0.95"])
    axes.set_xlabel("cell, in the order they ran")
    axes.locator_params(axis="x", integer=True)
    rows = [
        (AFTER, QUIET, "normal"),
        *((key, color, "bold") for key, color in colors.items()),
        (NOBODY, INK, "normal"),
    ]
    names = fitted([name for name, _, _ in rows], left - 0.6, SMALL, lines=1, weight="bold")
    for row, (name, color, weight) in enumerate(rows):
        sheet.text(left - 0.5, top + 0.1 + 0.19 * row, names[name], ha="right", va="center", fontsize=SMALL, color=color, fontweight=weight)
