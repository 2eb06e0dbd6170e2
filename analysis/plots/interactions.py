"""Interactions: what came out at each pair of levels of two keys; lines that are not parallel are an interaction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from analysis.wording import unsigned
from control.t_test import ALPHA, t_quantile

from .designed import CALLED, FACTORIAL, MARKS, head, head_in, minus_signs, parts_of, shown, words
from .lettering import fitted
from .measures import measure_of
from .page import INSIDE, Entry, page
from .small import Small, band, small_axes
from .style import BAND, COLOURS, DASHES, GRID, INK, MARKERS, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.keys.terms import Effects, Pair, Term

    from .designed import Part
    from .measures import Measure
    from .page import Page
    from .scene import Scene

TITLE = "Interactions"
ANSWERS = "Whether a key does something else in the company of another: lines that are not parallel."
ORDER = 18
DESIGNS = FACTORIAL

LEFT, ABOVE, TALL, BELOW, GAP, EACH, MOST = 0.62, 0.86, 1.3, 0.5, 0.26, 3, 6


@drawn
def draw(scene: Scene) -> Figure:
    """Draw small panels, one a pair of keys, the strongest interactions first; a line a level of the second key."""
    parts = parts_of(
        scene, lambda one: bool(_strongest(one)), "the design cannot tell interactions of two keys from the effects of single keys"
    )
    rows = [math.ceil(len(_strongest(part.effects)) / EACH) for part in parts]
    tall = [head_in(part) + count * (ABOVE + TALL + BELOW) for part, count in zip(parts, rows, strict=True)]
    lead = (
        "A panel a pair of keys, the strongest interactions first: along it the levels of the first key, a line a level of the second. "
        "Parallel lines: each does the same whatever the other is set to. The number is by how much the effect of one changes."
    )
    margins = dict.fromkeys(unsigned(one) for part in parts if (one := part.effects.observed.margin))
    legend = [
        Entry("mean of the cells at two levels", {"color": INK, "marker": "o", "markersize": 5}),
        *([Entry(f"±{', '.join(margins)} around the mean of all", {"facecolor": BAND, "edgecolor": GRID}, patch=True)] if margins else []),
    ]
    sheet = page(scene, TITLE, lead, sum(tall), legend, _notes(parts))
    top = 0.0
    for part, height in zip(parts, tall, strict=True):
        _panel(sheet, head(sheet, top, part), part.effects)
        top += height
    return sheet.figure


def _strongest(effects: Effects) -> list[tuple[Term, list[Pair]]]:
    """The interactions whose cells are known, the largest first."""
    by_size = sorted(
        (one for one in effects.terms if one.means == "interaction" and len(one.factors) == 2), key=lambda one: -abs(one.effect)
    )
    found = [(one, [pair for pair in effects.pairs if set(pair.factors) == set(one.factors)]) for one in by_size]
    return [(one, pairs) for one, pairs in found if len(pairs) > 2][:MOST]


def _panel(sheet: Page, top: float, effects: Effects) -> None:
    chosen = _strongest(effects)
    measure = measure_of(effects.observed.metric, [one.mean for _, pairs in chosen for one in pairs])
    ends = [measure.scale * end for _, pairs in chosen for one in pairs for end in _interval(effects, one) or (one.mean,)]
    ends += [measure.scale * end for end in band(effects)]
    room = 0.08 * (max(ends) - min(ends)) or 1.0
    wide = (INSIDE - LEFT - GAP * (EACH - 1)) / EACH
    for at, (term, pairs) in enumerate(chosen):
        row, column = divmod(at, EACH)
        place = Small(LEFT + column * (wide + GAP), top + row * (ABOVE + TALL + BELOW) + ABOVE, wide, TALL)
        axes = small_axes(sheet, place, (min(ends) - room, max(ends) + room), measure, effects, first=not column)
        _lines(sheet, axes, place, pairs, measure, effects)
        called = term.verdict in CALLED
        style: dict[str, Any] = {"fontsize": SMALL, "fontweight": "bold" if called else "normal"}
        said = minus_signs(words(effects, shown(effects, term))) + ("" if effects.observed.scale == "raw" else " %")
        first, second = fitted(pairs[0].factors, wide - 0.15, SMALL, lines=1, weight="bold").values()
        sheet.text(place.left, place.top - ABOVE + 0.08, f"{first} ×\n{second}", linespacing=1.1, **style)
        sheet.text(place.left, place.top - ABOVE + 0.42, said, fontsize=SMALL, color=MARKS[term.verdict]["color"] if called else QUIET)


def _lines(  # noqa: PLR0913, PLR0917  # a place, and what stands there
    sheet: Page, axes: Axes, place: Small, pairs: Sequence[Pair], measure: Measure, effects: Effects
) -> None:
    """Draw a line a level of the second key over the levels of the first; the lines' legend stands above them."""
    along, across = (list(dict.fromkeys(one.levels[side] for one in pairs)) for side in (0, 1))
    where = {one.levels: one for one in pairs}
    shift = 0.08 if len(across) > 1 else 0.0
    room = (place.wide - 0.1) / len(across)
    names = fitted(across, room - 0.30, SMALL, lines=1)
    for at, level in enumerate(across):
        look: dict[str, Any] = {
            "color": COLOURS[at % len(COLOURS)],
            "marker": MARKERS[at % len(MARKERS)],
            "linestyle": DASHES[at % len(DASHES)],
        }
        there = [(x, where[first, level]) for x, first in enumerate(along) if (first, level) in where]
        offset = (at - (len(across) - 1) / 2) * shift
        for x, one in there:
            ends = _interval(effects, one)
            if ends:
                axes.plot([x + offset] * 2, [end * measure.scale for end in ends], color=look["color"], linewidth=1.2, zorder=2)
        axes.plot(
            [x + offset for x, _ in there], [one.mean * measure.scale for _, one in there], markersize=4.5, linewidth=1.3, zorder=3, **look
        )
        along_in, y = place.left + at * room, place.top - 0.13
        _sample(sheet, along_in, y, look)
        sheet.text(along_in + 0.27, y, names[level], fontsize=SMALL, va="center")
    axes.set_xlim(-0.4, len(along) - 0.6)
    axes.set_xticks(range(len(along)))
    axes.set_xticklabels(list(fitted(along, place.wide / len(along) - 0.04, SMALL, lines=1).values()))
    name = pairs[0].factors[0]
    axes.set_xlabel(fitted([name], place.wide, SMALL, lines=1)[name])


def _sample(sheet: Page, left: float, down: float, look: dict[str, Any]) -> None:
    axes = sheet.axes(left, down - 0.06, 0.24, 0.12, xlim=(0, 2), ylim=(-1, 1), xticks=[], yticks=[])
    axes.axis("off")
    axes.plot([0, 1, 2], [0, 0, 0], markersize=4.5, linewidth=1.3, markevery=[1], **look)


def _interval(effects: Effects, one: Pair) -> tuple[float, float] | None:
    """Answer the 95 % interval of the mean of some cells, from the common error; None where there is none."""
    if effects.error_ms is None or effects.error_df < 1 or one.n < 1:
        return None
    half = t_quantile(1 - ALPHA / 2, effects.error_df) * math.sqrt(effects.error_ms / one.n)
    if effects.observed.scale == "log":
        return one.mean * math.exp(-half), one.mean * math.exp(half)
    return one.mean - half, one.mean + half


def _notes(parts: Sequence[Part]) -> list[str]:
    found = []
    for part in parts:
        name = f"{part.title}: " if len(parts) > 1 else ""
        terms = [one for one in part.effects.terms if one.means == "interaction"]
        if len(terms) > MOST:
            found.append(f"{name or 'Shown: '}the {MOST} strongest of {len(terms)} interactions.")
        aliased = [one for one, _ in _strongest(part.effects) if one.aliases]
        found += [f"{name}{' × '.join(one.factors)} cannot be told from {', '.join(one.aliases)}." for one in aliased[:3]]
        if part.effects.error_ms is None:
            found.append(f"{name or 'Shown: '}no intervals, for nothing was replicated.")
    return found
