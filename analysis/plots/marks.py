"""The marks of which every picture is made: forest, bars, lines, dots and tiles; and the scales they stand on.

Vertical places in a forest are inches from its top, so that rows may be of any height.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes as Axes  # noqa: PLC0414, TC002  # for all that draw
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from analysis.terms import Run
from analysis.wording import digits, number

from .labels import fit, fitted, minus, width_in
from .page import Page, Section, body_width
from .style import BAND, FAINT, INK, QUIET, SMALL, WIDTH, WRONG, set_tooltip

Style = dict[str, Any]
Ends = tuple[float | None, float | None, float | None]
ROW, HEADS, FOOT = 0.25, 0.17, 0.46  # inches: a row, the heads of columns above the rows, an axis with its label below them
AXIS, TICK = 1.2, 0.36  # inches: the least that an axis and a number on it take
MUCH = 4.0  # largest over smallest value, above which a scale is logarithmic
BANDED = "#cfe0ee"  # an interval as an area
GAP = 4 * "\N{NO-BREAK SPACE}"  # SVG makes one of several usual blanks
FASTER_AXIS = f"← slower{GAP}gain, %{GAP}faster →"
# Shape says the same as colour, for print and for the colour-blind.
UP, DOWN, SAME = "#0072B2", "#D55E00", "#009E73"
VERDICTS: dict[str, Style] = {
    "improved": {"marker": "^", "color": UP, "markerfacecolor": UP},
    "regressed": {"marker": "v", "color": DOWN, "markerfacecolor": DOWN},
    "equivalent": {"marker": "s", "color": SAME, "markerfacecolor": SAME},
    "inconclusive": {"marker": "o", "color": INK, "markerfacecolor": "white"},
    "not comparable": {"marker": "x", "color": "#8c8c8c"},
}
# Blue is faster, orange slower: also told apart by the colour-blind, and by the sign.
FASTER, SLOWER = "#8fc1e3", "#f3b48a"
SHADES = LinearSegmentedColormap.from_list("gain", [DOWN, SLOWER, "#f7f7f7", FASTER, UP])
UNPROVEN = 0.15  # of its colour: what was not shown must not be what is seen first
FRAME: Style = {"edgecolor": INK, "linewidth": 1.5, "zorder": 3}
ON_COLOUR, DARK = "#1a1a1b", 0.75
SMALLEST_SCALE = 0.05  # of gains: less is never the deepest colour
WIDEST = 4.0  # intervals this many times wider than the usual one are cut, with an arrow


class Mark(NamedTuple):
    """One value with its interval on a row: how it looks, and what is written in the columns beside it; the last text takes its colour."""

    ends: Ends
    style: Style
    texts: Sequence[str] = ()
    bold: bool = True
    tooltip: str = ""  # when it is pointed at; nothing: the name of its row, and its texts


class MarkRow(NamedTuple):
    """A row of a forest: its name, a smaller line below that, its marks from above, and one in grey below them."""

    name: str
    marks: Sequence[Mark]
    small: str = ""
    faint: Ends | None = None
    color: str = INK
    bold: bool = False
    rule: bool = False  # above it
    tall: float = ROW


def ends_of(value: object, scale: float = 1.0) -> Ends:
    """Return value and ends of whatever has them: a mean, a figure, an effect (whose value is its gain)."""
    if value is None:
        return None, None, None
    middle = getattr(value, "value", None) if hasattr(value, "value") else getattr(value, "gain", None)
    return scaled((middle, getattr(value, "low", None), getattr(value, "high", None)), scale)


def scaled(ends: Ends, by: float) -> Ends:
    """Return an interval in another unit."""
    value, low, high = (None if end is None else end * by for end in ends)
    return value, low, high


def known(every: Iterable[Ends]) -> list[float]:
    """Return all numbers of some intervals."""
    return [end for ends in every for end in ends if end is not None]


def reach_of(every: Iterable[Ends], least: float, in_view: Iterable[float | None] = ()) -> float:
    """Return how far an axis reaches to either side of 0, so that one endless interval does not squash the others.

    It reaches to `least` and to what must be `in_view`, whatever the intervals are.
    """
    sizes = [max(abs(end) for end in ends if end is not None) for ends in every if ends != (None, None, None)]
    usual = WIDEST * statistics.median(sizes) if sizes else 0.0
    return 1.1 * max(least, *(abs(value or 0.0) for value in in_view), *(min(size, usual) for size in sizes), 0.0) or 1.0


def in_words(ends: Ends) -> str:
    """Write a value and its interval."""
    value, low, high = ends
    middle = "" if value is None else digits(value)
    return minus(middle if low is None or high is None else f"{middle} [{digits(low)}, {digits(high)}]".strip())


def interval(
    axes: Axes, at: float, ends: Ends, style: Style, along: Literal["x", "y"] = "x", reach: float = math.inf, tooltip: str = ""
) -> None:
    """Draw a mark with its interval along one axis, at a place of the other; what lies beyond ± `reach` is cut, with an arrow.

    `tooltip` is shown when it is pointed at; without one its figures are.
    """
    value, low, high = ends
    tooltip = tooltip or in_words(ends)

    def swap(a: list[float], b: list[float]) -> tuple[list[float], list[float]]:
        return (a, b) if along == "x" else (b, a)

    look = {"linewidth": 1.6, **style}
    if low is not None and high is not None:
        line = {"color": look["color"], "linewidth": look["linewidth"], "solid_capstyle": "butt", "zorder": 2}
        axes.plot(*swap([max(low, -reach), min(high, reach)], [at, at]), **line)
        for end, cut, arrow in ((-reach, low < -reach, "<"), (reach, high > reach, ">")):
            if cut:
                set_tooltip(axes.plot([end], [at], marker=arrow, color=look["color"], markersize=5, clip_on=False)[0], tooltip)
    if value is not None and abs(value) <= reach:
        set_tooltip(axes.plot(*swap([value], [at]), **{"markersize": 6, **look, "linestyle": "none", "zorder": 3})[0], tooltip)


def forest(
    sheet: Page,
    top: float,
    rows: Sequence[MarkRow],
    *,
    left: float,
    right: float,
    label: str,
    heads: Sequence[tuple[str, float]] = (),
    scale: Callable[[Axes], None] | None = None,
    reach: float | None = None,
    zero: float | None = 0.0,
    band: tuple[float, float] | None = None,
) -> Axes:
    """Draw rows of intervals between their names and columns of words.

    `heads` are the columns: what stands above each, and how far it begins right of the axis in inches; the last is flush with the right
    edge. The axis takes what `left` and `right` leave, and names are made to fit unless they have lines of their own. `reach` is how far it
    goes to either side of 0; without it `scale` sets its ends.
    """
    left = beside(left, right)
    names = fitted((row.name for row in rows if "\n" not in row.name), left - 0.12, lines=1)
    rows = [row._replace(name=names.get(row.name, row.name)) for row in rows]
    total = sum(row.tall for row in rows)
    wide = body_width() - left - right
    above = HEADS if heads else 0.0
    axes = sheet.axes(left, top + above, wide, total, ylim=(total, 0), yticks=[])
    axes.spines["left"].set_visible(False)
    if reach is not None:
        axes.set_xlim(-reach, reach)
        rounded(axes, x=6)
    if scale is not None:
        scale(axes)
    if band is not None:
        axes.axvspan(*band, color=BAND, zorder=0)
    if zero is not None:
        axes.axvline(zero, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="x")
    axes.set_xlabel(label)
    places = [left + wide + offset for _, offset in heads[:-1]] + [body_width()] * bool(heads)
    for (head, _), place in zip(heads, places, strict=True):
        sheet.text(place, top, head, ha="right" if place == body_width() else "left", fontsize=SMALL, color=QUIET)
    down = 0.0
    for row in rows:
        if row.rule:
            axes.axhline(down, color=INK, linewidth=0.6)
        _row(sheet, axes, (top + above, down), left, places, row, math.inf if reach is None else reach)
        down += row.tall
    return axes


def beside(left: float, right: float) -> float:
    """Return how much of the `left` that names ask for, in inches, an axis leaves them."""
    return min(left, max(0.3 * body_width(), body_width() - right - AXIS))


def forest_section(
    title: str, rows: Sequence[MarkRow], beside: str = "", lines: Sequence[str] = (), run: Run | None = None, **settings: Any
) -> Section:
    """Make a section of one forest, drawn with the settings of `forest`; without rows its head stands alone."""
    if not rows:
        return Section(title, 0.0, lambda *_: None, beside, lines, run)
    tall = HEADS * bool(settings.get("heads")) + sum(row.tall for row in rows) + FOOT
    return Section(title, tall, partial(forest, rows=rows, **settings), beside, lines, run)


def _row(sheet: Page, axes: Axes, place: tuple[float, float], left: float, columns: Sequence[float], row: MarkRow, reach: float) -> None:
    top, down = place
    style: Style = {"color": row.color, "linespacing": 1.05, "fontweight": "bold" if row.bold else "normal"}
    quiet: Style = {"color": QUIET, "fontsize": SMALL}
    middle = down + row.tall / 2
    if row.small:
        edge = top + middle + 0.07 * row.name.count("\n")
        sheet.text(left - 0.1, edge, row.name, va="bottom", ha="right", **style)
        sheet.text(left - 0.1, edge + 0.015, fit(row.small, left - 0.12, SMALL), va="top", ha="right", **quiet)
    else:
        sheet.text(left - 0.1, top + middle, row.name, va="center", ha="right", **style)
    if row.faint is not None:
        interval(axes, middle + 0.08, row.faint, {"color": FAINT, "marker": "|", "markersize": 5, "linewidth": 1.0}, reach=reach)
        middle -= 0.025
    for at, mark in enumerate(row.marks):
        line = middle + min(0.19, 0.45 * row.tall) * (at - (len(row.marks) - 1) / 2)
        tooltip = mark.tooltip or f"{row.name}: {', '.join(filter(None, mark.texts)) or in_words(mark.ends)}"
        interval(axes, line, mark.ends, {"markersize": 6.5, **mark.style}, reach=reach, tooltip=tooltip)
        for column, text in zip(columns, mark.texts, strict=True):
            last = column == body_width()
            look: Style = {"color": mark.style.get("color", INK), "fontweight": "bold" if mark.bold else "normal"} if last else {}
            sheet.text(column, top + line, text, va="center", fontsize=SMALL, ha="right" if last else "left", **look)


def names_beside(sheet: Page, top: float, left: float, names: Iterable[str], row_in: float = ROW, lines: int = 1) -> None:
    """Write the names of equal rows, made to fit, flush right before their axis."""
    names = list(names)
    shown = fitted(names, left - 0.15, lines=lines)
    for row, name in enumerate(names):
        sheet.text(left - 0.1, top + row_in * (row + 0.5), shown[name], ha="right", va="center", linespacing=0.95)


def row_axes(
    sheet: Page,
    top: float,
    left: float,
    names: Iterable[str],
    row_in: float = ROW,
    *,
    lines: int = 1,
    right: float = 0.02,
    **settings: Any,
) -> Axes:
    """Make axes with a row a name, the first on top at 0, and write the names before them."""
    names = list(names)
    left = beside(left, right)
    names_beside(sheet, top, left, names, row_in, lines)
    rows: Style = {"ylim": (len(names) - 0.5, -0.5), "yticks": []}
    axes = sheet.axes(left, top, body_width() - left - right, row_in * len(names), **rows, **settings)
    axes.spines["left"].set_visible(False)
    return axes


def bars(axes: Axes, row: float, parts: Iterable[tuple[float, str]], start: float = 0.0, least: float = math.inf) -> None:
    """Draw a bar of one or several parts end to end, each a length and a colour; a part of `least` and more has its size written in it."""
    for size, color in parts:
        set_tooltip(axes.barh(row, size, left=start, height=0.72, color=color)[0], digits(size))
        if size >= least:
            dark = sum(int(color[at : at + 2], 16) for at in (1, 3, 5)) < 400
            style: Style = {"ha": "center", "va": "center", "fontsize": SMALL, "color": "white" if dark else INK}
            axes.text(start + size / 2, row, f"{size:.0f}", **style)
        start += size


def lines(axes: Axes, points: Iterable[tuple[float, Ends]], style: Style) -> None:
    """Draw values joined by a line, each with its interval upright."""
    there = [(x, ends) for x, ends in points if ends[0] is not None]
    for x, (_, low, high) in there:
        if low is not None and high is not None:
            axes.plot([x, x], [low, high], color=style["color"], linewidth=1.4, solid_capstyle="butt", zorder=2)
    (drawn,) = axes.plot([x for x, _ in there], [ends[0] or 0.0 for _, ends in there], **{"linewidth": 1.3, "zorder": 3, **style})
    set_tooltip(drawn, *(f"{digits(x)}: {in_words(ends)}" for x, ends in there))


def dots(axes: Axes, xs: Any, ys: Any, color: str, **style: Any) -> None:
    """Draw a cloud of dots, smaller and fainter the more there are; in pixels, or an SVG would be huge."""
    size, alpha = (2.6, 0.45) if len(xs) < 600 else (1.6, 0.22)
    look = {"marker": "o", "markersize": size, "alpha": alpha, "markeredgewidth": 0, "rasterized": True, **style}
    axes.plot(xs, ys, linestyle="none", color=color, **look)


def tile(axes: Axes, at: tuple[int, int], depth: float, text: str, *, framed: bool, tooltip: str = "") -> None:
    """Fill the cell at (row, column) of axes that have a unit square for each, `depth` of its colour from -1 to 1, and write into it."""
    place = (at[1] + 0.03, at[0] + 0.05)
    patch = axes.add_patch(Rectangle(place, 0.94, 0.9, facecolor=SHADES(0.5 + depth / 2), **(FRAME if framed else {})))
    if tooltip:
        set_tooltip(patch, tooltip)
    color, weight = "white" if abs(depth) > DARK else ON_COLOUR, "bold" if framed else "normal"
    style: Style = {"color": color, "fontweight": weight, "ha": "center", "va": "center", "fontsize": SMALL, "zorder": 4}
    axes.text(at[1] + 0.5, at[0] + 0.52, text, **style)


def trailing_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Mean of each value and those before it, `window` together at most; what is NaN is left out and stays NaN.

    Returns: shape of `values`.
    """
    finite = np.isfinite(values)
    total, count = np.cumsum(np.where(finite, values, 0.0)), np.cumsum(finite)
    before_total, before_count = np.zeros_like(total), np.zeros_like(count)
    before_total[window:], before_count[window:] = total[:-window], count[:-window]
    return np.where(finite, (total - before_total) / np.maximum(count - before_count, 1), np.nan)


def margin_band(margin: float) -> tuple[float, float]:
    """Return the ends in percent between which a gain counts as none."""
    return 100 / (1 + margin) - 100, 100 * margin


def log_or_linear(axes: Axes, which: Literal["x", "y"], low: float, high: float, most: int = 6) -> None:
    """Scale one axis for positive values from `low` to `high`, logarithmic where they span much, with about `most` ticks."""
    most = max(2, most)
    if high / low <= MUCH:
        room = 0.08 * (high - low) or 0.1 * high
        axes.set(**{f"{which}lim": (low - room, high + room)})
        getattr(axes, f"{which}axis").set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=1))
        return
    room = (high / low) ** 0.06
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low / room, high * room)})
    ticks(axes, which, round_ticks(low / room, high * room, most))


def short_gain(gain: float, room_in: float) -> str:
    """Write a gain as exactly as there is room for."""
    exact, rounded = minus(number(gain)), minus(f"{gain * 100:+.0f}")
    bare = rounded.lstrip("+\N{MINUS SIGN}")  # its colour has the sign
    return next((text for text in (exact, rounded, bare) if width_in(text, SMALL) <= 0.9 * room_in), "")


def beyond(axes: Axes, xs: Sequence[float], values: Sequence[float], limits: tuple[float, float], color: str) -> None:
    """Show by triangles at its edges what lies beyond a scale: it is not hidden, only not to scale."""
    for marker, at, outside in (
        ("^", 1.0, [x for x, value in zip(xs, values, strict=True) if value > limits[1]]),
        ("v", 0.0, [x for x, value in zip(xs, values, strict=True) if value < limits[0]]),
    ):
        look: Style = {"color": color, "markersize": 4, "markeredgewidth": 0, "clip_on": False, "zorder": 4}
        axes.plot(outside, [at] * len(outside), marker, transform=axes.get_xaxis_transform(), **look)


def above(axes: Axes, at: float, text: str, **style: Any) -> None:
    """Write small above the axes, at a place along them."""
    look: Style = {"ha": "center", "va": "bottom", "fontsize": SMALL, "color": QUIET, "transform": axes.get_xaxis_transform()}
    axes.text(at, 1.02, text, **look | style)


def crossed(axes: Axes, at: Sequence[float], color: str = WRONG) -> None:
    """Mark at the foot of the axes what failed."""
    axes.plot(at, [0.03] * len(at), "x", color=color, markersize=5, transform=axes.get_xaxis_transform(), clip_on=False)


def rounded(axes: Axes, **most: int) -> None:
    """Put as many round numbers as `x=` and `y=` say at most on the axes."""
    for which, count in most.items():
        fit_in = axes.get_position().width * WIDTH / TICK if which == "x" else count
        getattr(axes, f"{which}axis").set_major_locator(MaxNLocator(min(count, max(2, int(fit_in))), steps=[1, 2, 5, 10]))


def ticks(
    axes: Axes, which: Literal["x", "y"], places: Iterable[float], write: Callable[[float], str] | Mapping[float, str] | None = None
) -> None:
    """Put ticks at these places alone, written as they are or as `write` says."""
    axis, written = getattr(axes, f"{which}axis"), (lambda value: f"{value:g}") if write is None else write
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: minus(written(value) if callable(written) else written[value])))


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """Choose round numbers between two positive ones, as many of each decade as fit; two at least where that can be."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    chosen: list[float] = []
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        finer = chosen
        chosen = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
        if len(chosen) <= most:
            return chosen if len(chosen) > 1 or len(finer) < 2 else [finer[0], finer[-1]]
    return chosen[:: math.ceil(len(chosen) / most)]
