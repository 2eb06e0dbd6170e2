"""Picture of a design over keys: the effect of each key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from analysis.plots.labels import fit, measure_of, minus, room_for
from analysis.plots.marks import (
    FASTER_AXIS,
    VERDICTS,
    Mark,
    MarkRow,
    ends_of,
    forest_section,
    margin_band,
    reach_of,
    scaled,
)
from analysis.plots.page import Plot, margin_entry, verdict_entries
from analysis.plots.scene import Scene, some
from analysis.plots.style import picture
from analysis.terms import Comparison, Run
from analysis.wording import bracket, counted, number, spoken

from .terms import NAMED, Effects, Term

if TYPE_CHECKING:
    from analysis.plots.marks import Ends, Style
    from analysis.plots.page import Chart

# The verdicts of `compare`, plus that of a design; shape repeats the meaning of colour.
MARKS: dict[str, Style] = VERDICTS | {
    "interacts": {"marker": "D", "color": "#8f4b7d", "markerfacecolor": "#8f4b7d"}
}
CALLED = NAMED | {"interacts"}
# Designs whose cells vary several keys at once; "file" is any of them, from a design file.
FACTORIAL = frozenset({"factorial", "fractional", "file"})
FEW = 5  # number of interactions shown, the strongest
LINE_IN = 0.19
ALONE: Style = {"markersize": 5, "linewidth": 1.0}
WAYS = ("in profile", "alone")  # rows per key in an ablation
HEADS = [("gain, % [95 %]", 0.12), ("verdict", 0)]
IN_COMPANY = (
    " In the profile: all keys set, against all but this one. Alone: this key set, against stock."
)


class KeyPart(NamedTuple):
    """The effects of one tweak set's keys under one workload in one run; `title` distinguishes it.

    `again` is the A/A check: the machine's behaviour without any change; None if not measured.
    """

    run: Run
    effects: Effects
    title: str
    again: Comparison | None

    def terms(self, *means: str) -> list[Term]:
        """Return the effects of these kinds, the largest first."""
        own = [term for term in self.effects.terms if term.means in means]
        return sorted(own, key=lambda term: -abs(term.effect))

    @property
    def differs(self) -> bool:
        """Return whether the check fails, by the effects' rule or that of `compare`."""
        failed = self.effects.again_fails
        return self.again is not None and (failed or self.again.verdict == "not comparable")

    @property
    def checked(self) -> str:
        return "not comparable" if self.differs else "inconclusive"


@picture(-7, "Effect of each key", DESIGNS=FACTORIAL | {"ablation"})
def key_effects(scene: Scene) -> Plot:
    """Effect of each key of a tweak set, with its uncertainty; in an ablation, in both ways.

    There is a section per workload; keys are ordered by the size of their effect, and interactions
    follow.
    """
    parts = _parts(scene)
    rows = [row for part in parts for row in _rows(part)]
    names = [name for row in rows for name in (*row.name.split("\n"), row.small)]
    left = room_for([f"{name}mm" for name in names], 2.1)
    terms = [term for part in parts for term in part.effects.terms if term.means != "disagreement"]
    lead = (
        "Right of 0 the key makes the work faster, left of it slower. Marks: the effect; lines: "
        "its 95 % interval."
    )
    if any(term.means in WAYS for term in terms):
        lead += IN_COMPANY
    shown: set[str] = {term.verdict for term in terms}
    shown |= {part.checked for part in parts if part.again}
    legend = [
        *verdict_entries(MARKS, shown),
        margin_entry(part.effects.observed.margin for part in parts),
    ]
    notes = [note for part in parts for note in _notes(part)]
    if any(term.means == "interaction" for term in terms):
        notes.append("An interaction (×) is the change of one key's effect when the other is set.")
    return Plot(lead, [_section(part, left) for part in parts], legend, notes)


def _parts(scene: Scene) -> list[KeyPart]:
    every = [(run, effects) for run in scene.runs for effects in scene.effects.get(run.origin, ())]
    some(every, "the run decomposed no tweak set: `--design` lists the designs that do")
    profiles = {effects.observed.profile for _, effects in every}
    parts = []
    for run, effects in every:
        data = effects.observed
        names = [data.workload, *([data.profile] if len(profiles) > 1 else [])]
        names += [f"run {run.run_id}"] if len(scene.runs) > 1 else []
        checks = (
            one
            for one in scene.comparisons
            if one.untouched
            and one.primary
            and (one.candidate_run, one.study, one.workload)
            == (run.origin, data.study, data.workload)
        )
        parts.append(KeyPart(run, effects, " · ".join(names), next(checks, None)))
    refused = dict.fromkeys(effects.refusal.rstrip(".") for _, effects in every if effects.refusal)
    reason = "; ".join(refused) or "no effect of a key could be estimated"
    return some((part for part in parts if part.effects.terms), reason)


def _rows(part: KeyPart) -> list[MarkRow]:
    data = part.effects.observed
    values = {factor.name: factor.levels[-1] for factor in data.factors}
    keys: dict[str, list[Term]] = {}
    for term in part.terms("main", "level", *WAYS):
        name = term.factors[0]
        keys.setdefault(f"{name}={term.level or values[name]}", []).append(term)
    whole = [
        _row(data.profile, "all keys, against stock", _marks(term))
        for term in part.terms("profile")
    ]
    single = [
        _row(
            name, _aliases(terms[0]), _marks(*sorted(terms, key=lambda term: term.means == "alone"))
        )
        for name, terms in keys.items()
    ]
    joint = [
        _row(" ×\n".join(term.factors), _aliases(term), _marks(term))
        for term in part.terms("interaction")[:FEW]
    ]
    check = []
    if part.again is not None:
        mark = _mark(ends_of(part.again.primary), part.checked)
        check = [_row(part.again.tweakset, "changes nothing (A/A)", [mark])]
    groups = [whole, single, joint, check]
    rows = [row._replace(rule=at == 0) for group in groups for at, row in enumerate(group)]
    return [rows[0]._replace(rule=False), *rows[1:]]


def _row(name: str, small: str, marks: list[Mark]) -> MarkRow:
    tall = LINE_IN * max(len(marks), name.count("\n") + 1 + bool(small)) + 0.12
    return MarkRow(name, marks, small, bold=any(mark.bold for mark in marks), tall=tall)


def _marks(*terms: Term) -> list[Mark]:
    ways = (f"{term.means} " if term.means in WAYS else "" for term in terms)
    return [
        _mark((term.gain, term.gain_low, term.gain_high), term.verdict, way)
        for term, way in zip(terms, ways, strict=True)
    ]


def _mark(ends: Ends, verdict: str, way: str = "") -> Mark:
    value, low, high = ends
    interval = bracket(low, high, number) or " [no interval]"
    text = minus(f"{way}{number(value or 0.0)}{interval}")
    style = MARKS[verdict] | (ALONE if way == "alone " else {})
    return Mark(scaled(ends, 100), style, (text, spoken(verdict)), bold=verdict in CALLED)


def _aliases(term: Term) -> str:
    """Mark an aliased effect; the sentence and the table name its aliases."""
    return f"or {counted(len(term.aliases), 'combination')} of others" if term.aliases else ""


def _section(part: KeyPart, left: float) -> Chart:
    seen, margin = part.effects.observed, part.effects.observed.margin or 0.0
    rows = [
        row._replace(
            name="\n".join(
                fit(text, left - 0.15, lines=1 if "\n" in row.name else 2, weight="bold")
                for text in row.name.split("\n")
            )
        )
        for row in _rows(part)
    ]
    ends = [mark.ends for row in rows for mark in row.marks]
    return forest_section(
        part.title,
        rows,
        f"{seen.design} · {counted(len(seen.rows), 'cell')} · {measure_of(seen.metric).name}",
        [minus(part.effects.sentence)],
        part.run,
        left=left,
        right=2.55,
        label=FASTER_AXIS,
        heads=HEADS,
        reach=reach_of(ends, 150 * margin, [value for value, _, _ in ends]),
        band=margin_band(margin) if margin else None,
    )


def _notes(part: KeyPart) -> Iterator[str]:
    if part.again is not None and part.again.primary is not None and part.differs:
        gain = minus(number(part.again.primary.gain))
        yield (
            f"{part.title}: {part.again.tweakset} changes nothing but differs from stock "
            f"({gain} %): no effect is claimed there."
        )
    more = len(part.terms("interaction")) - FEW
    if more > 0:
        yield f"{part.title}: weaker interactions not shown: {more}."
