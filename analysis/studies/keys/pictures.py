"""Pictures of designs over keys: the effect of each key, and the work at each of its levels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from analysis.plots.labels import Measure, fit, fitted, measure_of, minus, room_for, width_in
from analysis.plots.marks import FASTER_AXIS, VERDICTS, Mark, MarkRow, forest_section, known, margin_band, reach_of, scaled
from analysis.plots.marks import lines as draw_lines
from analysis.plots.page import Entry, Page, Section, SmallPanel, SmallPanels, Spec, line, margin_entry, verdict_entries
from analysis.plots.scene import Scene, some
from analysis.plots.style import BAND, FAINT, INK, QUIET, SMALL, picture
from analysis.terms import Run
from analysis.wording import digits, number, spoken

from .terms import Effects, Term

if TYPE_CHECKING:
    from analysis.plots.marks import Ends, Style


# The words of `compare`, and those that a design adds to them; shape says the same as colour.
MARKS: dict[str, Style] = VERDICTS | {
    "raises": {"marker": "^", "color": INK, "markerfacecolor": INK},
    "lowers": {"marker": "v", "color": INK, "markerfacecolor": INK},
    "interacts": {"marker": "D", "color": "#8f4b7d", "markerfacecolor": "#8f4b7d"},
}
CALLED = frozenset({"improved", "regressed", "raises", "lowers", "interacts"})
# Designs whose cells vary several keys at once; "file" is any of them, read from a design file.
FACTORIAL = frozenset({"factorial", "fractional", "file"})
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

    @property
    def mean(self) -> float:
        """Mean of all cells, in the metric's unit."""
        return self.effects.mean if self.raw else math.exp(self.effects.mean)

    @property
    def margin(self) -> tuple[float, ...]:
        """How far the margin reaches around the mean of all cells; it is always in view, so that noise does not fill a picture."""
        margin = self.effects.observed.margin
        return (self.mean / (1 + margin), self.mean * (1 + margin)) if margin and not self.raw else ()

    def section(self, tall: float, draw: Callable[[Page, float], object]) -> Section:
        finding = minus(self.effects.sentence)
        return Section(self.title, tall, draw, design_of(self.effects), [finding] if finding else [], self.run)

    def terms(self, *means: str) -> list[Term]:
        """Return the effects of these kinds, the largest first."""
        return sorted((term for term in self.effects.terms if term.means in means), key=lambda term: -abs(term.effect))

    def shown(self, term: Term) -> Ends:
        """Return an effect on the axis of its picture: percent of speed, or the response's own unit."""
        if self.raw or term.gain is None:
            return term.effect, term.low, term.high
        return scaled((term.gain, term.gain_low, term.gain_high), 100)

    def words(self, term: Term) -> str:
        value, low, high = (None if end is None else self._write(end) for end in self.shown(term))
        return minus(f"{value} [no interval]" if low is None or high is None else f"{value} [{low}, {high}]")

    def _write(self, value: float) -> str:
        return ("+" if value > 0 else "") + digits(value, 3) if self.raw else number(value / 100)


def parts_of(scene: Scene, fits: Callable[[KeyPart], object], reason: str) -> list[KeyPart]:
    """Return the effects of a scene that a picture can show.

    Raises: NothingToDraw, for `reason` where a design was measured and none fits, or because no design was.
    """
    every = [(run, effects) for run in scene.runs for effects in scene.effects.get(run.origin, ())]
    some(every, "the run took no tweak set apart: `--design` names the designs that do")
    profiles = {effects.observed.profile for _, effects in every if not effects.refusal}
    parts = []
    for run, effects in every:
        title = f"{effects.observed.workload} · {effects.observed.profile}" if len(profiles) > 1 else effects.observed.workload
        part = KeyPart(run, effects, f"{title} · run {run.run_id}" if len(scene.runs) > 1 else title, untouched(scene, run, effects))
        parts += [part] if not effects.refusal and fits(part) else []
    refused = dict.fromkeys(effects.refusal.rstrip(".") for _, effects in every if effects.refusal)
    return some(parts, "; ".join(refused) or reason)


def design_of(effects: Effects) -> str:
    seen = effects.observed
    resolution = f" of resolution {ROMAN.get(effects.resolution, effects.resolution)}" if effects.resolution else ""
    keys = f"{len(seen.factors)} key{'' if len(seen.factors) == 1 else 's'} of {seen.profile}"
    parts = (
        f"{seen.design}{resolution}",
        keys if seen.profile else f"{len(seen.factors)} factors",
        f"{len(seen.rows)} cells{f' in {effects.blocks} blocks' if effects.blocks > 1 else ''}",
        measure_of(seen.metric).name,
        f"error: {re.split('[:,;]', effects.error)[0]}" if effects.error_df else "not replicated",
    )
    return " · ".join(parts)


def untouched(scene: Scene, run: Run, effects: Effects) -> Term | None:
    """Return the A/A check of a workload as if it were an effect: numbers of `compare`, judged as the effects judge it; None without.

    It fails by the harder of two rules: that of the effects has no adjustment.
    """
    place = run.origin, effects.observed.study, effects.observed.workload
    checks = (one for one in scene.comparisons if one.untouched and (one.candidate_run, one.study, one.workload) == place)
    check = next(checks, None)
    if check is None or check.primary is None or effects.observed.scale != "log":
        return None
    fails = effects.again_fails or check.verdict == "not comparable"
    verdict = "not comparable" if fails else "equivalent" if check.verdict == "equivalent" else "inconclusive"
    gain, name = check.primary, check.tweakset
    ends = {"gain": gain.gain, "gain_low": gain.low, "gain_high": gain.high}
    return Term(name, (name,), "set", math.log1p(gain.gain), **ends, verdict=verdict)  # type: ignore[arg-type]  # one of its words


LINE_IN, FEW = 0.19, 5  # inches a line; interactions that are shown, the strongest
BESIDE = {"alone": "alone", "in profile": "in profile"}
IN_COMPANY = " In the profile: all keys set, against all but this one. Alone: this key set, against stock."


@picture(-7, "Effect of each key", DESIGNS=FACTORIAL | {"ablation"})
def key_effects(scene: Scene) -> Spec:
    """Which key of a tweak set did it, by how much, and how surely; of an ablation alone and in company.

    A section a workload; keys are ordered by the size of their effect, interactions stand below the keys.
    """
    parts = parts_of(scene, _groups, "no effect of a key could be estimated")
    rows = [row for part in parts for group in _groups(part) for row in group]
    left = max(room_for([f"{text}mm" for name, _, _ in rows for text in name.split("\n")], 2.1), room_for([row[1] for row in rows], 2.1))
    raw = any(part.raw for part in parts)
    side = "Right of 0 is more, left of it less" if raw else "Right of 0 the key makes the work faster, left of it slower"
    lead = f"{side}. Marks: the effect; lines: its 95 % interval."
    lead += IN_COMPANY if any(part.terms(*BESIDE) for part in parts) else ""
    legend = [
        *verdict_entries(MARKS, {term.verdict for _, _, terms in rows for term in terms}),
        margin_entry(part.effects.observed.margin for part in parts),
    ]
    notes = [note for part in parts for note in _key_notes(part, f"{part.title}: " if len(parts) > 1 else "")]
    if any(part.terms("interaction") for part in parts):
        notes.append("An interaction (×) is by how much the effect of one key changes when the other is set.")
    return Spec(lead, [_forest_section(part, left) for part in parts], legend, notes)


def _groups(part: KeyPart) -> list[list[tuple[str, str, list[Term]]]]:
    """Return name, second line and terms of each row: the profile; each key, the strongest first; interactions; the A/A check."""
    values = {factor.name: factor.levels[-1] for factor in part.effects.observed.factors}
    keys: dict[str, list[Term]] = {}
    for term in part.terms("main", "level", *BESIDE):
        level = term.level or values.get(term.factors[0])
        keys.setdefault(f"{term.factors[0]}={level}" if level else term.factors[0], []).append(term)
    groups = [
        [(part.effects.observed.profile, "all keys, against stock", [term]) for term in part.terms("profile")],
        [(name, _aliases(terms[0]), sorted(terms, key=lambda term: term.means, reverse=True)) for name, terms in keys.items()],
        [(" ×\n".join(term.factors), _aliases(term), [term]) for term in part.terms("interaction")[:FEW]],
    ]
    check = [[(part.again.label, "changes nothing (A/A)", [part.again])]] if any(groups) and part.again is not None else []
    return [group for group in groups + check if group]


def _aliases(term: Term) -> str:
    """Say that it may be another effect; which, the sentence and the table say: names of several keys fit no column."""
    count = len(term.aliases)
    return f"or one of {count} combinations of others" if count > 1 else "or a combination of others" if count else ""


def _forest_section(part: KeyPart, left: float) -> Section:
    rows: list[MarkRow] = []
    for group in _groups(part):
        for at, (full, small, terms) in enumerate(group):
            texts = full.split("\n")  # an interaction has a line a key
            name = "\n".join(fit(text, left - 0.15, lines=2 if len(texts) == 1 else 1, weight="bold") for text in texts)
            marks = [
                Mark(
                    part.shown(term),
                    MARKS[term.verdict] | ({"markersize": 5, "linewidth": 1.0} if term.means == "alone" else {}),
                    (f"{BESIDE.get(term.means, '')} {part.words(term)}".strip(), spoken(term.verdict)),
                    bold=term.verdict in CALLED,
                )
                for term in terms
            ]
            tall = LINE_IN * max(len(marks), name.count("\n") + 1 + bool(small)) + 0.12
            rows.append(MarkRow(name, marks, small, bold=any(mark.bold for mark in marks), rule=bool(rows) and at == 0, tall=tall))
    margin = 0.0 if part.raw else part.effects.observed.margin or 0.0
    ends = [mark.ends for row in rows for mark in row.marks]
    reach = reach_of(ends, 150 * margin, [value for value, _, _ in ends])
    label = f"effect, {measure_of(part.effects.observed.metric).unit}" if part.raw else FASTER_AXIS
    heads = [("effect [95 %]" if part.raw else "gain, % [95 %]", 0.12), ("verdict", 0)]
    band = margin_band(margin) if margin else None
    section = forest_section("", rows, left=left, right=2.55, label=label, heads=heads, reach=reach, band=band)
    return part.section(section.tall, section.draw)


def _key_notes(part: KeyPart, name: str) -> list[str]:
    """Say what is not shown, what was lost, where a key depends on its company, and that a failed A/A check lets nothing be called."""
    notes = []
    if part.again is not None and part.again.verdict == "not comparable":
        what = f"changes nothing and differs from stock all the same ({minus(number(part.again.gain or 0.0))} %)"
        notes.append(f"{part.title}: {part.again.label} {what}: no effect is called there.")
    notes += [
        f"{name}{term.factors[0]} depends on its company: alone it does other than in the profile, by {part.words(term)} %."
        for term in part.terms("disagreement")
        if term.verdict in CALLED
    ]
    more = len(part.terms("interaction")) - FEW
    notes += [f"{name}{more} weaker interaction{'s are' if more > 1 else ' is'} not shown."] if more > 0 else []
    notes += [
        f"{name}Lost: {lost.point} in {len(lost.blocks)} blocks: {lost.reason.rstrip('.')}." for lost in part.effects.observed.lost[:4]
    ]
    return notes + [f"{name}{what}: not estimated, {reason.rstrip('.')}." for what, reason in part.effects.unestimable[:4]]


class LevelMeans(NamedTuple):
    """A small panel: its key, the effect it shows, and the key's levels with their means."""

    key: str
    term: Term | None
    levels: Sequence[str]
    means: Sequence[Ends]


FACTORS = SmallPanels(4, above=0.50, tall=1.15, below=0.42, left=0.2, start=0.36)
MEAN: Style = {"color": FAINT, "linewidth": 1.0, "linestyle": (0, (3, 2))}


def _panels(part: KeyPart) -> Section:
    """Make a section of panels on one scale; the first of a row has the numbers and their unit."""
    keys = _factors(part)
    ends = known(value for key in keys for value in key.means)
    measure = measure_of(part.effects.observed.metric, ends)
    low, high = min(*ends, *part.margin), max(*ends, *part.margin)
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    limits = ((low - room) * measure.scale, (high + room) * measure.scale)
    section = FACTORS.section("", keys, partial(_levels, part=part, measure=measure), grid="y", most={"y": 4}, ylim=limits)
    return part.section(section.tall, section.draw)


def _levels(panel: SmallPanel, key: LevelMeans, part: KeyPart, measure: Measure) -> None:
    panel.axes.set(xlim=(-0.45, len(key.levels) - 0.55))
    panel.axes.tick_params(axis="y", labelleft=panel.first)
    if panel.first:
        panel.axes.set_ylabel(measure.label if width_in(measure.label, SMALL) < FACTORS.tall + 0.4 else measure.unit or measure.label)
    if part.margin:
        panel.axes.axhspan(*(end * measure.scale for end in part.margin), color=BAND, linewidth=0, zorder=0)
    shown = fitted(key.levels, panel.wide / len(key.levels) - 0.04, SMALL, lines=1)
    panel.axes.set_xticks(range(len(key.levels)), shown.values())
    called = key.term is not None and key.term.verdict in CALLED
    color, weight = MARKS[key.term.verdict]["color"] if key.term and called else INK, "bold" if called else "normal"
    points = [(x, scaled(value, measure.scale)) for x, value in enumerate(key.means)]
    draw_lines(panel.axes, points, {"color": color, "marker": "o", "markersize": 4.5})
    panel.axes.axhline(part.mean * measure.scale, zorder=1, **MEAN)
    down = FACTORS.above - 0.20
    panel.text(down, fit(key.key, panel.wide, SMALL, 2, "bold"), va="bottom", fontweight=weight, linespacing=1.0)
    if key.term is not None:
        panel.text(down + 0.03, part.words(key.term) + ("" if part.raw else " %"), color=color if called else QUIET)


@picture(16, "Main effects", DESIGNS=FACTORIAL)
def main_effects(scene: Scene) -> Spec:
    """How the work went at each level of each key, on average over the levels of the others."""
    parts = parts_of(scene, lambda part: part.effects.levels, "the design has no average over the levels of other keys")
    verdicts = {term.verdict for part in parts for term in part.terms("main") if term.verdict in CALLED}
    legend = [
        line("mean at a level, with 95 % interval", INK, 1.2, marker="o", markersize=5),
        *(line(spoken(word), MARKS[word]["color"], 1.2, marker="o", markersize=5) for word in MARKS if word in verdicts),
        Entry("mean of all cells", MEAN),
        margin_entry((part.effects.observed.margin for part in parts), "±{}, the margin"),
    ]
    lead = (
        "A panel a key, the strongest first, all on one scale: a flat line is a key that does nothing. The gain is from the first level "
        "to the last."
    )
    notes = ["No intervals: nothing was replicated."] if any(level.low is None for part in parts for level in part.effects.levels) else []
    if any(term.verdict in CALLED for part in parts for term in part.terms("interaction")):
        notes.append("Keys interact here: an average over the levels of the others hides that; see “Effect of each key”.")
    return Spec(lead, [_panels(part) for part in parts], legend, notes)


def _factors(part: KeyPart) -> list[LevelMeans]:
    mains = {term.factors[0]: term for term in part.terms("main")}
    spans: list[tuple[float, LevelMeans]] = []
    for name in dict.fromkeys(level.factor for level in part.effects.levels):
        levels = [level for level in part.effects.levels if level.factor == name]
        means = [(level.mean, level.low, level.high) for level in levels]
        span = max(level.deviation for level in levels) - min(level.deviation for level in levels)
        spans.append((span, LevelMeans(name, mains.get(name), [level.level for level in levels], means)))
    return [key for _, key in sorted(spans, key=lambda one: -one[0])]
