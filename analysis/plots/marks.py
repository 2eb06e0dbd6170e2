"""The marks of every picture: forest, bars, lines and dots; and their scales.

Vertical places in a forest are inches from its top, so that rows may have any height.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes as Axes  # noqa: PLC0414, TC002  # for all that draw
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from analysis.terms import Run

from .labels import fit, fitted, minus
from .page import Chart, Page, body_width, rounded
from .style import BAND, FAINT, INK, QUIET, SMALL

Style = dict[str, Any]
Ends = tuple[float | None, float | None, float | None]
# Inches: a row, the heads of columns above the rows, an axis with its label below them.
ROW, HEADS, FOOT = (0.25, 0.17, 0.46)
AXIS = 1.2  # inches: the smallest axis
MUCH = 4.0  # largest over smallest value, above which a scale is logarithmic
GAP = 4 * "\N{NO-BREAK SPACE}"  # SVG collapses ordinary spaces
FASTER_AXIS = f"← slower{GAP}gain, %{GAP}faster →"
# Shape repeats the meaning of colour, for print and for the colour-blind.
UP, DOWN, SAME = "#0072B2", "#D55E00", "#009E73"
VERDICTS: dict[str, Style] = {
    "improved": {"marker": "^", "color": UP, "markerfacecolor": UP},
    "regressed": {"marker": "v", "color": DOWN, "markerfacecolor": DOWN},
    "equivalent": {"marker": "s", "color": SAME, "markerfacecolor": SAME},
    "inconclusive": {"marker": "o", "color": INK, "markerfacecolor": "white"},
    "not comparable": {"marker": "x", "color": "#8c8c8c"},
}
WIDEST = 4.0  # intervals this many times wider than the usual one are cut, with an arrow
# Ticks per decade, the finest first.
LEVELS = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))


class Mark(NamedTuple):
    """One value with its interval on a row: its look, and the texts beside it.

    The last text takes the mark's colour.
    """

    ends: Ends
    style: Style
    texts: Sequence[str] = ()
    bold: bool = True


class MarkRow(NamedTuple):
    """A row of a forest: its name, a smaller line below, its marks, and a grey mark below them."""

    name: str
    marks: Sequence[Mark]
    small: str = ""
    faint: Ends | None = None
    color: str = INK
    bold: bool = False
    rule: bool = False  # drawn above the row
    tall: float = ROW


def ends_of(value: object, scale: float = 1.0) -> Ends:
    """Return value and ends of a mean, a figure, or an effect (whose value is its gain)."""
    middle = (
        getattr(value, "value", None) if hasattr(value, "value") else getattr(value, "gain", None)
    )
    return scaled((middle, getattr(value, "low", None), getattr(value, "high", None)), scale)


def scaled(ends: Ends, by: float) -> Ends:
    """Return an interval in another unit."""
    value, low, high = (None if end is None else end * by for end in ends)
    return value, low, high


def known(every: Iterable[Ends]) -> list[float]:
    """Return all numbers in some intervals."""
    return [end for ends in every for end in ends if end is not None]


def reach_of(every: Iterable[Ends], least: float, in_view: Iterable[float | None] = ()) -> float:
    """Return an axis's reach on either side of 0; no endless interval compresses the others.

    The axis reaches to `least` and to everything `in_view`, whatever the intervals are.
    """
    sizes = [max(map(abs, numbers)) for ends in every if (numbers := known([ends]))]
    usual = WIDEST * statistics.median(sizes) if sizes else 0.0
    return (
        1.1
        * max(
            least,
            *(abs(value or 0.0) for value in in_view),
            *(min(size, usual) for size in sizes),
            0.0,
        )
        or 1.0
    )


def interval(
    axes: Axes,
    at: float,
    ends: Ends,
    style: Style,
    along: Literal["x", "y"] = "x",
    reach: float = math.inf,
) -> None:
    """Draw a mark with its interval along one axis; beyond ± `reach` it is cut, with an arrow."""
    value, low, high = ends
    look = {"markersize": 6, "linewidth": 1.6, **style}

    def plot(places: list[float], **more: Any) -> None:
        both = (places, [at] * len(places))
        axes.plot(*(both if along == "x" else both[::-1]), **look | more)

    if low is not None and high is not None:
        plot(
            [max(low, -reach), min(high, reach)],
            marker="None",
            linestyle="-",
            solid_capstyle="butt",
            zorder=2,
        )
        for end, cut, arrow in ((-reach, low < -reach, "<"), (reach, high > reach, ">")):
            if cut:
                plot(
                    [end], marker=arrow, markerfacecolor=look["color"], markersize=5, clip_on=False
                )
    if value is not None and abs(value) <= reach:
        plot([value], linestyle="none", zorder=3)


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

    `heads` are the columns: heading, and distance from the axis in inches; the last is flush right.
    The axis fills the space between `left` and `right`, and names are cut to fit unless they have
    lines of their own. `reach` is the axis' extent to either side of 0; without it, `scale` sets
    its ends.
    """
    left = beside(left, right)
    one_line = [row for row in rows if "\n" not in row.name]
    names = fitted((row.name for row in one_line if not row.bold), left - 0.12, lines=1)
    names |= fitted((row.name for row in one_line if row.bold), left - 0.12, lines=1, weight="bold")
    total, wide = sum(row.tall for row in rows), body_width() - left - right
    above = top + HEADS * bool(heads)
    axes = sheet.axes(left, above, wide, total, grid="x", ylim=(total, 0), yticks=[], xlabel=label)
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
    places = [left + wide + offset for _, offset in heads[:-1]] + [body_width()] * bool(heads)
    for (head, _), place in zip(heads, places, strict=True):
        sheet.text(
            place,
            top,
            head,
            ha="right" if place == body_width() else "left",
            fontsize=SMALL,
            color=QUIET,
        )
    down = 0.0
    for row in rows:
        if row.rule:
            axes.axhline(down, color=INK, linewidth=0.6)
        _name(sheet, above + down + row.tall / 2, names.get(row.name, row.name), row, left)
        _marks(
            sheet,
            axes,
            (above, down + row.tall / 2),
            places,
            row,
            math.inf if reach is None else reach,
        )
        down += row.tall
    return axes


def _name(sheet: Page, middle: float, name: str, row: MarkRow, left: float) -> None:
    style: Style = {
        "ha": "right",
        "color": row.color,
        "linespacing": 1.05,
        "fontweight": "bold" if row.bold else "normal",
    }
    if not row.small:
        sheet.text(left - 0.1, middle, name, va="center", **style)
        return
    middle += 0.07 * name.count("\n")
    sheet.text(left - 0.1, middle, name, va="bottom", **style)
    sheet.text(
        left - 0.1,
        middle + 0.015,
        fit(row.small, left - 0.12, SMALL),
        ha="right",
        color=QUIET,
        fontsize=SMALL,
    )


def _marks(
    sheet: Page,
    axes: Axes,
    place: tuple[float, float],
    columns: Sequence[float],
    row: MarkRow,
    reach: float,
) -> None:
    top, middle = place
    if row.faint is not None:
        interval(
            axes,
            middle + 0.08,
            row.faint,
            {"color": FAINT, "marker": "|", "markersize": 5, "linewidth": 1.0},
            reach=reach,
        )
        middle -= 0.025
    for at, mark in enumerate(row.marks):
        line = middle + min(0.19, 0.45 * row.tall) * (at - (len(row.marks) - 1) / 2)
        interval(axes, line, mark.ends, {"markersize": 6.5, **mark.style}, reach=reach)
        for column, text in zip(columns, mark.texts, strict=True):
            last: Style = {
                "ha": "right",
                "color": mark.style.get("color", INK),
                "fontweight": "bold" if mark.bold else "normal",
            }
            sheet.text(
                column,
                top + line,
                text,
                va="center",
                fontsize=SMALL,
                **last if column == body_width() else {},
            )


def beside(left: float, right: float) -> float:
    """Return the part of `left` that an axis leaves to names, in inches."""
    return min(left, max(0.3 * body_width(), body_width() - right - AXIS))


def forest_section(
    title: str,
    rows: Sequence[MarkRow],
    beside: str = "",
    lines: Sequence[str] = (),
    run: Run | None = None,
    **settings: Any,
) -> Chart:
    """Make a section of one forest, drawn with `settings` of `forest`; without rows, a title."""
    if not rows:
        return Chart(title, 0.0, lambda *_: None, beside, lines, run)
    tall = HEADS * bool(settings.get("heads")) + sum(row.tall for row in rows) + FOOT
    return Chart(title, tall, partial(forest, rows=rows, **settings), beside, lines, run)


def row_axes(
    sheet: Page,
    top: float,
    left: float,
    names: Iterable[str],
    row_in: float = ROW,
    *,
    lines: int = 1,
    right: float = 0.02,
    numbers: float = 0.0,
    **settings: Any,
) -> Axes:
    """Make axes with a row per name, first on top at 0, and names and `numbers` beside them."""
    names, left = list(names), beside(left, right)
    shown = fitted(names, left - numbers - 0.15, lines=lines)
    for row, name in enumerate(names):
        sheet.text(
            left - numbers - 0.1,
            top + row_in * (row + 0.5),
            shown[name],
            ha="right",
            va="center",
            linespacing=0.95,
        )
    rows: Style = {"ylim": (len(names) - 0.5, -0.5), "yticks": []}
    axes = sheet.axes(
        left, top, body_width() - left - right, row_in * len(names), **rows, **settings
    )
    axes.spines["left"].set_visible(False)
    return axes


def bars(
    axes: Axes,
    row: float,
    parts: Iterable[tuple[float, str]],
    start: float = 0.0,
    least: float = math.inf,
) -> None:
    """Draw a bar of parts (length, colour) end to end; parts of `least` or more show their size."""
    for size, color in parts:
        axes.barh(row, size, left=start, height=0.72, color=color)
        if size >= least:
            dark = sum(int(color[at : at + 2], 16) for at in (1, 3, 5)) < 400
            style: Style = {
                "ha": "center",
                "va": "center",
                "fontsize": SMALL,
                "color": "white" if dark else INK,
            }
            axes.text(start + size / 2, row, f"{size:.0f}", **style)
        start += size


def lines(axes: Axes, points: Iterable[tuple[float, Ends]], style: Style) -> None:
    """Draw values joined by a line, each with a vertical interval."""
    values = [(x, ends) for x, ends in points if ends[0] is not None]
    for x, (_, low, high) in values:
        if low is not None and high is not None:
            axes.plot(
                [x, x],
                [low, high],
                color=style["color"],
                linewidth=1.4,
                solid_capstyle="butt",
                zorder=2,
            )
    axes.plot(
        [x for x, _ in values],
        [ends[0] or 0.0 for _, ends in values],
        **{"linewidth": 1.3, "zorder": 3, **style},
    )


def dots(axes: Axes, xs: Any, ys: Any, color: str, **style: Any) -> None:
    """Draw a cloud of dots, smaller and fainter if many; rasterised to keep SVGs small."""
    size, alpha = (2.6, 0.45) if len(xs) < 600 else (1.6, 0.22)
    look = {
        "marker": "o",
        "markersize": size,
        "alpha": alpha,
        "markeredgewidth": 0,
        "rasterized": True,
        **style,
    }
    axes.plot(xs, ys, linestyle="none", color=color, **look)


def trailing_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Return the mean of each value and those before it, at most `window` in all.

    NaN is skipped and stays NaN. `values` are one or more. Returns: shape of `values`.
    """
    finite, ones = np.isfinite(values), np.ones(window)
    total, count = (
        np.convolve(part, ones)[: len(values)] for part in (np.where(finite, values, 0.0), finite)
    )
    return np.where(finite, total / np.maximum(count, 1), np.nan)


def margin_band(margin: float) -> tuple[float, float]:
    """Return the ends in percent between which a gain counts as no difference."""
    return 100 / (1 + margin) - 100, 100 * margin


def log_or_linear(
    axes: Axes, which: Literal["x", "y"], low: float, high: float, most: int = 6
) -> None:
    """Scale one axis from `low` to `high` (positive), logarithmic for a wide range, with ticks."""
    most = max(2, most)
    if high / low <= MUCH:
        room = 0.08 * (high - low) or 0.1 * high
        axes.set(**{f"{which}lim": (low - room, high + room)})
        rounded(axes, **{which: most})
        return
    room = (high / low) ** 0.06
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low / room, high * room)})
    ticks(axes, which, round_ticks(low / room, high * room, most))


def beyond(
    axes: Axes,
    xs: Sequence[float],
    values: Sequence[float],
    limits: tuple[float, float],
    color: str,
) -> None:
    """Draw triangles at the edges for values beyond the scale: not hidden, only not to scale."""
    look: Style = {
        "color": color,
        "markersize": 4,
        "markeredgewidth": 0,
        "clip_on": False,
        "zorder": 4,
    }
    for marker, at, far in (
        ("^", 1.0, np.greater(values, limits[1])),
        ("v", 0.0, np.less(values, limits[0])),
    ):
        outside = np.asarray(xs)[far]
        axes.plot(
            outside, np.full(len(outside), at), marker, transform=axes.get_xaxis_transform(), **look
        )


def above(axes: Axes, at: float, text: str, **style: Any) -> None:
    """Write small text above the axes, at a place along them."""
    look: Style = {
        "ha": "center",
        "va": "bottom",
        "fontsize": SMALL,
        "color": QUIET,
        "transform": axes.get_xaxis_transform(),
    }
    axes.text(at, 1.02, text, **look | style)


def ticks(
    axes: Axes,
    which: Literal["x", "y"],
    places: Iterable[float],
    write: Callable[[float], str] | Mapping[float, str] | None = None,
) -> None:
    """Put ticks at exactly these places, as they are or formatted by `write`."""
    axis, written = (
        getattr(axes, f"{which}axis"),
        (lambda value: f"{value:g}") if write is None else write,
    )
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(
        FuncFormatter(
            lambda value, _: minus(written(value) if callable(written) else written[value])
        )
    )


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """Choose round numbers between two positive ones, as many per decade as fit, ideally ≥ 2."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    finer: list[float] = []
    for steps in LEVELS:
        chosen = [
            step * 10.0**decade
            for decade in decades
            for step in steps
            if low <= step * 10.0**decade <= high
        ]
        if len(chosen) <= most:
            return chosen if len(chosen) > 1 or len(finer) < 2 else [finer[0], finer[-1]]
        finer = chosen
    return finer[:: math.ceil(len(finer) / most)]
