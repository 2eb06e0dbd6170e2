"""Pictures of adaptive designs: how a bisection's suspicion moved, and what a search tried and confirmed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Rectangle

from analysis.terms import Run
from analysis.wording import number

from .labels import fitted, joined, minus, room_for, wrapped
from .marks import (
    FASTER,
    HEADS,
    SHADES,
    SLOWER,
    SMALLEST_SCALE,
    Mark,
    MarkRow,
    Style,
    above,
    crossed,
    forest,
    known,
    rounded,
    scaled,
    ticks,
)
from .page import INSIDE, LINE, Page, Section, Spec, dot, fill, line
from .scene import NothingToDraw, Scene
from .style import AGAIN, BAND, COLOURS, FAINT, INK, MARKERS, QUIET, SMALL, WRONG, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Levels = dict[str, "str | None"]


def _concluded(scene: Scene, kind: str) -> list[Run]:
    """Return the runs of an adaptive design. Raises: NothingToDraw, where none came to a conclusion."""
    runs = [run for run in scene.runs if run.design.kind == kind]
    if not runs:
        raise NothingToDraw(f"no run is of `--design={kind}`")
    concluded = [run for run in runs if run.design.conclusion]
    if not concluded:
        raise NothingToDraw("the run ended before its design came to any conclusion")
    return concluded


def _section(run: Run, tall: float, draw: Callable[[Page, float], None]) -> Section:
    """Return a section headed by what the run's design was about, and its conclusion."""
    about = [joined(cell.workload for cell in run.cells), joined(factor.tweakset for factor in run.design.factors), f"run {run.run_id}"]
    return Section(" · ".join(about), tall, draw, lines=[minus(str(run.design.conclusion.get("text", "")))], run=run)


KEY_ROW, SPEED, BELIEF, STAGES = 0.19, 0.7, 1.35, 0.2
SUSPECTS = ("#00795a", "#8f4b7d", "#8a5a00")  # of the most suspected keys; blue and orange are speed here
ENOUGH = 0.95
AFTER, NOBODY = "belief, after each cell", "no key at all (dashed)"


@dataclass(frozen=True, slots=True)
class Suspected:
    """One cell: which keys were set, in which block and stage, and how much slower it was than its block, a fraction; None if it failed."""

    block: int
    confirms: bool
    keys: frozenset[str]
    slower: float | None


@dataclass(frozen=True, slots=True)
class Bisection:
    """One bisection; `beliefs` holds after each cell how likely each key is, `none` that it is none of them."""

    run: Run
    keys: tuple[str, ...]
    cells: tuple[Suspected, ...]
    beliefs: tuple[Mapping[str, float], ...]
    none: tuple[float, ...]


@picture(
    11,
    "Bisection: where the suspicion fell",
    "Which keys were set in which cell, how fast each cell was beside its block, and how the suspicion of each key moved.",
    DESIGNS=frozenset({"bisect"}),
)
def bisection(scene: Scene) -> Spec:
    """A section a run: speed of each cell, keys by cells, and below them the belief after each cell."""
    result = [read for run in _concluded(scene, "bisect") if (read := bisection_of(run)) is not None]
    if not result:
        raise NothingToDraw(
            "too few cells were measured to suspect any key, or the run's conclusion does not say which cells the bisection asked for"
        )
    legend = [
        fill("key set, cell faster than its block", FASTER, FASTER),
        fill("key set, cell slower", SLOWER, SLOWER),
        fill("blocks: cells that are compared with each other"),
        dot("cell failed", WRONG, "x") if any(cell.slower is None for read in result for cell in read.cells) else None,
    ]
    lead = (
        "From left to right the cells as they ran. Above: cost of a step (its time) against its block. Below: how likely a key matters, "
        "after each cell; one above 0.95 is named, if the cells that confirm it agree."
    )
    sections = [
        _section(read.run, STAGES + SPEED + KEY_ROW * len(read.keys) + 0.28 + BELIEF + 0.42, partial(_bisected, bisection=read))
        for read in result
    ]
    return Spec(lead, sections, legend)


def bisection_of(run: Run) -> Bisection | None:
    """Read a bisection's conclusion; None where it is not as this version of DeepTweak writes it."""
    conclusion: Any = run.design.conclusion
    try:
        records, beliefs = list(conclusion["cells"]), list(conclusion["belief"])
        logs = [None if record["cost"] is None else math.log(float(record["cost"])) for record in records]
        blocks: dict[int, list[float]] = {}
        for record, log in zip(records, logs, strict=True):
            blocks.setdefault(int(record["block"]), []).extend([] if log is None else [log])
        cells = tuple(
            Suspected(
                block=int(record["block"]),
                confirms=record["stage"] == "confirmation",
                keys=frozenset(record["keys"]),
                slower=None if log is None else math.expm1(log - statistics.fmean(blocks[int(record["block"])])),
            )
            for record, log in zip(records, logs, strict=True)
        )
        by_key = tuple({str(key): float(value) for key, value in belief["keys"].items()} for belief in beliefs)
        none = tuple(float(belief["none"]) for belief in beliefs)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    keys = tuple(by_key[-1]) if by_key else ()
    return Bisection(run, keys, cells, by_key, none) if keys and len(by_key) == len(cells) else None


def _bisected(sheet: Page, top: float, bisection: Bisection) -> None:
    cells = bisection.cells
    keys = sorted(bisection.keys, key=lambda key: -bisection.beliefs[-1][key])
    colors = dict(zip(keys, SUSPECTS, strict=False))
    # Below, names stand left of the numbers of an axis.
    left = max(room_for(keys, 2.3) + 0.1, room_for([NOBODY, AFTER, *colors], 1.8, SMALL) + 0.6)
    wide = min(INSIDE - left - 0.05, 0.3 * len(cells))
    ends, down = (0.5, len(cells) + 0.5), top + STAGES + SPEED
    below = down + KEY_ROW * len(keys) + 0.28
    speed = sheet.axes(left, top + STAGES, wide, SPEED, xlim=ends, xticks=[], most={"y": 4})
    grid = sheet.axes(left, down, wide, KEY_ROW * len(keys), xlim=ends, ylim=(len(keys), 0), xticks=[], yticks=[])
    belief = sheet.axes(left, below, wide, BELIEF, xlim=ends, ylim=(-0.03, 1.03), most={"x": 10}, whole="x")
    for axes in (speed, grid, belief):
        for block in list(dict.fromkeys(cell.block for cell in cells))[::2]:
            places = [at for at, cell in enumerate(cells, 1) if cell.block == block]
            axes.axvspan(places[0] - 0.5, places[-1] + 0.5, color=BAND, linewidth=0, zorder=0)
    for at, cell in enumerate(cells):
        if not at or cell.confirms != cells[at - 1].confirms:
            above(speed, at + 0.6, "confirming" if cell.confirms else "searching", ha="left")
    slower = {at: 100 * cell.slower for at, cell in enumerate(cells, 1) if cell.slower is not None}
    failed = [at for at, cell in enumerate(cells, 1) if cell.slower is None]
    speed.axhline(0, color=INK, linewidth=0.8, zorder=1)
    speed.vlines(list(slower), 0, list(slower.values()), color=FAINT, linewidth=1.2, zorder=1)
    speed.plot(list(slower), list(slower.values()), "o", color=INK, markersize=3.5, zorder=2)
    speed.plot(failed, [0] * len(failed), "x", color=WRONG, markersize=6, zorder=3)
    reach = 1.25 * max([2.0, *map(abs, slower.values())])
    speed.set_ylim(-reach, reach)
    sheet.text(left - 0.55, top + STAGES + SPEED / 2, "cost of a step,\n% of block", ha="right", va="center", fontsize=SMALL, color=QUIET)
    names = fitted(keys, left - 0.25, lines=1)
    for row, key in enumerate(keys):
        sheet.text(left - 0.1, down + KEY_ROW * (row + 0.5), names[key], ha="right", va="center", color=colors.get(key, INK))
    _set_keys(grid, cells, keys)
    _beliefs(belief, bisection, colors)
    rows = [(AFTER, QUIET, "normal"), *((key, color, "bold") for key, color in colors.items()), (NOBODY, INK, "normal")]
    names = fitted([name for name, _, _ in rows], left - 0.6, SMALL, lines=1, weight="bold")
    for row, (name, color, weight) in enumerate(rows):
        style: Style = {"ha": "right", "va": "center", "fontsize": SMALL, "color": color, "fontweight": weight}
        sheet.text(left - 0.5, below + 0.1 + 0.19 * row, names[name], **style)


def _set_keys(axes: Axes, cells: Sequence[Suspected], keys: Sequence[str]) -> None:
    largest = max([SMALLEST_SCALE, *(abs(cell.slower) for cell in cells if cell.slower is not None)])
    for place, cell in enumerate(cells, 1):
        face = FAINT if cell.slower is None else SHADES(0.5 - cell.slower / largest / 2)
        for row, key in enumerate(keys):
            if key in cell.keys:
                axes.add_patch(Rectangle((place - 0.44, row + 0.08), 0.88, 0.84, facecolor=face, edgecolor=AGAIN, linewidth=0.4))
            else:
                axes.plot([place], [row + 0.5], ".", color=FAINT, markersize=2)
    axes.spines[:].set_visible(False)


def _beliefs(axes: Axes, bisection: Bisection, colors: Mapping[str, str]) -> None:
    at = range(1, len(bisection.cells) + 1)
    for key in [*(key for key in bisection.keys if key not in colors), *reversed(list(colors))]:
        look: Style = {"linewidth": 1.6, "marker": "o", "markersize": 3, "zorder": 3} if key in colors else {"linewidth": 0.8, "zorder": 1}
        axes.plot(at, [belief[key] for belief in bisection.beliefs], color=colors.get(key, FAINT), **look)
    axes.plot(at, bisection.none, color=INK, linewidth=1.4, linestyle=(0, (4, 2)), zorder=2)
    axes.axhline(ENOUGH, color=QUIET, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    ticks(axes, "y", [0, 0.5, ENOUGH])
    axes.set_xlabel("cell, in the order they ran")


LEFT, TALL, AXIS, CANDIDATE = 0.62, 1.75, 0.46, 0.5
LEAST = 1.0  # percent that a scale spans to either side, however little cells differ
STOCK: Style = {"color": INK, "marker": "o"}
TRIED: Style = {"color": AGAIN, "marker": "o", "markersize": 4, "markerfacecolor": "white", "linestyle": "none"}


@dataclass(frozen=True, slots=True)
class Tried:
    """One cell: its levels, its stage, and the log of its cost over that of stock; None where it failed."""

    levels: Levels
    confirms: bool
    log: float | None

    @property
    def percent(self) -> float:
        """Its cost against stock."""
        return 100 * math.expm1(self.log or 0.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A combination that was run again: what its luckiest cell and the model promised and what the confirming cells say, parts of cost."""

    name: str
    levels: Levels
    seen: float | None
    promised: float | None
    confirmed: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class Search:
    """One search, in the order it ran."""

    run: Run
    cells: tuple[Tried, ...]
    candidates: tuple[Candidate, ...]


@picture(
    17,
    "Search: what was tried and what was confirmed",
    "How fast each combination was that the search tried, and what its best candidates came to when they were run again.",
    DESIGNS=frozenset({"search"}),
)
def trials(scene: Scene) -> Spec:
    """A section a run: cells by their order, then a row a candidate with what was promised and what was confirmed.

    The best of many noisy cells is mostly lucky, so what was seen while exploring stands beside what the confirming cells alone say.
    """
    result = [search for run in _concluded(scene, "search") if (search := search_of(run)) is not None]
    if not result:
        raise NothingToDraw("the run's conclusion does not say which cells the search asked for")
    legend = [
        dot("combination tried", **TRIED | {"size": 4.0}),
        line("best so far", QUIET, 1.0, linestyle=(0, (2, 2))),
        dot("stock", INK),
        *(dot(f"candidate {at + 1}", size=5.5, **_look(at)) for at in range(max(len(search.candidates) for search in result))),
        line("mean when run again", INK, 2.0),
        dot("failed", WRONG, "x") if any(cell.log is None for search in result for cell in search.cells) else None,
    ]
    lead = (
        "Cost of a step (its time) against stock; lower is faster. The best of many noisy cells is mostly lucky: only what candidates came "
        "to when they were run again beside stock is claimed."
    )
    sections = []
    for search in result:
        lines = [text for candidate in search.candidates for text in _levels(candidate)]
        rows = 0.28 + CANDIDATE * len(search.candidates) + AXIS + 0.1 if search.candidates else 0.0
        tall = STAGES + TALL + AXIS + rows + LINE * len(lines) + 0.1
        sections.append(_section(search.run, tall, partial(_searched, search=search, lines=lines)))
    return Spec(lead, sections, legend)


def search_of(run: Run) -> Search | None:
    """Read a search's conclusion; None where it is not as this version of DeepTweak writes it."""
    conclusion: Any = run.design.conclusion
    try:
        records = list(conclusion["cells"])
        logs = [None if record["cost"] is None else math.log(float(record["cost"])) for record in records]
        stock = [log for record, log in zip(records, logs, strict=True) if log is not None and not any(record["levels"].values())]
        base = statistics.fmean(stock) if stock else 0.0
        cells = tuple(
            Tried(dict(record["levels"]), record["stage"] == "confirmation", None if log is None else log - base)
            for record, log in zip(records, logs, strict=True)
        )
        candidates = tuple(_candidate(record, cells) for record in conclusion["candidates"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return Search(run, cells, candidates) if stock and len(cells) > 1 else None


def _candidate(record: Mapping[str, Any], cells: Sequence[Tried]) -> Candidate:
    seen = [cell.log for cell in cells if cell.log is not None and not cell.confirms and cell.levels == record["levels"]]
    fresh = record["confirmed"]
    return Candidate(
        name=str(record["name"]),
        levels=dict(record["levels"]),
        seen=math.expm1(min(seen)) if seen else None,
        promised=None if record["predicted"] is None else float(record["predicted"]),
        confirmed=None if fresh is None else (float(fresh["change"]), float(fresh["low"]), float(fresh["high"])),
    )


def _look(at: int) -> Style:
    return {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[(at + 1) % len(MARKERS)]}


def _levels(candidate: Candidate) -> list[str]:
    """What a candidate is, in lines."""
    levels = ", ".join(f"{name} = {'as found' if level is None else level}" for name, level in candidate.levels.items())
    return wrapped(f"{candidate.name}: {levels}.", INSIDE, SMALL)


def _searched(sheet: Page, top: float, search: Search, lines: Sequence[str]) -> None:
    scale: Style = {"most": {"x": 10, "y": 8}, "whole": "x", "grid": "y"}
    axes = sheet.axes(LEFT, top + STAGES, INSIDE - LEFT - 0.05, TALL, xlim=(0.2, len(search.cells) + 0.8), **scale)
    axes.set(xlabel="cell, in the order they ran", ylabel="cost of a step against stock, %")
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    _cells(axes, search)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -LEAST), max(high, LEAST))
    down = top + STAGES + TALL + AXIS
    if search.candidates:
        down = _candidates(sheet, down, search.candidates)
    for at, text in enumerate(lines):
        sheet.text(0, down + LINE * at, text, fontsize=SMALL, color=QUIET)


def _cells(axes: Axes, search: Search) -> None:
    """Mark the exploring cells and the best of them so far, then the confirming ones with the mean of each arm."""
    last = len(search.cells)
    first = next((at for at, cell in enumerate(search.cells, 1) if cell.confirms), None)
    above(axes, 0.4, "exploring", ha="left")
    if first is not None:
        axes.axvspan(first - 0.5, last + 0.8, color=BAND, linewidth=0, zorder=0)
        above(axes, last + 0.6, "confirming: candidates beside stock", ha="right")
    measured = [(at, cell) for at, cell in enumerate(search.cells, 1) if cell.log is not None]
    tried = [(at, cell.percent) for at, cell in measured if not cell.confirms]
    places, costs = [at for at, _ in tried], [cost for _, cost in tried]
    axes.plot(places, costs, zorder=2, **TRIED)
    best = list(accumulate(costs, min))
    axes.step(places, best, where="post", color=QUIET, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    arms: list[tuple[Style, Levels]] = [(_look(at), candidate.levels) for at, candidate in enumerate(search.candidates)]
    arms.append((STOCK, dict.fromkeys(search.cells[0].levels)))
    for look, levels in arms:
        for confirms in (False, True):
            cells = [(at, cell.percent) for at, cell in measured if cell.confirms == confirms and cell.levels == levels]
            axes.plot([at for at, _ in cells], [cost for _, cost in cells], markersize=5.5, linestyle="none", zorder=3, **look)
            if confirms and cells:
                ends = [next(at for at, cell in measured if cell.confirms) - 0.5, last + 0.5]
                mean = statistics.fmean(cost for _, cost in cells)
                axes.plot(ends, [mean] * 2, color=look["color"], linewidth=2.0, alpha=0.7, zorder=2)
    crossed(axes, [at for at, cell in enumerate(search.cells, 1) if cell.log is None])


def _candidates(sheet: Page, top: float, candidates: Sequence[Candidate]) -> float:
    """Draw a row a candidate: promised and confirmed. Returns: where the rows end."""
    left = room_for([candidate.name for candidate in candidates], 1.6) + 0.2
    legend = "× luckiest cell while exploring · ◇ expected by the model · ■ confirmed, 95 %"
    sheet.text(0, top + 0.06, legend, fontsize=SMALL, color=QUIET)
    top += 0.28
    rows = []
    for at, candidate in enumerate(candidates):
        look: Style = {"color": _look(at)["color"], "markersize": 5.5}
        promised = f"expected {number(candidate.promised)}" if candidate.promised is not None else "nothing expected"
        change, low, high = candidate.confirmed or (None, None, None)
        confirmed = "not measured again"
        if change is not None and low is not None and high is not None:
            confirmed = f"came to {number(change)} [{number(low)}, {number(high)}]"
        marks = [
            Mark((candidate.seen, None, None), look | {"marker": "x", "markersize": 6}, ("", "")),
            Mark((candidate.promised, None, None), look | {"marker": "D", "markerfacecolor": "white"}, (minus(promised), "")),
            Mark((change, low, high), look | {"marker": "s", "linewidth": 1.8}, (minus(confirmed), "")),
        ]
        rows.append(
            MarkRow(
                candidate.name,
                [mark._replace(ends=scaled(mark.ends, 100)) for mark in marks],
                color=look["color"],
                bold=True,
                rule=bool(at),
                tall=CANDIDATE,
            )
        )
    ends = [-LEAST, LEAST, *known(mark.ends for row in rows for mark in row.marks)]
    low, high = min(ends), max(ends)
    room = 0.08 * (high - low)

    def scale(axes: Axes) -> None:
        axes.set_xlim(low - room, high + room)
        rounded(axes, x=5)

    heads = [("", 0.12), ("", 0.0)]
    forest(sheet, top - HEADS, rows, left=left, right=2.45, label="cost of a step against stock, %", heads=heads, scale=scale)
    return top + CANDIDATE * len(candidates) + AXIS + 0.1
