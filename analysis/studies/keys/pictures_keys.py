"""Pictures of designs over keys: the effect of each key, on each workload, beside chance, at each level, and in company."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from analysis.plots.labels import fit, fitted, measure_of, minus, room_for
from analysis.plots.marks import (
    FASTER,
    FASTER_AXIS,
    FRAME,
    SLOWER,
    SMALLEST_SCALE,
    UNPROVEN,
    VERDICTS,
    Ends,
    Mark,
    MarkRow,
    Style,
    forest_section,
    heads_of,
    margin_band,
    names_beside,
    reach_of,
    short_gain,
    square,
    tile,
    tile_axes,
)
from analysis.plots.page import INSIDE, Page, Section, Spec, fill, margin_entry, verdict_entries
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import FAINT, INK, QUIET, SMALL, WRONG, picture
from analysis.terms import Run
from analysis.wording import digits, number, spoken

from .terms import Effects, Term

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    """The effects of one tweak set's keys under one workload in one run; `title` tells it from the others.

    `again` is the A/A check as if it were an effect: what the machine does where nothing is changed; None where it was not measured.
    """

    run: Run
    effects: Effects
    title: str
    again: Term | None = None

    @property
    def raw(self) -> bool:
        return self.effects.observed.scale == "raw"

    def section(self, tall: float, draw: Callable[[Page, float], object]) -> Section:
        finding = minus(self.effects.sentence)
        return Section(self.title, tall, draw, design_of(self.effects), [finding] if finding else [], self.run)

    def terms(self, *means: str) -> list[Term]:
        return [term for term in self.effects.terms if term.means in means]


def parts_of(scene: Scene, fits: Callable[[KeyPart], bool], reason: str) -> list[KeyPart]:
    """Return the effects of a scene that a picture can show.

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
    """Return the A/A check of a workload as if it were an effect: numbers of `compare`, judged as the effects judge it; None without.

    It fails by the harder of two rules: that of the effects has no adjustment.
    """
    place = run.origin, effects.observed.study, effects.observed.workload
    checks = [
        comparison
        for comparison in scene.comparisons
        if comparison.untouched and (comparison.candidate_run, comparison.study, comparison.workload) == place
    ]
    if not checks or checks[0].primary is None or effects.observed.scale != "log":
        return None
    check, gain = checks[0], checks[0].primary
    fails = effects.again_fails or check.verdict == "not comparable"
    return Term(
        label=check.tweakset,
        factors=(check.tweakset,),
        means="set",
        effect=math.log1p(gain.gain),
        se=None,
        df=None,
        low=math.log1p(gain.low),
        high=math.log1p(gain.high),
        gain=gain.gain,
        gain_low=gain.low,
        gain_high=gain.high,
        p=gain.p,
        p_adjusted=None,
        adjustment="",
        family=0,
        share=None,
        verdict="not comparable" if fails else "equivalent" if check.verdict == "equivalent" else "inconclusive",
    )


def distrust(part: KeyPart) -> list[str]:
    """Say that a failed A/A check lets nothing be called."""
    if part.again is None or part.again.verdict != "not comparable":
        return []
    size = minus(f"{number(part.again.gain or 0.0)} %")
    return [f"{part.title}: {part.again.label} changes nothing and differs from stock all the same ({size}): no effect is called there."]


def shown(part: KeyPart, term: Term) -> Ends:
    """Return an effect on the axis of its picture: percent of speed, or the response's own unit."""
    if part.raw or term.gain is None:
        return term.effect, term.low, term.high
    low, high = (None if end is None else 100 * end for end in (term.gain_low, term.gain_high))
    return 100 * term.gain, low, high


def words(part: KeyPart, ends: Ends) -> str:
    value, low, high = ends

    def write(value: float) -> str:
        return ("+" if value > 0 else "") + digits(value, 3) if part.raw else number(value / 100)

    return minus(
        f"{write(value or 0.0)} [no interval]" if low is None or high is None else f"{write(value or 0.0)} [{write(low)}, {write(high)}]"
    )


LINE_IN, FEW = 0.19, 5  # inches a line; interactions that are shown, the strongest
BESIDE = {"alone": "alone", "in profile": "in profile"}
IN_COMPANY = " In the profile: all keys set, against all but this one. Alone: this key set, against stock."


@picture(
    -13,
    "Effect of each key",
    "Which key of a tweak set did it, by how much, and how surely; of an ablation alone and in company.",
    DESIGNS=FACTORIAL | {"ablation"},
)
def key_effects(scene: Scene) -> Spec:
    """A section a workload; keys are ordered by the size of their effect, interactions stand below the keys."""
    parts = parts_of(scene, lambda part: bool(_effects(part)), "no effect of a key could be estimated")
    effects = [effect for part in parts for effect in _effects(part)]
    names = [f"{name}mm" for name, _, terms in effects for name in (terms[0].factors if terms[0].means == "interaction" else (name,))]
    left = max(room_for(names, 2.1), room_for([small for _, small, _ in effects], 2.1))
    raw = any(part.raw for part in parts)
    side = "Right of 0 is more, left of it less" if raw else "Right of 0 the key makes the work faster, left of it slower"
    lead = f"{side}. Marks: the effect; lines: its 95 % interval."
    lead += IN_COMPANY if any(part.terms(*BESIDE) for part in parts) else ""
    legend = [
        *verdict_entries(MARKS, {term.verdict for _, _, terms in effects for term in terms}),
        margin_entry(part.effects.observed.margin for part in parts),
    ]
    notes = [note for part in parts for note in _key_notes(part, f"{part.title}: " if len(parts) > 1 else "")]
    if any(part.terms("interaction") for part in parts):
        notes.append("An interaction (×) is by how much the effect of one key changes when the other is set.")
    return Spec(lead, [_forest_section(part, left) for part in parts], legend, notes)


def _effects(part: KeyPart) -> list[tuple[str, str, list[Term]]]:
    """Return name, second line and terms of each row: the profile, then each key, the strongest first, the interactions, the A/A check."""
    by_size = sorted(part.effects.terms, key=lambda term: -abs(term.effect))
    rows = [(part.effects.observed.profile, "all keys, against stock", [term]) for term in part.terms("profile")]
    pairs: dict[str, list[Term]] = {}
    for term in by_size:
        if term.means in BESIDE:
            pairs.setdefault(term.factors[0], []).append(term)
    rows += [(name, "", sorted(terms, key=lambda term: term.means, reverse=True)) for name, terms in pairs.items()]
    for term in by_size:
        if term.means in {"main", "level"}:
            rows.append((f"{term.factors[0]} = {term.level}" if term.level is not None else term.factors[0], _aliases(term), [term]))
    interactions = [term for term in by_size if term.means == "interaction"]
    rows += [(" × ".join(term.factors), _aliases(term), [term]) for term in interactions[:FEW]]
    return rows + ([(part.again.label, "changes nothing (A/A)", [part.again])] if rows and part.again is not None else [])


def _aliases(term: Term) -> str:
    """Say that it may be another effect; which, the sentence and the table say: names of several keys fit no column."""
    count = len(term.aliases)
    return f"or one of {count} combinations of others" if count > 1 else "or a combination of others" if count else ""


def _forest_section(part: KeyPart, left: float) -> Section:
    rows = []
    before = ""
    for name, small, terms in _effects(part):
        means = terms[0].means
        if means == "interaction":  # a line a key
            name = " ×\n".join(fitted(terms[0].factors, left - 0.3, lines=1, weight="bold").values())  # noqa: PLW2901  # as it is shown
        else:
            name = fit(name, left - 0.15, lines=2, weight="bold")  # noqa: PLW2901  # as above
        marks = []
        for term in terms:
            look = MARKS[term.verdict] | ({"markersize": 5, "linewidth": 1.0} if term.means == "alone" else {})
            text = f"{BESIDE.get(term.means, '')} {words(part, shown(part, term))}".strip()
            marks.append(Mark(shown(part, term), look, (text, spoken(term.verdict)), bold=term.verdict in CALLED))
        rule = before == "profile" or (bool(before) and means == "set") or (means == "interaction" and before not in {"", means})
        tall = LINE_IN * max(len(marks), name.count("\n") + 1 + bool(small)) + 0.12
        rows.append(MarkRow(name, marks, small, bold=any(mark.bold for mark in marks), rule=rule, tall=tall))
        before = means
    margin = 0.0 if part.raw else part.effects.observed.margin or 0.0
    ends = [mark.ends for row in rows for mark in row.marks]
    reach = reach_of(ends, 150 * margin, [value for value, _, _ in ends])
    label = f"effect, {measure_of(part.effects.observed.metric).unit}" if part.raw else FASTER_AXIS
    heads = [("effect [95 %]" if part.raw else "gain, % [95 %]", 0.12), ("verdict", 0)]
    band = margin_band(margin) if margin else None
    section = forest_section(part.title, rows, left=left, right=2.55, label=label, heads=heads, reach=reach, band=band)
    return part.section(section.tall, section.draw)


def _key_notes(part: KeyPart, name: str) -> list[str]:
    """Say what is not shown, what was lost, and where a key depends on its company."""
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


TILE_ROW = 0.24
HATCHED: Style = {"facecolor": "white", "edgecolor": FAINT, "hatch": "////", "linewidth": 0.0}
FAILED: Style = FRAME | {"edgecolor": WRONG, "linestyle": (0, (3, 1.5))}
WAYS = {"in profile": "in the profile", "alone": "alone", "main": "", "level": ""}
PROFILE, UNTOUCHED, SET_TO = "all of {}", "{} (changes nothing)", "set to"
BELOW = frozenset({"profile", "set"})  # what is no key stands below the keys


class KeyLine(NamedTuple):
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
def key_impact(scene: Scene) -> Spec:
    """A cell for each key and workload, coloured by its gain."""
    parts = parts_of(scene, lambda part: not part.raw and bool(part.terms(*WAYS)), "no effect of a key could be estimated")
    columns = _columns(parts)
    rows = _lines(parts, columns)
    legend = [
        fill("called (framed, full colour): faster", FASTER, **FRAME),
        fill("called: slower", SLOWER, **FRAME),
        fill("faint: not called, may be chance", "#eef3f7"),
        fill("not measured", **HATCHED | {"edgecolor": QUIET}),
        fill("the A/A check fails", **FAILED | {"facecolor": "white"}) if any(distrust(part) for part in parts) else None,
    ]
    lead = "Gain in the workload's primary metric when the key is set, %. The largest stand above."
    if not any(term.verdict in CALLED for column in columns for term in column.terms.values()):
        lead += " No effect is called: any of them may be chance."
    lead += IN_COMPANY if any(part.terms("alone") for part in parts) else ""
    left = room_for([row.name for row in rows], 2.45)
    values = room_for([row.value for row in rows] + [SET_TO], 1.1, SMALL)
    wide = min(1.15, (INSIDE - left - values) / len(columns))
    heads = heads_of([column.head for column in columns], wide)

    def draw(sheet: Page, top: float) -> None:
        top += heads.tall
        heads.draw(sheet, top, left)
        _tiles(tile_axes(sheet, top, left, len(rows), len(columns), wide, TILE_ROW), rows, columns, wide)
        names_beside(sheet, top, left, [row.name for row in rows], TILE_ROW)
        right = left + wide * len(columns) + 0.1
        small: Style = {"fontsize": SMALL, "color": QUIET}
        sheet.text(right, top - 0.05, SET_TO, va="bottom", **small)
        for at, row in enumerate(rows):
            sheet.text(right, top + TILE_ROW * (at + 0.5), fit(row.value, values, SMALL) if row.value else "", va="center", **small)

    notes = [note for part in parts for note in _tile_notes(part)]
    return Spec(lead, [Section("", heads.tall + TILE_ROW * len(rows) + 0.05, draw)], legend, notes)


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
            term = column.terms.get(row)
            if term is None or term.gain is None:
                if at < len(rows) - below:
                    square(axes, (at, place), **HATCHED)
                continue
            sure = term.verdict in CALLED
            tile(axes, (at, place), term.gain / largest * (1 if sure else UNPROVEN), short_gain(term.gain, wide - 0.06), framed=sure)
            if term.means == "set" and term.verdict == "not comparable":
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
