"""Kernel-parameter impact: keys × workloads, what each key does to the speed of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.patches import Rectangle

from .designed import CALLED, FACTORIAL, parts_of
from .lettering import fitted, room_for
from .page import INSIDE, Entry, page
from .parameters import FASTER, FRAME, SLOWER, SMALLEST_SCALE, Heat, heat_cell
from .style import FAINT, GRID, INK, QUIET, SMALL, WRONG, drawn
from .untouched import distrust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.keys.terms import Term

    from .designed import Part
    from .scene import Scene

TITLE = "Which key does what to which workload"
ANSWERS = "What each key does to the speed of each workload, over all the tweak sets that were taken apart."
ORDER = 13
DESIGNS = FACTORIAL | {"ablation"}

ROW, KEYS, VALUES, WIDEST, FLAT = 0.24, 2.45, 1.1, 1.15, 0.8
HATCHED: dict[str, Any] = {"facecolor": "white", "edgecolor": FAINT, "hatch": "////", "linewidth": 0.0}
WAYS: dict[str, str] = {"in profile": "in the profile", "alone": "alone", "main": "", "level": ""}
PROFILE, UNTOUCHED, SET_TO = "all of {}", "{} (changes nothing)", "set to"
BELOW = frozenset({"profile", "set"})  # what is no key stands below the keys
FAILED: dict[str, Any] = FRAME | {"edgecolor": WRONG, "linestyle": (0, (3, 1.5))}


class Line(NamedTuple):
    """A key and the value it was set to; a whole profile has none."""

    name: str
    value: str


class Column(NamedTuple):
    """A workload, and for an ablation the way in which a key was changed: what is known of each row."""

    title: str
    way: str
    terms: dict[Line, Term]


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a cell for each key and workload, coloured by its gain."""
    parts = parts_of(
        scene,
        lambda one: one.observed.scale == "log" and any(term.means in WAYS for term in one.terms),
        "no effect of a key could be estimated",
    )
    columns = _columns(parts)
    lines = _lines(parts, columns)
    legend = [
        Entry("called (framed, full colour): faster", FRAME | {"facecolor": FASTER}, patch=True),
        Entry("called: slower", FRAME | {"facecolor": SLOWER}, patch=True),
        Entry("faint: not called, may be chance", {"facecolor": "#eef3f7", "edgecolor": GRID}, patch=True),
        Entry("not measured", HATCHED | {"edgecolor": QUIET}, patch=True),
    ]
    if any(distrust(part) for part in parts):
        legend.append(Entry("the A/A check fails", FAILED | {"facecolor": "white"}, patch=True))
    lead = "Gain in the workload's primary metric when the key is set, %. The largest stand above."
    if not any(one.verdict in CALLED for column in columns for one in column.terms.values()):
        lead += " No effect is called: any of them may be chance."
    if any(column.way == WAYS["alone"] for column in columns):
        lead += " In the profile: all keys set, against all but this one. Alone: this key set, against stock."
    left = room_for([line.name for line in lines], KEYS)
    values = room_for([line.value for line in lines] + [SET_TO], VALUES, SMALL)
    wide = min(WIDEST, (INSIDE - left - values) / len(columns))
    called = [_head(one) for one in columns]
    flat = wide >= FLAT
    shown = fitted(called, wide - 0.08, SMALL, lines=4) if flat else fitted(called, 1.8, SMALL, lines=2 if wide > 0.3 else 1)
    heads = 0.12 + 0.13 * max(one.count("\n") + 1 for one in shown.values()) if flat else room_for(called, 1.9, SMALL)
    sheet = page(scene, TITLE, lead, heads + ROW * len(lines) + 0.05, legend, _notes(parts))
    for at, name in enumerate(called):
        style: dict[str, Any] = {"rotation": 0 if flat else 90, "ha": "center", "va": "bottom", "fontsize": SMALL, "linespacing": 1.05}
        sheet.text(left + wide * (at + 0.5), heads - 0.05, shown[name], **style)
    axes = sheet.axes(
        left, heads, wide * len(columns), ROW * len(lines), xlim=(0, len(columns)), ylim=(len(lines), 0), xticks=[], yticks=[]
    )
    axes.spines[:].set_visible(False)
    _cells(axes, lines, columns, wide)
    names = fitted(dict.fromkeys(line.name for line in lines), left - 0.15, lines=1)
    for row, line in enumerate(lines):
        middle = heads + ROW * (row + 0.5)
        sheet.text(left - 0.1, middle, names[line.name], ha="right", va="center")
        value = fitted([line.value], values, SMALL, lines=1)[line.value] if line.value else ""
        sheet.text(left + wide * len(columns) + 0.1, middle, value, va="center", fontsize=SMALL, color=QUIET)
    sheet.text(left + wide * len(columns) + 0.1, heads - 0.05, SET_TO, va="bottom", fontsize=SMALL, color=QUIET)
    return sheet.figure


def _columns(parts: Sequence[Part]) -> list[Column]:
    found = []
    for part in parts:
        values = {factor.name: factor.levels[-1] for factor in part.effects.observed.factors}
        for means, way in WAYS.items():
            mine = [one for one in part.effects.terms if one.means == means]
            terms = {Line(one.factors[0], one.level or values.get(one.factors[0], "")): one for one in mine}
            whole = next((one for one in part.effects.terms if one.means == "profile"), None)
            if means == "in profile" and terms and whole is not None:
                terms[Line(PROFILE.format(part.effects.observed.profile), "")] = whole
            if terms:
                found.append(Column(part.title, way, terms))
        if part.again is not None:  # what is set against stock stands beside it, the last column of a workload
            found[-1].terms[Line(UNTOUCHED.format(part.again.label), "")] = part.again
    return found


def _lines(parts: Sequence[Part], columns: Sequence[Column]) -> list[Line]:
    """List the keys, the largest effect in any workload first; below them whole profiles, and what changes nothing at the very end."""
    planned = [Line(factor.name, level) for part in parts for factor in part.effects.observed.factors for level in factor.levels[1:]]
    sizes = dict.fromkeys(planned, 0.0)
    whole: dict[Line, None] = {}
    for column in columns:
        for line, one in column.terms.items():
            if one.means in BELOW:
                whole[line] = None
            else:
                sizes[line] = max(sizes.get(line, 0.0), abs(one.effect))
    return [*sorted(sizes, key=lambda line: -sizes[line]), *sorted(whole, key=lambda line: line.name.endswith(UNTOUCHED.format("")))]


def _head(column: Column) -> str:
    return f"{column.title}, {column.way}" if column.way else column.title


def _cells(axes: Axes, lines: Sequence[Line], columns: Sequence[Column], wide: float) -> None:
    gains = [one.gain for column in columns for one in column.terms.values() if one.gain is not None]
    largest = max([SMALLEST_SCALE, *map(abs, gains)])
    below = len({line for column in columns for line, one in column.terms.items() if one.means in BELOW})
    for place, column in enumerate(columns):
        for row, line in enumerate(lines):
            one = column.terms.get(line)
            if one is None or one.gain is None:
                if row < len(lines) - below:
                    axes.add_patch(Rectangle((place + 0.03, row + 0.05), 0.94, 0.9, **HATCHED))
                continue
            called = one.verdict in CALLED
            heat_cell(axes, (row, place), Heat(one.gain, max(-1.0, min(1.0, one.gain / largest)), called, called), wide - 0.06)
            if one.means == "set" and one.verdict == "not comparable":
                axes.add_patch(Rectangle((place + 0.03, row + 0.05), 0.94, 0.9, facecolor="none", **FAILED))
    if below:
        axes.axhline(len(lines) - below, color=INK, linewidth=0.7)


def _notes(parts: Sequence[Part]) -> list[str]:
    """Say why cells are hatched, and of what an effect may be that of another."""
    notes = []
    for part in parts:
        name = f"{part.title}: "
        notes += distrust(part)
        notes += [f"{name}{lost.point} was not measured: {lost.reason.rstrip('.')}." for lost in part.effects.observed.lost[:3]]
        aliased = [one.factors[0] for one in part.effects.terms if one.means == "main" and one.aliases]
        if aliased:
            notes.append(f"{name}effects of single keys cannot be told from those of some combinations (`analysis effects` lists them).")
    return notes
