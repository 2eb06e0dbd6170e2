"""Picture of a design over keys: the effect of each key."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from analysis.plots.labels import fit, measure_of, minus, room_for
from analysis.plots.marks import (
    FASTER_AXIS,
    VERDICTS,
    Mark,
    MarkRow,
    forest_section,
    margin_band,
    reach_of,
    scaled,
)
from analysis.plots.page import Chart, Page, Plot, margin_entry, verdict_entries
from analysis.plots.scene import Scene, some
from analysis.plots.style import picture
from analysis.terms import Run
from analysis.wording import counted, number, spoken

from .terms import NAMED, Effects, Term

if TYPE_CHECKING:
    from analysis.plots.marks import Ends, Style


# The verdicts of `compare`, plus that of a design; shape repeats the meaning of colour.
MARKS: dict[str, Style] = VERDICTS | {
    "interacts": {"marker": "D", "color": "#8f4b7d", "markerfacecolor": "#8f4b7d"}
}
CALLED = NAMED | {"interacts"}
# Designs whose cells vary several keys at once; "file" is any of them, from a design file.
FACTORIAL = frozenset({"factorial", "fractional", "file"})
ROMAN = {3: "III", 4: "IV", 5: "V"}
FEW = 5  # number of interactions shown, the strongest
LINE_IN = 0.19
WAYS = {"in profile": "in profile", "alone": "alone"}  # rows per key in an ablation
IN_COMPANY = (
    " In the profile: all keys set, against all but this one. Alone: this key set, against stock."
)


@dataclass(frozen=True, slots=True)
class KeyPart:
    """The effects of one tweak set's keys under one workload in one run; `title` distinguishes it.

    `again` is the A/A check in the form of an effect: the machine's behaviour without any change;
    None if it was not measured.
    """

    run: Run
    effects: Effects
    title: str
    again: Term | None = None

    def section(self, tall: float, draw: Callable[[Page, float], object]) -> Chart:
        finding = minus(self.effects.sentence)
        return Chart(
            self.title, tall, draw, design_of(self.effects), [finding] if finding else [], self.run
        )

    def terms(self, *means: str) -> list[Term]:
        """Return the effects of these kinds, the largest first."""
        return sorted(
            (term for term in self.effects.terms if term.means in means),
            key=lambda term: -abs(term.effect),
        )


def _percent(term: Term) -> Ends:
    return scaled((term.gain, term.gain_low, term.gain_high), 100)


def _words(term: Term) -> str:
    value, low, high = (
        "" if end is None else number(end) for end in (term.gain, term.gain_low, term.gain_high)
    )
    return minus(f"{value} [{low}, {high}]" if low and high else f"{value} [no interval]")


def parts_of(scene: Scene, fits: Callable[[KeyPart], object], reason: str) -> list[KeyPart]:
    """Return the parts of a scene that a picture can show.

    Raises: NothingToDraw, for `reason` if a design was measured but none fits, or because no design
    was.
    """
    every = [(run, effects) for run in scene.runs for effects in scene.effects.get(run.origin, ())]
    some(every, "the run decomposed no tweak set: `--design` lists the designs that do")
    analysed = [(run, effects) for run, effects in every if not effects.refusal]
    profiles = {effects.observed.profile for _, effects in analysed}
    parts = []
    for run, effects in analysed:
        data = effects.observed
        names = (
            data.workload,
            data.profile if len(profiles) > 1 else "",
            f"run {run.run_id}" if len(scene.runs) > 1 else "",
        )
        parts.append(
            KeyPart(run, effects, " · ".join(filter(None, names)), untouched(scene, run, effects))
        )
    refused = dict.fromkeys(effects.refusal.rstrip(".") for _, effects in every if effects.refusal)
    return some(filter(fits, parts), "; ".join(refused) or reason)


def design_of(effects: Effects) -> str:
    seen = effects.observed
    resolution = (
        f" of resolution {ROMAN.get(effects.resolution, effects.resolution)}"
        if effects.resolution
        else ""
    )
    parts = (
        f"{seen.design}{resolution}",
        f"{counted(len(seen.factors), 'key')} of {seen.profile}",
        f"{len(seen.rows)} cells{f' in {effects.blocks} blocks' if effects.blocks > 1 else ''}",
        measure_of(seen.metric).name,
        f"error: {re.split('[:,;]', effects.error)[0]}" if effects.error_df else "not replicated",
    )
    return " · ".join(parts)


def untouched(scene: Scene, run: Run, effects: Effects) -> Term | None:
    """Return a workload's A/A check in the form of an effect, from `compare`; None without one.

    It fails by the stricter of two rules: the effects' rule has no adjustment.
    """
    place = run.origin, effects.observed.study, effects.observed.workload
    checks = (
        one
        for one in scene.comparisons
        if one.untouched and (one.candidate_run, one.study, one.workload) == place
    )
    check = next(checks, None)
    if check is None or check.primary is None:
        return None
    fails = effects.again_fails or check.verdict == "not comparable"
    verdict = (
        "not comparable"
        if fails
        else "equivalent"
        if check.verdict == "equivalent"
        else "inconclusive"
    )
    gain, name = check.primary, check.tweakset
    ends = {"gain": gain.gain, "gain_low": gain.low, "gain_high": gain.high}
    effect = math.log1p(gain.gain)
    return Term(name, (name,), "set", effect, **ends, verdict=verdict)  # type: ignore[arg-type]


class KeyRow(NamedTuple):
    """A row of effects from the top; `name` has a line per key, and `rule` begins a group."""

    name: str
    small: str
    terms: list[Term]
    rule: bool = False


@picture(-7, "Effect of each key", DESIGNS=FACTORIAL | {"ablation"})
def key_effects(scene: Scene) -> Plot:
    """Effect of each key of a tweak set, with its uncertainty; in an ablation, in both ways.

    There is a section per workload; keys are ordered by the size of their effect, and interactions
    follow.
    """
    parts = parts_of(scene, _rows, "no effect of a key could be estimated")
    rows = [row for part in parts for row in _rows(part)]
    left = max(
        room_for([f"{text}mm" for row in rows for text in row.name.split("\n")], 2.1),
        room_for([row.small for row in rows], 2.1),
    )
    lead = (
        "Right of 0 the key makes the work faster, left of it slower. Marks: the effect; lines: "
        "its 95 % interval."
    )
    legend = [
        *verdict_entries(MARKS, {term.verdict for row in rows for term in row.terms}),
        margin_entry(part.effects.observed.margin for part in parts),
    ]
    notes = [
        note for part in parts for note in _notes(part, f"{part.title}: " if len(parts) > 1 else "")
    ]
    if any(part.terms("interaction") for part in parts):
        notes.append("An interaction (×) is the change of one key's effect when the other is set.")
    in_company = IN_COMPANY if any(part.terms(*WAYS) for part in parts) else ""
    return Plot(lead + in_company, [_forest_section(part, left) for part in parts], legend, notes)


def _rows(part: KeyPart) -> list[KeyRow]:
    values = {factor.name: factor.levels[-1] for factor in part.effects.observed.factors}
    keys: dict[str, list[Term]] = {}
    for term in part.terms("main", "level", *WAYS):
        keys.setdefault(f"{term.factors[0]}={term.level or values[term.factors[0]]}", []).append(
            term
        )
    profile, stock_again = part.effects.observed.profile, part.again
    groups = [
        [KeyRow(profile, "all keys, against stock", [term]) for term in part.terms("profile")],
        [KeyRow(name, _aliases(terms[0]), sorted(terms, key=_way)) for name, terms in keys.items()],
        [
            KeyRow(" ×\n".join(term.factors), _aliases(term), [term])
            for term in part.terms("interaction")[:FEW]
        ],
    ]
    if any(groups) and stock_again is not None:
        groups.append([KeyRow(stock_again.label, "changes nothing (A/A)", [stock_again])])
    return [row._replace(rule=at == 0) for group in groups for at, row in enumerate(group)]


def _way(term: Term) -> int:
    return [*WAYS].index(term.means) if term.means in WAYS else 0


def _aliases(term: Term) -> str:
    """Mark an aliased effect; the sentence and the table name its aliases."""
    count = len(term.aliases)
    return (
        f"or one of {count} combinations of others"
        if count > 1
        else "or a combination of others"
        if count
        else ""
    )


def _forest_section(part: KeyPart, left: float) -> Chart:
    rows: list[MarkRow] = []
    for row in _rows(part):
        texts = row.name.split("\n")
        name = "\n".join(
            fit(text, left - 0.15, lines=2 if len(texts) == 1 else 1, weight="bold")
            for text in texts
        )
        marks = [
            Mark(
                _percent(term),
                MARKS[term.verdict]
                | ({"markersize": 5, "linewidth": 1.0} if term.means == "alone" else {}),
                (f"{WAYS.get(term.means, '')} {_words(term)}".strip(), spoken(term.verdict)),
                bold=term.verdict in CALLED,
            )
            for term in row.terms
        ]
        tall = LINE_IN * max(len(marks), name.count("\n") + 1 + bool(row.small)) + 0.12
        bold = any(mark.bold for mark in marks)
        rows.append(
            MarkRow(name, marks, row.small, bold=bold, rule=bool(rows) and row.rule, tall=tall)
        )
    margin = part.effects.observed.margin or 0.0
    ends = [mark.ends for row in rows for mark in row.marks]
    reach = reach_of(ends, 150 * margin, [value for value, _, _ in ends])
    heads, band = (
        [("gain, % [95 %]", 0.12), ("verdict", 0)],
        margin_band(margin) if margin else None,
    )
    section = forest_section(
        "", rows, left=left, right=2.55, label=FASTER_AXIS, heads=heads, reach=reach, band=band
    )
    return part.section(section.tall, section.draw)


def _notes(part: KeyPart, name: str) -> Iterator[str]:
    if part.again is not None and part.again.verdict == "not comparable":
        differs = (
            f"changes nothing but differs from stock ({minus(number(part.again.gain or 0.0))} %)"
        )
        yield f"{part.title}: {part.again.label} {differs}: no effect is claimed there."
    more = len(part.terms("interaction")) - FEW
    if more > 0:
        yield f"{name}{more} weaker interaction{'s are' if more > 1 else ' is'} not shown."
    for lost in part.effects.observed.lost[:4]:
        yield f"{name}Lost: {lost.point} in {len(lost.blocks)} blocks: {lost.reason.rstrip('.')}."
