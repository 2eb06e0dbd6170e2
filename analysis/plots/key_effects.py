"""Effect of each key: a row a key, its gain with its interval; of an ablation alone and in the profile side by side, the profile on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.wording import unsigned

from .designed import CALLED, FACTORIAL, MARKS, draw_effect, head, head_in, limit_of, parts_of, shown, words
from .forest import GAP
from .lettering import fitted, room_for
from .measures import measure_of
from .page import INSIDE, Entry, page
from .style import BAND, GRID, INK, QUIET, SMALL, drawn
from .untouched import distrust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.keys.terms import Effects, Term

    from .designed import Part
    from .page import Page
    from .scene import Scene

TITLE = "Effect of each key"
ANSWERS = "Which key of a tweak set did it, by how much, and how surely; of an ablation alone and in company."
ORDER = 12
DESIGNS = FACTORIAL | {"ablation"}

LINE_IN, ROW_AIR, NAMES, WORDS, AXIS = 0.19, 0.12, 2.1, 2.45, 0.52
FEW = 5  # interactions that are shown, the strongest
BESIDE: dict[str, str] = {"alone": "alone", "in profile": "in profile"}


class Row(NamedTuple):
    """A row: what it is called, a second line in small, and its effects from above."""

    name: str
    small: str
    terms: tuple[Term, ...]


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a workload; keys are ordered by the size of their effect, interactions stand below the keys."""
    parts = parts_of(scene, lambda one: bool(_rows(one)), "no effect of a key could be estimated")
    rows = {part.title: _rows(part.effects) + _untouched(part) for part in parts}
    names = [name for every in rows.values() for row in every for name in (*_bold(row), row.small)]
    left = room_for(names, NAMES)
    tall = [head_in(part) + sum(_row_in(row, left) for row in rows[part.title]) + AXIS for part in parts]
    sheet = page(scene, TITLE, _lead(parts), sum(tall), _legend(parts, rows), _notes(parts))
    top = 0.0
    for part, height in zip(parts, tall, strict=True):
        _panel(sheet, head(sheet, top, part), left, part.effects, rows[part.title])
        top += height
    return sheet.figure


def _rows(effects: Effects) -> list[Row]:
    """The profile, then each key, the strongest first, then the interactions."""
    by_size = sorted(effects.terms, key=lambda one: -abs(one.effect))
    rows = [Row(effects.observed.profile, "all keys, against stock", (one,)) for one in effects.terms if one.means == "profile"]
    pairs: dict[str, list[Term]] = {}
    for one in by_size:
        if one.means in BESIDE:
            pairs.setdefault(one.factors[0], []).append(one)
    rows += [Row(name, "", tuple(sorted(terms, key=lambda one: one.means, reverse=True))) for name, terms in pairs.items()]
    rows += [Row(_called(one), _aliases(one), (one,)) for one in by_size if one.means in {"main", "level"}]
    interactions = [one for one in by_size if one.means == "interaction"]
    return rows + [Row(" × ".join(one.factors), _aliases(one), (one,)) for one in interactions[:FEW]]


def _untouched(part: Part) -> list[Row]:
    """What the machine does where nothing is changed, below all."""
    return [Row(part.again.label, "changes nothing (A/A)", (part.again,))] if part.again is not None else []


def _bold(row: Row) -> list[str]:
    """Names as wide as they are in bold."""
    return [f"{name}mm" for name in (row.terms[0].factors if row.terms[0].means == "interaction" else (row.name,))]


def _name(row: Row, left: float) -> str:
    """Fit a row's name into its column; an interaction takes a line a key."""
    if row.terms[0].means == "interaction":
        called = fitted(row.terms[0].factors, left - 0.3, lines=1, weight="bold")
        return " ×\n".join(called.values())
    return fitted([row.name], left - 0.15, lines=2, weight="bold")[row.name]


def _called(term: Term) -> str:
    return f"{term.factors[0]} = {term.level}" if term.level is not None else term.factors[0]


def _aliases(term: Term) -> str:
    """Say that it may be another effect; which, the sentence and the table say: names of several keys fit no column."""
    count = len(term.aliases)
    return f"or one of {count} combinations of others" if count > 1 else "or a combination of others" if count else ""


def _row_in(row: Row, left: float) -> float:
    lines = _name(row, left).count("\n") + 1 + bool(row.small)
    return LINE_IN * max(len(row.terms), lines) + ROW_AIR


def _lead(parts: Sequence[Part]) -> str:
    raw = any(part.effects.observed.scale == "raw" for part in parts)
    side = "Right of 0 is more, left of it less" if raw else "Right of 0 the key makes the work faster, left of it slower"
    lines = f"{side}. Marks: the effect; lines: its 95 % interval."
    if any(one.means in BESIDE for part in parts for one in part.effects.terms):
        lines += " In the profile: all keys set, against all but this one. Alone: this key set, against stock."
    return lines


def _legend(parts: Sequence[Part], rows: dict[str, list[Row]]) -> list[Entry]:
    there = {term.verdict for every in rows.values() for row in every for term in row.terms}
    legend = [Entry(word, {"linestyle": "-", "markersize": 6.5, **style}) for word, style in MARKS.items() if word in there]
    margins = dict.fromkeys(unsigned(part.effects.observed.margin) for part in parts if part.effects.observed.margin)
    if margins:
        legend.append(Entry(f"margin: ±{', '.join(margins)} counts as no difference", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    return legend


def _notes(parts: Sequence[Part]) -> list[str]:
    """Say what is not shown, what was lost, and where a key depends on its company."""
    found = []
    for part in parts:
        name = f"{part.title}: " if len(parts) > 1 else ""
        found += distrust(part)
        terms = part.effects.terms
        found += [
            f"{name}{one.factors[0]} depends on its company: alone it does other than in the profile, "
            f"by {words(part.effects, shown(part.effects, one))} %."
            for one in terms
            if one.means == "disagreement" and one.verdict in CALLED
        ]
        more = sum(one.means == "interaction" for one in terms) - FEW
        if more > 0:
            found.append(f"{name}{more} weaker interaction{'s are' if more > 1 else ' is'} not shown.")
        found += [
            f"{name}Lost: {lost.point} in {len(lost.blocks)} blocks: {lost.reason.rstrip('.')}." for lost in part.effects.observed.lost[:4]
        ]
        found += [f"{name}{what}: not estimated, {reason.rstrip('.')}." for what, reason in part.effects.unestimable[:4]]
    if any(one.means == "interaction" for part in parts for one in part.effects.terms):
        found.append("An interaction (×) is by how much the effect of one key changes when the other is set.")
    return found


def _panel(sheet: Page, top: float, left: float, effects: Effects, rows: Sequence[Row]) -> None:
    heights = [_row_in(row, left) for row in rows]
    total, wide = sum(heights), INSIDE - left - WORDS - 0.1
    raw = effects.observed.scale == "raw"
    margin = 0.0 if raw or effects.observed.margin is None else 100 * effects.observed.margin
    limit = limit_of([shown(effects, term) for row in rows for term in row.terms], margin)
    axes = sheet.axes(left, top, wide, total, ylim=(total, 0), yticks=[], xlim=(-limit, limit))
    axes.spines["left"].set_visible(False)
    if margin:
        axes.axvspan(100 / (1 + margin / 100) - 100, margin, color=BAND, zorder=0)
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(f"effect, {measure_of(effects.observed.metric, []).unit}" if raw else f"← slower{GAP}gain, %{GAP}faster →")
    under = top + total + 0.24
    unit = "effect [95 %]" if raw else "gain, % [95 %]"
    sheet.text(left + wide + 0.12, under, unit, fontsize=SMALL, color=QUIET)
    sheet.text(INSIDE, under, "verdict", ha="right", fontsize=SMALL, color=QUIET)
    names = {row.name: _name(row, left) for row in rows}
    down = 0.0
    for at, (row, height) in enumerate(zip(rows, heights, strict=True)):
        if at and (rows[at - 1].terms[0].means == "profile" or row.terms[0].means == "set" or _first_interaction(rows, at)):
            axes.axhline(down, color=INK, linewidth=0.6)
        _row(sheet, axes, (top, down, height), (left, left + wide + 0.12), row, names[row.name], effects, limit)
        down += height


def _first_interaction(rows: Sequence[Row], at: int) -> bool:
    return rows[at].terms[0].means == "interaction" and rows[at - 1].terms[0].means != "interaction"


def _row(  # noqa: PLR0913, PLR0917  # a place, and what stands there
    sheet: Page,
    axes: Axes,
    place: tuple[float, float, float],
    columns: tuple[float, float],
    row: Row,
    name: str,
    effects: Effects,
    limit: float,
) -> None:
    top, down, height = place
    left, right = columns
    middle = top + down + height / 2
    bold = "bold" if any(term.verdict in CALLED for term in row.terms) else "normal"
    style: dict[str, Any] = {"ha": "right", "fontsize": SMALL}
    if row.small:
        middle += LINE_IN * (name.count("\n")) / 2
        small = fitted([row.small], left - 0.12, SMALL, lines=1)[row.small]
        sheet.text(left - 0.1, middle - 0.005, name, va="bottom", fontweight=bold, ha="right", linespacing=1.1)
        sheet.text(left - 0.1, middle + 0.02, small, va="top", color=QUIET, **style)
    else:
        sheet.text(left - 0.1, middle, name, va="center", fontweight=bold, ha="right", linespacing=1.1)
    first = height / 2 - LINE_IN * (len(row.terms) - 1) / 2
    for at, term in enumerate(row.terms):
        line = down + first + LINE_IN * at
        one = shown(effects, term)
        look = MARKS[term.verdict]
        draw_effect(axes, line, one, look | ({"markersize": 5, "linewidth": 1.0} if term.means == "alone" else {}), limit)
        said = f"{BESIDE[term.means]} {words(effects, one)}" if term.means in BESIDE else words(effects, one)
        weight = "bold" if term.verdict in CALLED else "normal"
        sheet.text(right, top + line, said, va="center", fontsize=SMALL)
        sheet.text(INSIDE, top + line, term.verdict, ha="right", va="center", fontsize=SMALL, color=look["color"], fontweight=weight)
