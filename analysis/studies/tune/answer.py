"""A `tune` as an answer: what to keep, its gain in fresh blocks, and each setting."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from analysis.answer import Answer, Column, Columns, Line, Section, Tone, Word, bullets, table_of
from analysis.wording import bracket, counted, number, percent, spoken, unsigned
from control.tuning import MARGIN

if TYPE_CHECKING:
    from analysis.terms import Comparison

    from .tune import Tuning

TONES: dict[str, Tone] = {
    "helps": "good",
    "harms": "bad",
    "fails": "bad",
    "not decided": "open",
    "not measured": "open",
}
INTERRUPTED = 130  # as a shell has it
COLUMNS: Columns = (
    (Column("setting", left=True), attrgetter("name")),
    (
        Column("in the race", "word", left=True),
        lambda one: Word(one.word, TONES.get(one.word, "quiet")),
    ),
    (Column("gain %", "gain", number), attrgetter("gain")),
    (Column("from", "low", number), attrgetter("low")),
    (Column("to", "high", number), attrgetter("high")),
    (Column("look", spare=1), attrgetter("look")),
    (Column("kept", left=True), lambda one: "kept" if one.kept else None),
)


def answer(tuning: Tuning) -> Answer:
    record, confirmed = tuning.record, tuning.confirmed
    table = Section("Result for each setting", [table_of(COLUMNS, tuning.settings)])
    notes = bullets(_notes(tuning), "note:")
    cut = "interrupted: only measured cells count; the same command with --resume continues"
    whole = f"{counted(len(tuning.settings), 'setting')} and {counted(record.rules.looks, 'look')}"
    least = unsigned(record.rules.min_gain)
    return Answer(
        title=verdict_of(tuning),
        findings=list(_findings(tuning)),
        sections=[table] * bool(record.looks) + [Section("", notes)] * bool(notes),
        warnings=[cut] * record.interrupted + list(confirmed.warnings if confirmed else ()),
        legend=[
            ("gain", "over balanced combinations of the others"),
            ("from, to", f"95 % interval, for {whole} together (Bonferroni)"),
            ("does nothing", f"the interval lies within ±{unsigned(MARGIN)}"),
            ("no gain in sight", f"a gain of {least} has a chance below 10 %: it left the race"),
            ("fails", "no cell could be measured under it: it left the race"),
            ("not decided", "a larger --budget decides more"),
            ("not measured", "too few cells to tell its effect from that of others"),
            ("kept", "chosen; only the fresh blocks measure the gain of the choice"),
        ],
        next=confirmed.again if confirmed else (),
        data={
            "record": msgspec.to_builtins(record),
            "settings": tuning.settings,
            "confirmed": confirmed,
        },
        refused=tuning.refused,
        exit_code=INTERRUPTED if record.interrupted else 0,
    )


def verdict_of(tuning: Tuning) -> str:
    record, confirmed = tuning.record, tuning.confirmed
    among = counted(len(record.settings), "setting")
    if record.chosen is None:
        early = "" if record.looks else " before the first look of the race"
        return f"Not finished: the choice among {among} was interrupted{early}."
    if not record.chosen:
        if any(one.gain is not None for one in tuning.settings):
            return f"Keep stock: none of {among} is shown to be worth keeping."
        if all(one.word == "fails" for one in tuning.settings):
            return f"Keep stock: no cell could be measured under any of {among}."
        return f"No verdict: too few cells were measured to tell the effect of any of {among}."
    share = f"{len(record.chosen)} of {among}"
    if not confirmed or not confirmed.chosen.primary:
        missing = "cannot be read" if tuning.refused else "were not measured"
        reason = confirmed.chosen.reason if confirmed else f"the fresh blocks {missing}."
        return f"{share} chosen, not confirmed: {reason}"
    chosen = confirmed.chosen
    outcomes = {
        "improved": f"Keep {share}",
        "regressed": f"Keep stock: the choice, {share}, is slower",
        "equivalent": f"Keep stock: the choice, {share}, changes nothing beyond "
        f"±{unsigned(chosen.margin)}",
        "inconclusive": f"Keep stock: the choice, {share}, shows no gain",
    }
    outcome = outcomes.get(chosen.verdict)
    blocks = counted(chosen.pairs, "fresh block")
    return (
        f"{outcome}: {_figures(chosen)} in {blocks}." if outcome else f"No verdict: {chosen.reason}"
    )


def _findings(tuning: Tuning) -> Iterator[Line]:
    chosen, confirmed = tuning.record.chosen, tuning.confirmed
    if not chosen:
        return
    yield Line(f"Chosen: {', '.join(chosen)}.", tone="strong")
    if not confirmed or not confirmed.chosen.primary:
        return
    seemed = percent(math.expm1(math.fsum(chosen.values())))
    yield Line(f"In the race, the gain seemed {seemed}. The fresh blocks were not used to choose.")
    whole, beside = confirmed.whole, confirmed.beside
    if whole and whole.primary and beside and beside.primary:
        yield Line(
            f"All {len(tuning.settings)} together: {_figures(whole)}; chosen against all: "
            f"{_figures(beside)}, {spoken(beside.verdict)}."
        )


def _figures(comparison: Comparison) -> str:
    effect = comparison.primary
    return f"{percent(effect.gain)}{bracket(effect.low, effect.high, number)}" if effect else ""


def _notes(tuning: Tuning) -> Iterator[str]:
    record = tuning.record
    for name, gains in record.interactions.items():
        alone, beside = (percent(math.expm1(gain)) for gain in gains)
        yield f"{name} gains {beside} beside the other chosen settings, and {alone} on average"
    for name, reason in record.left_out.items():
        yield f"not a candidate: {name}: {reason}"
    if record.chosen:
        yield f"the chosen settings are a Skyhook manifest: {tuning.manifest}"
        yield "for their gain on another day, run the next command, then `evidence` over both runs"
