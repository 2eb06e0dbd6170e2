"""Half-normal (Daniel) plot: effects of nothing lie on a line through 0; what stands off it to the right is an effect.

Source: Daniel, Technometrics 1 (1959); margins of an unreplicated design: Lenth, Technometrics 31 (1989).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analysis.wording import digits
from control.t_test import ALPHA, t_quantile

from .designed import FACTORIAL, head, head_in, parts_of
from .lettering import fitted, width_in
from .measures import measure_of, minus
from .page import INSIDE, Entry, page
from .style import AGAIN, COLOURS, FAINT, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.keys.terms import Effects

    from .designed import Part
    from .page import Page
    from .scene import Scene

TITLE = "Effects against chance (half-normal plot)"
ANSWERS = "Which effects of a two-level design are larger than chance makes the largest of so many."
ORDER = 14
DESIGNS = FACTORIAL

LEFT, TALL, ABOVE, BELOW, NAME = 0.5, 2.5, 0.2, 0.46, 2.3
FEWEST, MOST = 3, 12  # effects; and names, of the largest
UP: dict[str, Any] = {"color": COLOURS[0], "marker": "^"}
DOWN: dict[str, Any] = {"color": COLOURS[1], "marker": "v"}
NOTHING: dict[str, Any] = {"color": AGAIN, "marker": "o", "markersize": 5, "markerfacecolor": "white"}
SINGLE: dict[str, Any] = {"color": QUIET, "linewidth": 1.0, "linestyle": (0, (2, 2))}
FAMILY: dict[str, Any] = {"color": INK, "linewidth": 1.2, "linestyle": (0, (6, 2))}


class Dots(NamedTuple):
    """Sizes of effects in ascending order with their names and signs; the margins, and how they were come by."""

    names: tuple[str, ...]
    sizes: np.ndarray
    signs: np.ndarray
    single: float | None
    family: float | None
    slope: float


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a workload: size of each effect to the right, its place among so many chance effects upwards."""
    parts = parts_of(scene, lambda one: len(_estimates(one)) >= FEWEST, "the design is none of two levels with at least three effects")
    legend = [
        Entry("raises the speed", {**UP, "linestyle": "none", "markersize": 6}),
        Entry("lowers it", {**DOWN, "linestyle": "none", "markersize": 6}),
        Entry("not told from chance", {**NOTHING, "linestyle": "none"}),
        Entry("chance alone", {"color": FAINT, "linewidth": 1.2}),
        Entry("margin of one effect", SINGLE),
        Entry("margin of all together", FAMILY),
    ]
    lead = (
        "A mark an effect, by its size. Where keys do nothing, marks lie near the grey line; one to the right of the long-dashed margin is "
        "larger than chance makes the largest of all in 19 of 20 such designs."
    )
    tall = [head_in(part) + ABOVE + TALL + BELOW for part in parts]
    sheet = page(scene, TITLE, lead, sum(tall), legend, _notes(parts))
    top = 0.0
    for part, height in zip(parts, tall, strict=True):
        _panel(sheet, head(sheet, top, part), part.effects)
        top += height
    return sheet.figure


def _estimates(effects: Effects) -> list[tuple[str, float]]:
    """All contrasts on one scale: that of main effects, of which an interaction's coefficient makes twice."""
    terms = [one for one in effects.terms if one.means in {"main", "interaction"}]
    called = {one.label: " × ".join(one.factors) for one in terms}
    if effects.lenth is not None:
        return [(called.get(label, label), value) for label, value in effects.lenth.estimates]
    return [(called[one.label], 2 * one.coefficient) for one in terms if one.coefficient is not None]


def dots_of(effects: Effects) -> Dots:
    """Order the effects by size and find the margins beyond which one is called: Lenth's, or Student's where cells were replicated."""
    found = sorted(_estimates(effects), key=lambda one: abs(one[1]))
    scale = 1.0 if effects.observed.scale == "raw" else 100.0
    sizes, signs = scale * np.abs([value for _, value in found]), np.sign([value for _, value in found])
    lenth = effects.lenth
    error = lenth.pse if lenth is not None else _standard_error(effects)
    if lenth is not None:
        margins: tuple[float | None, float | None] = (scale * lenth.me, scale * lenth.sme)
    elif error is None:
        margins = (None, None)
    else:
        # Sidak's margin: all effects together stay inside it 19 times in 20 where there is nothing.
        levels = (1 - ALPHA / 2, (1 + (1 - ALPHA) ** (1 / len(found))) / 2)
        margins = tuple(scale * error * t_quantile(level, effects.error_df) for level in levels)  # type: ignore[assignment]  # two of them
    slope = scale * error if error else float(np.median(sizes)) / 0.6745
    return Dots(tuple(name for name, _ in found), sizes, signs, *margins, slope)


def _standard_error(effects: Effects) -> float | None:
    """That of a main effect; in an orthogonal design all have the same."""
    known = [one.se for one in effects.terms if one.means == "main" and one.se is not None]
    return float(np.median(known)) if known and effects.error_df > 0 else None


def quantiles(count: int) -> np.ndarray:
    """Where the sizes of `count` chance effects are expected, in standard errors: shape (count,), ascending."""
    from scipy.special import ndtri  # noqa: PLC0415  # as slow as the rest of this file

    return np.asarray(ndtri(0.5 + 0.5 * (np.arange(1, count + 1) - 0.5) / count))


def _panel(sheet: Page, top: float, effects: Effects) -> None:
    dots = dots_of(effects)
    raw = effects.observed.scale == "raw"
    unit = measure_of(effects.observed.metric, []).label if raw else "size of effect, % of speed (100 × |log ratio|)"
    heights = quantiles(len(dots.sizes))
    margins = [one for one in (dots.single, dots.family) if one is not None]
    right = 1.08 * max([float(dots.sizes[-1]), *margins]) or 1.0
    above = 1.12 * float(heights[-1])
    axes = sheet.axes(LEFT, top + ABOVE, INSIDE - LEFT - 0.05, TALL, xlim=(0, right), ylim=(0, above))
    axes.set(xlabel=unit, ylabel="expected of chance, standard errors")
    axes.grid(axis="x")
    reach = min(right, above * dots.slope)
    axes.plot([0, reach], [0, reach / dots.slope if dots.slope else 0], color=FAINT, linewidth=1.2, zorder=1)
    for margin, style in ((dots.single, SINGLE), (dots.family, FAMILY)):
        if margin is not None:
            axes.axvline(margin, zorder=1, **style)
    _margins(axes, dots)
    for at, (size, sign) in enumerate(zip(dots.sizes, dots.signs, strict=True)):
        called = dots.family is not None and size > dots.family
        style = {**(UP if sign > 0 else DOWN), "markersize": 7} if called else NOTHING
        axes.plot([size], [heights[at]], linestyle="none", zorder=3, **style)
    _names(axes, dots, heights, right, raw=raw)


def _margins(axes: Axes, dots: Dots) -> None:
    """Write above each margin what it is, unless the two would lie over each other."""
    style: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom", "fontsize": SMALL, "color": QUIET}
    said = [(one, f"{word} {digits(one, 3)}") for one, word in ((dots.single, "one"), (dots.family, "all")) if one is not None]
    wide = axes.get_xlim()[1] / (INSIDE - LEFT - 0.05)
    if len(said) == 2 and (said[1][0] - said[0][0]) / wide < (width_in(said[0][1], SMALL) + width_in(said[1][1], SMALL)) / 2 + 0.05:
        said = said[1:]
    for at, text in said:
        axes.text(at, 1.01, text, **style)


def _names(axes: Axes, dots: Dots, heights: np.ndarray, right: float, *, raw: bool) -> None:
    """Name what is beyond the margin of one effect, the largest where none is; beside its mark, on the side where there is room."""
    named = [at for at, size in enumerate(dots.sizes) if dots.names[at] and dots.single is not None and size > dots.single]
    named = named[-MOST:] or [at for at in range(len(dots.sizes)) if dots.names[at]][-1:]
    inch = right / (INSIDE - LEFT - 0.05)
    shown = fitted([dots.names[at] for at in named], NAME, SMALL, lines=1)
    taken: list[float] = []
    for at in reversed(named):
        size, called = float(dots.sizes[at]), dots.family is not None and dots.sizes[at] > dots.family
        value = dots.signs[at] * size
        text = f"{shown[dots.names[at]]} {minus(f'{value:+.3g}' if raw else f'{value:+.1f}')}"
        leftward = size / inch > width_in(text, SMALL, "bold") + 0.25
        place = min([float(heights[at]), *(one - 0.16 * axes.get_ylim()[1] / TALL for one in taken)])
        taken.append(place)
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
        offset = -0.12 * inch if leftward else 0.12 * inch
        axes.text(
            size + offset,
            place,
            text,
            ha="right" if leftward else "left",
            va="center",
            fontsize=SMALL,
            fontweight="bold" if called else "normal",
            color=INK if called else QUIET,
            bbox=white,
            zorder=2,
        )


def _notes(parts: Sequence[Part]) -> list[str]:
    """Say where the margins come from."""
    notes = []
    if any(part.effects.lenth is not None for part in parts):
        notes.append(
            "Nothing was replicated: the margins are Lenth's, from the effects themselves, on the assumption that most are nothing."
        )
    if any(one.means == "interaction" for part in parts for one in part.effects.terms):
        notes.append("An interaction (×) is drawn on the scale of a main effect, half of what the table of effects calls its effect.")
    if any(part.effects.lenth is None for part in parts):
        notes.append("Replicated cells: the margins are Student's, from the spread of cells of one point; all together by Šidák.")
    return notes
