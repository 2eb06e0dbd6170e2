"""Pictures of adaptive designs: how a bisection's suspicion moved, and what a search tried and confirmed."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from analysis.wording import number

from .labels import fitted, joined, minus, room_for, wrapped
from .marks import FASTER, SHADES, SLOWER, SMALLEST_SCALE, above, crossed, interval
from .page import INSIDE, LINE, Section, dot, fill, line, stack
from .scene import NothingToDraw
from .style import AGAIN, BAND, COLOURS, FAINT, GRID, INK, MARKERS, QUIET, SMALL, WRONG, picture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Run

    from .marks import Style
    from .page import Page
    from .scene import Scene

Levels = dict[str, "str | None"]


def _concluded(scene: Scene, kind: str) -> list[Run]:
    """Answer the runs of an adaptive design. Raises: NothingToDraw, where there is none that came to anything."""
    runs = [run for run in scene.runs if run.design.kind == kind]
    if not runs:
        raise NothingToDraw(f"no run is of `--design={kind}`")
    concluded = [run for run in runs if run.design.conclusion]
    if not concluded:
        raise NothingToDraw("the run ended before its design came to any conclusion")
    return concluded


def _section(run: Run, tall: float, draw: Callable[[Page, float], None]) -> Section:
    """Head a run by what its design was about, and what it came to."""
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
def bisection(scene: Scene) -> Figure:
    """Draw a section a run: speed of each cell, keys by cells, and below them the belief after each cell."""
    result = [one for run in _concluded(scene, "bisect") if (one := bisection_of(run)) is not None]
    if not result:
        raise NothingToDraw(
            "too few cells were measured to suspect any key, or the run's conclusion does not say which cells the bisection asked for"
        )
    legend = [
        fill("key set, cell faster than its block", FASTER, FASTER),
        fill("key set, cell slower", SLOWER, SLOWER),
        fill("blocks: cells that are compared with each other"),
    ]
    legend += [dot("cell failed", WRONG, "x")] if any(cell.slower is None for one in result for cell in one.cells) else []
    lead = (
        "From left to right the cells as they ran. Above: cost of a step (its time) against its block. Below: how likely a key matters, "
        "after each cell; one above 0.95 is named, if the cells that confirm it agree."
    )
    sections = [
        _section(one.run, STAGES + SPEED + KEY_ROW * len(one.keys) + 0.28 + BELIEF + 0.42, partial(_bisected, one=one)) for one in result
    ]
    return stack(scene, bisection.TITLE, lead, sections, legend)


def bisection_of(run: Run) -> Bisection | None:
    """Read a bisection's conclusion; None where it is not as this version of DeepTweak writes it."""
    conclusion: Any = run.design.conclusion
    try:
        asked, beliefs = list(conclusion["cells"]), list(conclusion["belief"])
        costs = {at: float(one["cost"]) for at, one in enumerate(asked) if one["cost"] is not None}
        means: dict[int, float] = {}
        for block in {int(one["block"]) for one in asked}:
            logs = [math.log(costs[at]) for at, one in enumerate(asked) if at in costs and int(one["block"]) == block]
            means[block] = sum(logs) / len(logs) if logs else 0.0
        cells = tuple(
            Suspected(
                block=int(one["block"]),
                confirms=one["stage"] == "confirmation",
                keys=frozenset(one["keys"]),
                slower=math.expm1(math.log(costs[at]) - means[int(one["block"])]) if at in costs else None,
            )
            for at, one in enumerate(asked)
        )
        by_key = tuple({str(key): float(value) for key, value in belief["keys"].items()} for belief in beliefs)
        none = tuple(float(belief["none"]) for belief in beliefs)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    keys = tuple(by_key[-1]) if by_key else ()
    return Bisection(run, keys, cells, by_key, none) if keys and len(by_key) == len(cells) else None


def _bisected(sheet: Page, top: float, one: Bisection) -> None:
    keys = sorted(one.keys, key=lambda key: -one.beliefs[-1][key])
    colors = dict(zip(keys, SUSPECTS, strict=False))
    # Below, names stand left of the numbers of an axis.
    left = max(room_for(keys, 2.3) + 0.1, room_for([NOBODY, AFTER, *colors], 1.8, SMALL) + 0.6)
    wide = min(INSIDE - left - 0.05, 0.3 * len(one.cells))
    ends = (0.5, len(one.cells) + 0.5)
    down = top + STAGES + SPEED
    speed = sheet.axes(left, top + STAGES, wide, SPEED, xlim=ends, xticks=[])
    grid = sheet.axes(left, down, wide, KEY_ROW * len(keys), xlim=ends, ylim=(len(keys), 0), xticks=[], yticks=[])
    below = down + KEY_ROW * len(keys) + 0.28
    belief = sheet.axes(left, below, wide, BELIEF, xlim=ends, ylim=(-0.03, 1.03))
    for axes in (speed, grid, belief):
        for turn, block in enumerate(dict.fromkeys(cell.block for cell in one.cells)):
            mine = [at for at, cell in enumerate(one.cells, 1) if cell.block == block]
            if turn % 2 == 0:
                axes.axvspan(mine[0] - 0.5, mine[-1] + 0.5, color=BAND, linewidth=0, zorder=0)
    for at, cell in enumerate(one.cells):
        if not at or cell.confirms != one.cells[at - 1].confirms:
            above(speed, at + 0.6, "confirming" if cell.confirms else "searching", ha="left")
    _speed(speed, one)
    sheet.text(left - 0.55, top + STAGES + SPEED / 2, "cost of a step,\n% of block", ha="right", va="center", fontsize=SMALL, color=QUIET)
    names = fitted(keys, left - 0.25, lines=1)
    for row, key in enumerate(keys):
        sheet.text(left - 0.1, down + KEY_ROW * (row + 0.5), names[key], ha="right", va="center", color=colors.get(key, INK))
    _set_keys(grid, one, keys)
    _belief(sheet, belief, (left, below), one, colors)


def _speed(axes: Axes, one: Bisection) -> None:
    slower = {at: 100 * cell.slower for at, cell in enumerate(one.cells, 1) if cell.slower is not None}
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    axes.vlines(list(slower), 0, list(slower.values()), color=FAINT, linewidth=1.2, zorder=1)
    axes.plot(list(slower), list(slower.values()), "o", color=INK, markersize=3.5, zorder=2)
    lost = [at for at, cell in enumerate(one.cells, 1) if cell.slower is None]
    axes.plot(lost, [0] * len(lost), "x", color=WRONG, markersize=6, zorder=3)
    reach = 1.25 * max([2.0, *map(abs, slower.values())])
    axes.set_ylim(-reach, reach)
    axes.locator_params(axis="y", nbins=4)


def _set_keys(axes: Axes, one: Bisection, keys: Sequence[str]) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415  # of narrower cells than `square`

    largest = max([SMALLEST_SCALE, *(abs(cell.slower) for cell in one.cells if cell.slower is not None)])
    for place, cell in enumerate(one.cells, 1):
        face = FAINT if cell.slower is None else SHADES(0.5 - max(-1.0, min(1.0, cell.slower / largest)) / 2)
        for row, key in enumerate(keys):
            if key in cell.keys:
                axes.add_patch(Rectangle((place - 0.44, row + 0.08), 0.88, 0.84, facecolor=face, edgecolor=AGAIN, linewidth=0.4))
            else:
                axes.plot([place], [row + 0.5], ".", color=FAINT, markersize=2)
    axes.spines[:].set_visible(False)


def _belief(sheet: Page, axes: Axes, corner: tuple[float, float], one: Bisection, colors: Mapping[str, str]) -> None:
    left, top = corner
    at = range(1, len(one.cells) + 1)
    for key in [*(key for key in one.keys if key not in colors), *reversed(list(colors))]:
        look: Style = {"linewidth": 1.6, "marker": "o", "markersize": 3, "zorder": 3} if key in colors else {"linewidth": 0.8, "zorder": 1}
        axes.plot(at, [belief[key] for belief in one.beliefs], color=colors.get(key, FAINT), **look)
    axes.plot(at, one.none, color=INK, linewidth=1.4, linestyle=(0, (4, 2)), zorder=2)
    axes.axhline(ENOUGH, color=QUIET, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    axes.set_yticks([0, 0.5, ENOUGH])
    axes.set_yticklabels(["0", "0.5", "0.95"])
    axes.set_xlabel("cell, in the order they ran")
    axes.locator_params(axis="x", integer=True)
    rows = [(AFTER, QUIET, "normal"), *((key, color, "bold") for key, color in colors.items()), (NOBODY, INK, "normal")]
    names = fitted([name for name, _, _ in rows], left - 0.6, SMALL, lines=1, weight="bold")
    for row, (name, color, weight) in enumerate(rows):
        style: Style = {"ha": "right", "va": "center", "fontsize": SMALL, "color": color, "fontweight": weight}
        sheet.text(left - 0.5, top + 0.1 + 0.19 * row, names[name], **style)


LEFT, TALL, AXIS, CANDIDATE = 0.62, 1.75, 0.46, 0.36
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
def trials(scene: Scene) -> Figure:
    """Draw a section a run: cells by their order, then a row a candidate with what was promised and what was confirmed.

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
    ]
    legend += [dot("failed", WRONG, "x")] if any(cell.log is None for search in result for cell in search.cells) else []
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
    return stack(scene, trials.TITLE, lead, sections, legend)


def search_of(run: Run) -> Search | None:
    """Read a search's conclusion; None where it is not as this version of DeepTweak writes it."""
    conclusion: Any = run.design.conclusion
    try:
        asked, promised = list(conclusion["cells"]), list(conclusion["candidates"])
        logs = [None if one["cost"] is None else math.log(float(one["cost"])) for one in asked]
        stock = [log for one, log in zip(asked, logs, strict=True) if log is not None and not any(one["levels"].values())]
        base = statistics.fmean(stock) if stock else 0.0
        cells = tuple(
            Tried(dict(one["levels"]), one["stage"] == "confirmation", None if log is None else log - base)
            for one, log in zip(asked, logs, strict=True)
        )
        candidates = tuple(_candidate(one, cells) for one in promised)
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
    axes = sheet.axes(LEFT, top + STAGES, INSIDE - LEFT - 0.05, TALL, xlim=(0.2, len(search.cells) + 0.8))
    axes.set(xlabel="cell, in the order they ran", ylabel="cost of a step against stock, %")
    axes.locator_params(axis="x", integer=True)
    axes.grid(axis="y")
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
    tried = [(at, cell) for at, cell in measured if not cell.confirms]
    axes.plot([at for at, _ in tried], [cell.percent for _, cell in tried], zorder=2, **TRIED)
    best = list(accumulate((cell.percent for _, cell in tried), min))
    axes.step([at for at, _ in tried], best, where="post", color=QUIET, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    arms: list[tuple[Style, Levels]] = [(_look(at), candidate.levels) for at, candidate in enumerate(search.candidates)]
    arms.append((STOCK, dict.fromkeys(search.cells[0].levels)))
    for look, levels in arms:
        for confirms in (False, True):
            there = [(at, cell.percent) for at, cell in measured if cell.confirms == confirms and cell.levels == levels]
            axes.plot([at for at, _ in there], [value for _, value in there], markersize=5.5, linestyle="none", zorder=3, **look)
            if confirms and there:
                ends = [next(at for at, cell in measured if cell.confirms) - 0.5, last + 0.5]
                mean = statistics.fmean(value for _, value in there)
                axes.plot(ends, [mean] * 2, color=look["color"], linewidth=2.0, alpha=0.7, zorder=2)
    lost = [at for at, cell in enumerate(search.cells, 1) if cell.log is None]
    crossed(axes, lost)


def _candidates(sheet: Page, top: float, candidates: Sequence[Candidate]) -> float:
    """Draw a row a candidate: promised and confirmed; answers where the rows end."""
    left = room_for([candidate.name for candidate in candidates], 1.6) + 0.2
    wide = INSIDE - left - 2.45
    tall = CANDIDATE * len(candidates)
    legend = "× luckiest cell while exploring · ◇ expected by the model · ■ confirmed, 95 %"
    sheet.text(0, top + 0.06, legend, fontsize=SMALL, color=QUIET)
    top += 0.28
    ends = [
        end for candidate in candidates for end in (candidate.seen, candidate.promised, *(candidate.confirmed or ())) if end is not None
    ]
    low, high = min([-LEAST / 100, *ends]), max([LEAST / 100, *ends])
    room = 0.08 * (high - low) or 0.05
    axes = sheet.axes(left, top, wide, tall, ylim=(len(candidates) - 0.5, -0.5), yticks=[], xlim=(100 * (low - room), 100 * (high + room)))
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="x", color=GRID)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("cost of a step against stock, %")
    names = fitted([candidate.name for candidate in candidates], left - 0.3, lines=1)
    for row, candidate in enumerate(candidates):
        color, middle = _look(row)["color"], top + CANDIDATE * (row + 0.5)
        sheet.text(left - 0.15, middle, names[candidate.name], ha="right", va="center", color=color, fontweight="bold")
        for value, look in (
            (candidate.seen, {"marker": "x"}),
            (candidate.promised, {"marker": "D", "markerfacecolor": "white", "markersize": 5.5}),
        ):
            interval(axes, row, (None if value is None else 100 * value, None, None), {"color": color, **look})
        promised = f"expected {number(candidate.promised)}" if candidate.promised is not None else "nothing expected"
        again = "not measured again"
        if candidate.confirmed is not None:
            change, begin, end = candidate.confirmed
            look = {"color": color, "marker": "s", "markersize": 5.5, "linewidth": 1.8}
            interval(axes, row + 0.2, (100 * change, 100 * begin, 100 * end), look)
            again = f"came to {number(change)} [{number(begin)}, {number(end)}]"
        sheet.text(left + wide + 0.12, middle, minus(f"{promised}\n{again}"), va="center", fontsize=SMALL, linespacing=1.15)
        axes.axhline(row + 0.5, color=FAINT, linewidth=0.4)
    return top + tall + AXIS + 0.1
