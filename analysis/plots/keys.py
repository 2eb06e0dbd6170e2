"""Pictures of designs over keys: the effect of each key, on each workload, beside chance, at each level, and in company."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from analysis.studies.keys.terms import Term
from analysis.wording import digits, number, unsigned

from .effects import WIDEST, short_gain
from .labels import fitted, joined, measure_of, minus, room_for
from .marks import (
    FASTER,
    FASTER_AXIS,
    FRAME,
    HEADS,
    SLOWER,
    SMALLEST_SCALE,
    UNPROVEN,
    VERDICTS,
    Mark,
    MarkRow,
    forest,
    margin_band,
    square,
    tile,
)
from .page import INSIDE, Entry, Section, fill, page, stack, verdict_entries
from .scene import NothingToDraw
from .style import FAINT, INK, QUIET, SMALL, WRONG, picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.keys.terms import Effects
    from analysis.terms import Comparison, Run

    from .marks import Ends, Style
    from .page import Page
    from .scene import Scene

# The words of `compare`, and those that a design adds to them; shape says the same as colour.
MARKS: dict[str, Style] = VERDICTS | {
    "raises": {"marker": "^", "color": INK, "markerfacecolor": INK},
    "lowers": {"marker": "v", "color": INK, "markerfacecolor": INK},
    "interacts": {"marker": "D", "color": "#8f4b7d", "markerfacecolor": "#8f4b7d"},
}
CALLED = frozenset({"improved", "regressed", "raises", "lowers", "interacts"})
# Designs whose cells vary several keys at once; "file" is any of them, read from a design file.
FACTORIAL = frozenset({"factorial", "fractional", "screening", "file"})
ROMAN = {3: "III", 4: "IV", 5: "V"}


@dataclass(frozen=True, slots=True)
class KeyPart:
    """What was said of one tweak set under one workload, in which run; `title` tells it from the others.

    `again` is the A/A check as if it were an effect: what the machine does where nothing is changed; None where it was not measured.
    """

    run: Run
    effects: Effects
    title: str
    again: Term | None = None

    @property
    def raw(self) -> bool:
        """Whether effects are in the response's own unit, not in percent of speed."""
        return self.effects.observed.scale == "raw"

    def section(self, tall: float, draw: Callable[[Page, float], None]) -> Section:
        """Put the part under a head that says what was found, and how it was measured."""
        finding = minus(self.effects.sentence)
        return Section(self.title, tall, draw, design_of(self.effects), [finding] if finding else [], self.run)

    def terms(self, *means: str) -> list[Term]:
        """Answer the effects of some kinds."""
        return [term for term in self.effects.terms if term.means in means]


def parts_of(scene: Scene, fits: Callable[[KeyPart], bool], reason: str) -> list[KeyPart]:
    """Answer the effects of a scene that a picture can show.

    Raises: NothingToDraw, for `reason` where a design was measured and none fits, or because no design was.
    """
    every = [(run, effects) for run in scene.runs for effects in scene.effects.get(run.origin, ())]
    if not every:
        raise NothingToDraw("the run took no tweak set apart: `--design` names the designs that do")
    profiles = {effects.observed.profile for _, effects in every if not effects.refusal}
    parts = []
    for run, effects in every:
        title = f"{effects.observed.workload} · {effects.observed.profile}" if len(profiles) > 1 else effects.observed.workload
        part = KeyPart(run, effects, f"{title} · run {run.run_id}" if len(scene.runs) > 1 else title, untouched(scene, run, effects))
        parts += [part] if not effects.refusal and fits(part) else []
    if not parts:
        refused = dict.fromkeys(effects.refusal.rstrip(".") for _, effects in every if effects.refusal)
        raise NothingToDraw("; ".join(refused) or reason)
    return parts


def design_of(effects: Effects) -> str:
    """Say how it was measured: design, points, blocks, cells, metric."""
    seen = effects.observed
    resolution = f" of resolution {ROMAN.get(effects.resolution, effects.resolution)}" if effects.resolution else ""
    count = len(seen.factors)
    parts = [
        f"{seen.design}{resolution}",
        f"{count} key{'' if count == 1 else 's'} of {seen.profile}" if seen.profile else f"{count} factors",
        f"{len(seen.rows)} cells{f' in {effects.blocks} blocks' if effects.blocks > 1 else ''}",
        measure_of(seen.metric).name,
        f"error: {effects.error}" if effects.error_df else "not replicated",
    ]
    return " · ".join(parts)


def untouched(scene: Scene, run: Run, effects: Effects) -> Term | None:
    """Answer the A/A check of a workload as if it were an effect: numbers of `compare`, judged as the effects judge it; None without."""
    place = run.origin, effects.observed.study, effects.observed.workload
    checks = [
        comparison
        for comparison in scene.comparisons
        if comparison.untouched and (comparison.candidate_run, comparison.study, comparison.workload) == place
    ]
    return next((_as_term(check, fails=fails(effects, check)) for check in checks), None) if effects.observed.scale == "log" else None


def fails(effects: Effects, check: Comparison) -> bool:
    """Whether the A/A check fails, by the harder of two rules: that of the effects has no adjustment."""
    return effects.again_fails or check.verdict == "not comparable"


def _as_term(comparison: Comparison, *, fails: bool) -> Term | None:
    if comparison.primary is None:
        return None
    low, gain, high = comparison.primary.low, comparison.primary.gain, comparison.primary.high
    return Term(
        label=comparison.tweakset,
        factors=(comparison.tweakset,),
        means="set",
        effect=math.log1p(gain),
        se=None,
        df=None,
        low=math.log1p(low),
        high=math.log1p(high),
        gain=gain,
        gain_low=low,
        gain_high=high,
        p=comparison.primary.p,
        p_adjusted=None,
        adjustment="",
        family=0,
        share=None,
        verdict="not comparable" if fails else "equivalent" if comparison.verdict == "equivalent" else "inconclusive",
    )


def distrust(part: KeyPart) -> list[str]:
    """Say that a failed A/A check lets nothing be called."""
    if part.again is None or part.again.verdict != "not comparable":
        return []
    size = minus(f"{number(part.again.gain or 0.0)} %")
    return [f"{part.title}: {part.again.label} changes nothing and differs from stock all the same ({size}): no effect is called there."]


def shown(part: KeyPart, term: Term) -> Ends:
    """Put an effect on the axis of its picture: percent of speed, or the response's own unit."""
    if part.raw or term.gain is None:
        return term.effect, term.low, term.high
    low, high = (None if end is None else 100 * end for end in (term.gain_low, term.gain_high))
    return 100 * term.gain, low, high


def words(part: KeyPart, ends: Ends) -> str:
    """Write an effect with its interval: `−9.6 [−11.2, −8.0]`."""
    value, low, high = ends

    def write(value: float) -> str:
        return ("+" if value > 0 else "") + digits(value, 3) if part.raw else number(value / 100)

    return minus(
        f"{write(value or 0.0)} [no interval]" if low is None or high is None else f"{write(value or 0.0)} [{write(low)}, {write(high)}]"
    )


def limit_of(every: Iterable[Ends], margin: float) -> float:
    """Answer how far an axis reaches to either side, so that one endless interval does not squash the others."""
    every = list(every)
    reach = [max(abs(end) for end in ends if end is not None) for ends in every]
    values = max((abs(value or 0.0) for value, _, _ in every), default=0.0)
    usual = max(WIDEST * statistics.median(reach), 1.5 * values) if reach else 0.0
    return 1.1 * max(1.5 * margin, *(min(value, usual) for value in reach)) or 1.0


def margins_entry(parts: Iterable[KeyPart], text: str) -> list[Entry]:
    """Explain the band of the margin, where there is one."""
    margins = joined(unsigned(margin) for part in parts if (margin := part.effects.observed.margin))
    return [fill(text.format(margins))] if margins else []


LINE_IN, FEW = 0.19, 5  # inches a line; interactions that are shown, the strongest
BESIDE = {"alone": "alone", "in profile": "in profile"}


class DrawnEffect(NamedTuple):
    """A row of the forest: what it is called, a second line in small, and its effects from above."""

    name: str
    small: str
    terms: tuple[Term, ...]

    @property
    def means(self) -> str:
        """What its effects are of."""
        return self.terms[0].means


@picture(
    12,
    "Effect of each key",
    "Which key of a tweak set did it, by how much, and how surely; of an ablation alone and in company.",
    DESIGNS=FACTORIAL | {"ablation"},
)
def key_effects(scene: Scene) -> Figure:
    """Draw a section a workload; keys are ordered by the size of their effect, interactions stand below the keys."""
    parts = parts_of(scene, lambda part: bool(_rows(part)), "no effect of a key could be estimated")
    rows = {part.title: _rows(part) + _again(part) for part in parts}
    every = [row for some in rows.values() for row in some]
    left = room_for([f"{name}mm" for row in every for name in (row.terms[0].factors if row.means == "interaction" else (row.name,))], 2.1)
    left = max(left, room_for([row.small for row in every], 2.1))
    sections = []
    for part in parts:
        drawn = _forest_rows(part, rows[part.title], left)
        sections.append(part.section(HEADS + sum(row.tall for row in drawn) + 0.5, partial(_key_forest, part=part, rows=drawn, left=left)))
    side = (
        "Right of 0 is more, left of it less"
        if any(part.raw for part in parts)
        else "Right of 0 the key makes the work faster, left of it slower"
    )
    lead = f"{side}. Marks: the effect; lines: its 95 % interval."
    if any(part.terms(*BESIDE) for part in parts):
        lead += " In the profile: all keys set, against all but this one. Alone: this key set, against stock."
    legend = verdict_entries({word: word for word in MARKS}, MARKS, {term.verdict for row in every for term in row.terms})
    legend += margins_entry(parts, "margin: ±{} counts as no difference")
    return stack(
        scene,
        key_effects.TITLE,
        lead,
        sections,
        legend,
        [note for part in parts for note in _key_notes(part, len(parts) > 1)] + _pair_note(parts),
    )


def _rows(part: KeyPart) -> list[DrawnEffect]:
    """The profile, then each key, the strongest first, then the interactions."""
    by_size = sorted(part.effects.terms, key=lambda term: -abs(term.effect))
    rows = [DrawnEffect(part.effects.observed.profile, "all keys, against stock", (term,)) for term in part.terms("profile")]
    pairs: dict[str, list[Term]] = {}
    for term in by_size:
        if term.means in BESIDE:
            pairs.setdefault(term.factors[0], []).append(term)
    rows += [DrawnEffect(name, "", tuple(sorted(terms, key=lambda term: term.means, reverse=True))) for name, terms in pairs.items()]
    for term in by_size:
        if term.means in {"main", "level"}:
            rows.append(
                DrawnEffect(f"{term.factors[0]} = {term.level}" if term.level is not None else term.factors[0], _aliases(term), (term,))
            )
    interactions = [term for term in by_size if term.means == "interaction"]
    return rows + [
        DrawnEffect(" × ".join(interaction.factors), _aliases(interaction), (interaction,)) for interaction in interactions[:FEW]
    ]


def _again(part: KeyPart) -> list[DrawnEffect]:
    """What the machine does where nothing is changed, below all."""
    return [DrawnEffect(part.again.label, "changes nothing (A/A)", (part.again,))] if part.again is not None else []


def _aliases(term: Term) -> str:
    """Say that it may be another effect; which, the sentence and the table say: names of several keys fit no column."""
    count = len(term.aliases)
    return f"or one of {count} combinations of others" if count > 1 else "or a combination of others" if count else ""


def _forest_rows(part: KeyPart, effects: Sequence[DrawnEffect], left: float) -> list[MarkRow]:
    rows = []
    for at, effect in enumerate(effects):
        if effect.means == "interaction":  # a line a key
            name = " ×\n".join(fitted(effect.terms[0].factors, left - 0.3, lines=1, weight="bold").values())
        else:
            name = fitted([effect.name], left - 0.15, lines=2, weight="bold")[effect.name]
        marks = []
        for term in effect.terms:
            look = MARKS[term.verdict] | ({"markersize": 5, "linewidth": 1.0} if term.means == "alone" else {})
            ends = shown(part, term)
            text = f"{BESIDE[term.means]} {words(part, ends)}" if term.means in BESIDE else words(part, ends)
            marks.append(Mark(ends, look, (text, term.verdict), bold=term.verdict in CALLED))
        before = effects[at - 1].means if at else ""
        rule = (
            before == "profile"
            or (bool(at) and effect.means == "set")
            or (effect.means == "interaction" and before not in {"", "interaction"})
        )
        tall = LINE_IN * max(len(marks), name.count("\n") + 1 + bool(effect.small)) + 0.12
        bold = any(term.verdict in CALLED for term in effect.terms)
        rows.append(MarkRow(name, marks, effect.small, bold=bold, rule=rule, tall=tall))
    return rows


def _key_forest(sheet: Page, top: float, part: KeyPart, rows: Sequence[MarkRow], left: float) -> None:
    margin = 0.0 if part.raw else part.effects.observed.margin or 0.0
    reach = limit_of([mark.ends for row in rows for mark in row.marks], 100 * margin)
    label = f"effect, {measure_of(part.effects.observed.metric).unit}" if part.raw else FASTER_AXIS
    heads = [("effect [95 %]" if part.raw else "gain, % [95 %]", 0.12), ("verdict", 0)]
    band = margin_band(margin) if margin else None
    forest(sheet, top, rows, left=left, right=2.55, label=label, heads=heads, reach=reach, band=band)


def _key_notes(part: KeyPart, several: bool) -> list[str]:  # noqa: FBT001  # whether it must be named
    """Say what is not shown, what was lost, and where a key depends on its company."""
    name = f"{part.title}: " if several else ""
    notes = distrust(part)
    notes += [
        f"{name}{term.factors[0]} depends on its company: alone it does other than in the profile, by {words(part, shown(part, term))} %."
        for term in part.terms("disagreement")
        if term.verdict in CALLED
    ]
    more = len(part.terms("interaction")) - FEW
    notes += [f"{name}{more} weaker interaction{'s are' if more > 1 else ' is'} not shown."] if more > 0 else []
    notes += [
        f"{name}Lost: {lost.point} in {len(lost.blocks)} blocks: {lost.reason.rstrip('.')}." for lost in part.effects.observed.lost[:4]
    ]
    return notes + [f"{name}{what}: not estimated, {reason.rstrip('.')}." for what, reason in part.effects.unestimable[:4]]


def _pair_note(parts: Iterable[KeyPart]) -> list[str]:
    there = any(part.terms("interaction") for part in parts)
    return ["An interaction (×) is by how much the effect of one key changes when the other is set."] if there else []


TILE_ROW, FLAT = 0.24, 0.8
HATCHED: Style = {"facecolor": "white", "edgecolor": FAINT, "hatch": "////", "linewidth": 0.0}
FAILED: Style = FRAME | {"edgecolor": WRONG, "linestyle": (0, (3, 1.5))}
WAYS = {"in profile": "in the profile", "alone": "alone", "main": "", "level": ""}
PROFILE, UNTOUCHED, SET_TO = "all of {}", "{} (changes nothing)", "set to"
BELOW = frozenset({"profile", "set"})  # what is no key stands below the keys


class KeyLine(NamedTuple):
    """A key and the value it was set to; a whole profile has none."""

    name: str
    value: str


class KeyColumn(NamedTuple):
    """A workload, and for an ablation the way in which a key was changed: what is known of each row."""

    head: str
    terms: dict[KeyLine, Term]


@picture(
    13,
    "Which key does what to which workload",
    "What each key does to the speed of each workload, over all the tweak sets that were taken apart.",
    DESIGNS=FACTORIAL | {"ablation"},
)
def key_impact(scene: Scene) -> Figure:
    """Draw a cell for each key and workload, coloured by its gain."""
    parts = parts_of(scene, lambda part: not part.raw and bool(part.terms(*WAYS)), "no effect of a key could be estimated")
    columns = _columns(parts)
    rows = _lines(parts, columns)
    legend = [
        fill("called (framed, full colour): faster", FASTER, **FRAME),
        fill("called: slower", SLOWER, **FRAME),
        fill("faint: not called, may be chance", "#eef3f7"),
        fill("not measured", **HATCHED | {"edgecolor": QUIET}),
    ]
    legend += [fill("the A/A check fails", **FAILED | {"facecolor": "white"})] if any(distrust(part) for part in parts) else []
    lead = "Gain in the workload's primary metric when the key is set, %. The largest stand above."
    if not any(term.verdict in CALLED for column in columns for term in column.terms.values()):
        lead += " No effect is called: any of them may be chance."
    if any(column.head.endswith(f", {WAYS['alone']}") for column in columns):
        lead += " In the profile: all keys set, against all but this one. Alone: this key set, against stock."
    left = room_for([row.name for row in rows], 2.45)
    values = room_for([row.value for row in rows] + [SET_TO], 1.1, SMALL)
    wide = min(1.15, (INSIDE - left - values) / len(columns))
    flat = wide >= FLAT
    heads = [column.head for column in columns]
    fit = fitted(heads, wide - 0.08, SMALL, lines=4) if flat else fitted(heads, 1.8, SMALL, lines=2 if wide > 0.3 else 1)
    above = 0.12 + 0.13 * max(text.count("\n") + 1 for text in fit.values()) if flat else room_for(heads, 1.9, SMALL)
    sheet = page(
        scene, key_impact.TITLE, lead, above + TILE_ROW * len(rows) + 0.05, legend, [note for part in parts for note in _tile_notes(part)]
    )
    for at, head in enumerate(heads):
        style: Style = {"rotation": 0 if flat else 90, "ha": "center", "va": "bottom", "fontsize": SMALL, "linespacing": 1.05}
        sheet.text(left + wide * (at + 0.5), above - 0.05, fit[head], **style)
    ends: Style = {"xlim": (0, len(columns)), "ylim": (len(rows), 0), "xticks": [], "yticks": []}
    axes = sheet.axes(left, above, wide * len(columns), TILE_ROW * len(rows), **ends)
    axes.spines[:].set_visible(False)
    _tiles(axes, rows, columns, wide)
    names = fitted(dict.fromkeys(row.name for row in rows), left - 0.15, lines=1)
    right = left + wide * len(columns) + 0.1
    for at, row in enumerate(rows):
        middle = above + TILE_ROW * (at + 0.5)
        sheet.text(left - 0.1, middle, names[row.name], ha="right", va="center")
        value = fitted([row.value], values, SMALL, lines=1)[row.value] if row.value else ""
        sheet.text(right, middle, value, va="center", fontsize=SMALL, color=QUIET)
    sheet.text(right, above - 0.05, SET_TO, va="bottom", fontsize=SMALL, color=QUIET)
    return sheet.figure


def _columns(parts: Sequence[KeyPart]) -> list[KeyColumn]:
    columns = []
    for part in parts:
        values = {factor.name: factor.levels[-1] for factor in part.effects.observed.factors}
        for means, way in WAYS.items():
            terms = {KeyLine(term.factors[0], term.level or values.get(term.factors[0], "")): term for term in part.terms(means)}
            whole = next(iter(part.terms("profile")), None)
            if means == "in profile" and terms and whole is not None:
                terms[KeyLine(PROFILE.format(part.effects.observed.profile), "")] = whole
            if terms:
                columns.append(KeyColumn(f"{part.title}, {way}" if way else part.title, terms))
        if part.again is not None:  # what is set against stock stands beside it, the last column of a workload
            columns[-1].terms[KeyLine(UNTOUCHED.format(part.again.label), "")] = part.again
    return columns


def _lines(parts: Sequence[KeyPart], columns: Sequence[KeyColumn]) -> list[KeyLine]:
    """List the keys, the largest effect in any workload first; below them whole profiles, and what changes nothing at the very end."""
    planned = [KeyLine(factor.name, level) for part in parts for factor in part.effects.observed.factors for level in factor.levels[1:]]
    sizes = dict.fromkeys(planned, 0.0)
    whole: dict[KeyLine, None] = {}
    for column in columns:
        for row, term in column.terms.items():
            if term.means in BELOW:
                whole[row] = None
            else:
                sizes[row] = max(sizes.get(row, 0.0), abs(term.effect))
    return [*sorted(sizes, key=lambda row: -sizes[row]), *sorted(whole, key=lambda row: row.name.endswith(UNTOUCHED.format("")))]


def _tiles(axes: Axes, rows: Sequence[KeyLine], columns: Sequence[KeyColumn], wide: float) -> None:
    gains = [term.gain for column in columns for term in column.terms.values() if term.gain is not None]
    largest = max([SMALLEST_SCALE, *map(abs, gains)])
    below = len({row for column in columns for row, term in column.terms.items() if term.means in BELOW})
    for place, column in enumerate(columns):
        for at, row in enumerate(rows):
            one = column.terms.get(row)
            if one is None or one.gain is None:
                if at < len(rows) - below:
                    square(axes, (at, place), **HATCHED)
                continue
            depth = max(-1.0, min(1.0, one.gain / largest))
            sure = one.verdict in CALLED
            tile(axes, (at, place), depth * (1 if sure else UNPROVEN), short_gain(one.gain, wide - 0.06), framed=sure)
            if one.means == "set" and one.verdict == "not comparable":
                square(axes, (at, place), facecolor="none", **FAILED)
    if below:
        axes.axhline(len(rows) - below, color=INK, linewidth=0.7)


def _tile_notes(part: KeyPart) -> list[str]:
    """Say why cells are hatched, and of what an effect may be that of another."""
    notes = distrust(part)
    notes += [f"{part.title}: {lost.point} was not measured: {lost.reason.rstrip('.')}." for lost in part.effects.observed.lost[:3]]
    if any(term.aliases for term in part.terms("main")):
        text = "effects of single keys cannot be told from those of some combinations (`analysis effects` lists them)"
        notes.append(f"{part.title}: {text}.")
    return notes
