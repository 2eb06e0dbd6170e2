"""Pictures of adaptive designs: how a bisection's suspicion moved, and what a search tried and confirmed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from matplotlib.patches import Rectangle

from analysis.terms import Run
from analysis.wording import number

from .labels import fitted, joined, minus, room_for
from .marks import (
    FASTER,
    SHADES,
    SLOWER,
    SMALLEST_SCALE,
    Axes,
    Ends,
    Mark,
    MarkRow,
    Style,
    above,
    crossed,
    forest_section,
    reach_of,
    scaled,
    ticks,
)
from .page import Page, Section, Spec, body_width, dot, fill, line
from .scene import Scene, some
from .style import AGAIN, BAND, COLOURS, FAINT, INK, MARKERS, QUIET, SMALL, WRONG, picture

T = TypeVar("T", "Bisection", "Search")
Levels = dict[str, "str | None"]


class AdaptiveCell(NamedTuple):
    """One cell: its block and stage, and the keys that it set or the levels of all factors.

    `log` is of its cost over that of what it is compared with, its block in a bisection, stock in a search; None where it failed.
    """

    block: int
    confirms: bool
    levels: Levels
    log: float | None

    @property
    def percent(self) -> float:
        """What it cost more than what it is compared with."""
        return 100 * math.expm1(self.log or 0.0)


class Bisection(NamedTuple):
    """One bisection, in the order it ran; after each cell, `beliefs` has how likely each key is, `none` that it is none of them."""

    run: Run
    cells: Sequence[AdaptiveCell]
    beliefs: Sequence[Mapping[str, float]]
    none: Sequence[float]


class Candidate(NamedTuple):
    """A combination that was run again: what its luckiest cell and the model promised, and what the confirming cells say; parts of cost."""

    name: str
    levels: Levels
    seen: float | None
    promised: float | None
    confirmed: Ends


class Search(NamedTuple):
    """One search, in the order it ran."""

    run: Run
    cells: Sequence[AdaptiveCell]
    candidates: Sequence[Candidate]


def _concluded(scene: Scene, kind: str, read: Callable[[Run], T | None], unreadable: str) -> list[T]:
    """Read the conclusions of the runs of a design. Raises: NothingToDraw, where none came to one that this version of DeepTweak knows."""
    runs = some((run for run in scene.runs if run.design.kind == kind), f"no run is of `--design={kind}`")
    result = []
    for run in some((run for run in runs if run.design.conclusion), "the run ended before its design came to any conclusion"):
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            result.append(read(run))
    return some((one for one in result if one is not None), unreadable)


def _section(run: Run, tall: float, draw: Callable[[Page, float], None]) -> Section:
    """Return a section headed by what the run's design was about, and its conclusion."""
    about = [joined(cell.workload for cell in run.cells), joined(factor.tweakset for factor in run.design.factors), f"run {run.run_id}"]
    return Section(" · ".join(about), tall, draw, lines=[minus(str(run.design.conclusion.get("text", "")))], run=run)


KEY_ROW, SPEED, BELIEF, STAGES = 0.19, 0.7, 1.35, 0.2
SUSPECTS = ("#00795a", "#8f4b7d", "#8a5a00")  # of the most suspected keys; blue and orange are speed here
ENOUGH = 0.95
AFTER, NOBODY = "belief, after each cell", "no key at all (dashed)"


@picture(11, "Bisection: where the suspicion fell", DESIGNS=frozenset({"bisect"}))
def bisection(scene: Scene) -> Spec:
    """Which keys were set in which cell, how fast each cell was beside its block, and how the suspicion of each key moved."""
    few = "too few cells were measured to suspect any key, or the run's conclusion does not say which cells the bisection asked for"
    result = _concluded(scene, "bisect", bisection_of, few)
    legend = [
        fill("key set, cell faster than its block", FASTER, FASTER),
        fill("key set, cell slower", SLOWER, SLOWER),
        fill("blocks: cells that are compared with each other"),
        dot("cell failed", WRONG, "x") if any(cell.log is None for read in result for cell in read.cells) else None,
    ]
    lead = (
        "From left to right the cells as they ran. Above: cost of a step (its time) against its block. Below: how likely a key matters, "
        "after each cell; one above 0.95 is named, if the cells that confirm it agree."
    )
    tall = STAGES + SPEED + 0.28 + BELIEF + 0.42
    sections = [_section(read.run, tall + KEY_ROW * len(read.beliefs[-1]), partial(_bisected, bisection=read)) for read in result]
    return Spec(lead, sections, legend)


def bisection_of(run: Run) -> Bisection | None:
    """Read a bisection's conclusion; None where too few cells were measured."""
    conclusion: Any = run.design.conclusion
    cells = [_read(record, dict.fromkeys(record["keys"])) for record in conclusion["cells"]]
    base = {
        block: statistics.fmean(logs)
        for block in {cell.block for cell in cells}
        if (logs := [cell.log for cell in cells if cell.block == block and cell.log is not None])
    }
    beliefs = [{str(key): float(value) for key, value in belief["keys"].items()} for belief in conclusion["belief"]]
    none = [float(belief["none"]) for belief in conclusion["belief"]]
    return Bisection(run, _against(cells, base), beliefs, none) if len(beliefs) == len(cells) and beliefs and beliefs[-1] else None


def _read(record: Any, levels: Levels) -> AdaptiveCell:
    log = None if record["cost"] is None else math.log(float(record["cost"]))
    return AdaptiveCell(int(record["block"]), record["stage"] == "confirmation", levels, log)


def _against(cells: Sequence[AdaptiveCell], base: Mapping[int, float]) -> list[AdaptiveCell]:
    return [cell._replace(log=None if cell.log is None else cell.log - base[cell.block]) for cell in cells]


def _bisected(sheet: Page, top: float, bisection: Bisection) -> None:
    cells = bisection.cells
    keys = sorted(bisection.beliefs[-1], key=lambda key: -bisection.beliefs[-1][key])
    colors = dict(zip(keys, SUSPECTS, strict=False))
    # Below, names stand left of the numbers of an axis.
    left = max(room_for(keys, 2.3) + 0.1, room_for([NOBODY, AFTER, *colors], 1.8, SMALL) + 0.6)
    wide = min(body_width() - left - 0.05, 0.3 * len(cells))
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
    slower = {at: cell.percent for at, cell in enumerate(cells, 1) if cell.log is not None}
    failed = [at for at, cell in enumerate(cells, 1) if cell.log is None]
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


def _set_keys(axes: Axes, cells: Sequence[AdaptiveCell], keys: Sequence[str]) -> None:
    largest = max([100 * SMALLEST_SCALE, *(abs(cell.percent) for cell in cells)])
    for place, cell in enumerate(cells, 1):
        face = FAINT if cell.log is None else SHADES(0.5 - cell.percent / largest / 2)
        for row, key in enumerate(keys):
            if key in cell.levels:
                axes.add_patch(Rectangle((place - 0.44, row + 0.08), 0.88, 0.84, facecolor=face, edgecolor=AGAIN, linewidth=0.4))
            else:
                axes.plot([place], [row + 0.5], ".", color=FAINT, markersize=2)
    axes.spines[:].set_visible(False)


def _beliefs(axes: Axes, bisection: Bisection, colors: Mapping[str, str]) -> None:
    at = range(1, len(bisection.cells) + 1)
    for key in [*(key for key in bisection.beliefs[-1] if key not in colors), *reversed(list(colors))]:
        look: Style = {"linewidth": 1.6, "marker": "o", "markersize": 3, "zorder": 3} if key in colors else {"linewidth": 0.8, "zorder": 1}
        axes.plot(at, [belief[key] for belief in bisection.beliefs], color=colors.get(key, FAINT), **look)
    axes.plot(at, bisection.none, color=INK, linewidth=1.4, linestyle=(0, (4, 2)), zorder=2)
    axes.axhline(ENOUGH, color=QUIET, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    ticks(axes, "y", [0, 0.5, ENOUGH])
    axes.set_xlabel("cell, in the order they ran")


LEFT, TALL, AXIS, CANDIDATE = 0.62, 1.75, 0.46, 0.5
LEAST = 1.0  # percent that a scale spans to either side, however little cells differ
STOCK: Style = {"color": INK, "marker": "o"}
TRIED: Style = {"color": AGAIN, "marker": "o", "markersize": 4.0, "markerfacecolor": "white", "linestyle": "none"}


@picture(17, "Search: what was tried and what was confirmed", DESIGNS=frozenset({"search"}))
def trials(scene: Scene) -> Spec:
    """How fast each combination was that the search tried, and what its best candidates came to when they were run again.

    A section a run: cells by their order, then a row a candidate with what was promised and what was confirmed.

    The best of many noisy cells is mostly lucky, so what was seen while exploring stands beside what the confirming cells alone say.
    """
    result = _concluded(scene, "search", search_of, "the run's conclusion does not say which cells the search asked for")
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
        sections.append(_section(search.run, STAGES + TALL + AXIS + 0.1, partial(_searched, search=search)))
        sections += [_candidates(search)] if search.candidates else []
    return Spec(lead, sections, legend)


def search_of(run: Run) -> Search | None:
    """Read a search's conclusion; None where it did not get far enough to have a stock to compare with."""
    conclusion: Any = run.design.conclusion
    cells = [_read(record, dict(record["levels"])) for record in conclusion["cells"]]
    stock = [cell.log for cell in cells if cell.log is not None and not any(cell.levels.values())]
    if not stock or len(cells) < 2:
        return None
    cells = _against(cells, dict.fromkeys((cell.block for cell in cells), statistics.fmean(stock)))
    return Search(run, cells, [_candidate(record, cells) for record in conclusion["candidates"]])


def _candidate(record: Mapping[str, Any], cells: Sequence[AdaptiveCell]) -> Candidate:
    seen = [cell.percent / 100 for cell in cells if cell.log is not None and not cell.confirms and cell.levels == record["levels"]]
    fresh, promised = record["confirmed"], record["predicted"]
    return Candidate(
        name=str(record["name"]),
        levels=dict(record["levels"]),
        seen=min(seen, default=None),
        promised=None if promised is None else float(promised),
        confirmed=(None, None, None) if fresh is None else (float(fresh["change"]), float(fresh["low"]), float(fresh["high"])),
    )


def _look(at: int) -> Style:
    return {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[(at + 1) % len(MARKERS)]}


def _searched(sheet: Page, top: float, search: Search) -> None:
    scale: Style = {"most": {"x": 10, "y": 8}, "whole": "x", "grid": "y"}
    axes = sheet.axes(LEFT, top + STAGES, body_width() - LEFT - 0.05, TALL, xlim=(0.2, len(search.cells) + 0.8), **scale)
    axes.set(xlabel="cell, in the order they ran", ylabel="cost of a step against stock, %")
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    _cells(axes, search)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -LEAST), max(high, LEAST))


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


def _candidates(search: Search) -> Section:
    """A row a candidate: promised and confirmed."""
    rows, lines = [], []
    for at, candidate in enumerate(search.candidates):
        look: Style = {"color": _look(at)["color"], "markersize": 5.5}
        expected = "nothing expected" if candidate.promised is None else f"expected {number(candidate.promised)}"
        change, low, high = candidate.confirmed
        confirmed = "not measured again"
        if change is not None and low is not None and high is not None:
            confirmed = f"came to {number(change)} [{number(low)}, {number(high)}]"
        marks = [
            Mark(scaled((candidate.seen, None, None), 100), look | {"marker": "x", "markersize": 6}, ("", "")),
            Mark(scaled((candidate.promised, None, None), 100), look | {"marker": "D", "markerfacecolor": "white"}, (minus(expected), "")),
            Mark(scaled(candidate.confirmed, 100), look | {"marker": "s", "linewidth": 1.8}, (minus(confirmed), "")),
        ]
        rows.append(MarkRow(candidate.name, marks, color=look["color"], bold=True, rule=bool(at), tall=CANDIDATE))
        levels = (f"{name} = {'as found' if level is None else level}" for name, level in candidate.levels.items())
        lines.append(f"{candidate.name}: {', '.join(levels)}.")
    settings: Style = {
        "left": room_for([row.name for row in rows], 1.6) + 0.2,
        "right": 2.45,
        "label": "cost of a step against stock, %",
        "heads": [("", 0.12), ("", 0.0)],
        "reach": reach_of((mark.ends for row in rows for mark in row.marks), LEAST),
    }
    beside = "× luckiest cell while exploring · ◇ expected by the model · ■ confirmed, 95 %"
    return forest_section("Candidates", rows, beside, lines, search.run, **settings)
