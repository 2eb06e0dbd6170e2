"""Main effects: what came out at each level of each key, on average over the others, on one scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.wording import unsigned

from .designed import CALLED, FACTORIAL, MARKS, head, head_in, minus_signs, parts_of, shown, words
from .lettering import fitted
from .measures import measure_of
from .page import INSIDE, Entry, page
from .small import Small, band, centre, small_axes
from .style import BAND, FAINT, GRID, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.keys.terms import Effects, Level, Term

    from .designed import Part
    from .measures import Measure
    from .page import Page
    from .scene import Scene

TITLE = "Main effects"
ANSWERS = "How the work went at each level of each key, on average over the levels of the others."
ORDER = 16
DESIGNS = FACTORIAL

LEFT, ABOVE, TALL, BELOW, GAP, EACH = 0.62, 0.50, 1.15, 0.34, 0.22, 4


@drawn
def draw(scene: Scene) -> Figure:
    """Draw small panels, one a key, all on the scale of the metric; the thin line through all is the mean of everything."""
    parts = parts_of(scene, lambda one: bool(one.levels), "the design has no average over the levels of other keys")
    rows = [math.ceil(len(_by_factor(part.effects)) / EACH) for part in parts]
    tall = [head_in(part) + count * (ABOVE + TALL + BELOW) + 0.08 for part, count in zip(parts, rows, strict=True)]
    there = {one.verdict for part in parts for one in part.effects.terms if one.means == "main" and one.verdict in CALLED}
    legend = [
        Entry("mean at a level, with 95 % interval", {"color": INK, "marker": "o", "markersize": 5}),
        *(Entry(word, {"color": MARKS[word]["color"], "marker": "o", "markersize": 5}) for word in MARKS if word in there),
        Entry("mean of all cells", {"color": FAINT, "linewidth": 1.0, "linestyle": (0, (3, 2))}),
    ]
    margins = dict.fromkeys(unsigned(one) for part in parts if (one := part.effects.observed.margin))
    if margins:
        legend.append(Entry(f"±{', '.join(margins)}, the margin", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    lead = (
        "A panel a key, the strongest first, all on one scale: a flat line is a key that does nothing. The gain is from the first level "
        "to the last."
    )
    sheet = page(scene, TITLE, lead, sum(tall), legend, _notes(parts))
    top = 0.0
    for part, height in zip(parts, tall, strict=True):
        _panel(sheet, head(sheet, top, part), part)
        top += height
    return sheet.figure


def _by_factor(effects: Effects) -> dict[str, list[Level]]:
    """Levels of each factor, the one that spans most first."""
    found: dict[str, list[Level]] = {}
    for one in effects.levels:
        found.setdefault(one.factor, []).append(one)
    return dict(sorted(found.items(), key=lambda one: -_span(one[1])))


def _span(levels: Sequence[Level]) -> float:
    return max(one.deviation for one in levels) - min(one.deviation for one in levels)


def _panel(sheet: Page, top: float, part: Part) -> None:
    effects = part.effects
    factors = _by_factor(effects)
    every = [value for levels in factors.values() for one in levels for value in (one.mean, one.low, one.high) if value is not None]
    measure = measure_of(effects.observed.metric, every)
    middle = centre(effects)
    ends = [end * measure.scale for end in (*every, *band(effects))]
    low, high = min(ends), max(ends)
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    wide = (INSIDE - LEFT - GAP * (EACH - 1)) / EACH
    mains = {one.factors[0]: one for one in effects.terms if one.means == "main"}
    names = fitted(factors, wide + 0.1, SMALL, lines=2, weight="bold")
    for at, (name, levels) in enumerate(factors.items()):
        row, column = divmod(at, EACH)
        place = Small(LEFT + column * (wide + GAP), top + row * (ABOVE + TALL + BELOW) + ABOVE, wide, TALL)
        axes = small_axes(sheet, place, (low - room, high + room), measure, effects, first=not column)
        axes.axhline(middle * measure.scale, color=FAINT, linewidth=1.0, linestyle=(0, (3, 2)), zorder=1)
        _factor(sheet, axes, place, (names[name], levels), mains.get(name), measure, effects)


def _factor(  # noqa: PLR0913, PLR0917  # a place, and what stands there
    sheet: Page, axes: Axes, place: Small, factor: tuple[str, Sequence[Level]], term: Term | None, measure: Measure, effects: Effects
) -> None:
    name, levels = factor
    called = term is not None and term.verdict in CALLED
    color = MARKS[term.verdict]["color"] if term is not None and called else INK
    at = list(range(len(levels)))
    for x, one in zip(at, levels, strict=True):
        if one.low is not None and one.high is not None:
            axes.plot([x, x], [one.low * measure.scale, one.high * measure.scale], color=color, linewidth=1.4, zorder=2)
    axes.plot(at, [one.mean * measure.scale for one in levels], color=color, marker="o", markersize=4.5, linewidth=1.3, zorder=3)
    axes.set_xlim(-0.45, len(levels) - 0.55)
    axes.set_xticks(at)
    each = place.wide / len(levels) - 0.04
    axes.set_xticklabels(list(fitted([one.level for one in levels], each, SMALL, lines=1).values()))
    sheet.text(place.left, place.top - 0.20, name, va="bottom", fontsize=SMALL, fontweight="bold" if called else "normal", linespacing=1.0)
    if term is not None:
        said = minus_signs(words(effects, shown(effects, term)))
        unit = "" if effects.observed.scale == "raw" else " %"
        sheet.text(place.left, place.top - 0.17, f"{said}{unit}", fontsize=SMALL, color=color if called else QUIET)


def _notes(parts: Sequence[Part]) -> list[str]:
    notes = ["No intervals: nothing was replicated."] if any(one.low is None for part in parts for one in part.effects.levels) else []
    if any(one.means == "interaction" and one.verdict in CALLED for part in parts for one in part.effects.terms):
        notes.append("Keys interact here: an average over the levels of the others hides that; see the interactions.")
    return notes
