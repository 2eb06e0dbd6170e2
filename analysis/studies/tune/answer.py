"""A `tune` as an answer: what to keep, its gain in fresh blocks, and each setting."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from analysis.answer import Answer, Column, Columns, Line, Section, Tone, Word, bullets, table_of
from analysis.wording import bracket, counted, number, unsigned

if TYPE_CHECKING:
    from analysis.terms import Comparison

    from .tune import Confirmed, Tuning

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
DATA = ("chosen", "manifest", "interrupted", "left_out", "interactions")


def answer(tuning: Tuning) -> Answer:
    """Make the answer."""
    record, confirmed = tuning.record, tuning.confirmed
    table = Section("What became of each setting", [table_of(COLUMNS, tuning.settings)])
    notes = list(_notes(tuning))
    cut = "interrupted: only what was measured counts; the same command with --resume goes on"
    known = msgspec.to_builtins(record)
    return Answer(
        title=verdict_of(tuning),
        findings=list(_findings(tuning)),
        sections=[table] * bool(record.looks)
        + [Section("", bullets(notes, "note:"))] * bool(notes),
        warnings=[cut] * record.interrupted + list(confirmed.warnings if confirmed else ()),
        legend=list(_legend(tuning)),
        next=tuple(record.again) if record.manifest else (),
        data={
            **{name: known[name] for name in DATA},
            "selection_gain": tuning.selection_gain,
            "settings": tuning.settings,
            "confirmed": confirmed,
        },
        refused=tuning.refused,
        exit_code=INTERRUPTED if record.interrupted else 0,
    )


def verdict_of(tuning: Tuning) -> str:
    """Return the first line of the answer."""
    record, confirmed = tuning.record, tuning.confirmed
    among = counted(len(record.settings), "setting")
    if record.chosen is None:
        early = "" if record.looks else " before the race came to its first look"
        return f"Not finished: the choice among {among} was interrupted{early}."
    if not record.chosen:
        if any(one.gain is not None for one in tuning.settings):
            return f"Keep stock: none of {among} is shown to be worth keeping."
        if all(one.word == "fails" for one in tuning.settings):
            return f"Keep stock: no cell could be measured under any of {among}."
        return f"No verdict: too few cells were measured to tell the effect of any of {among}."
    share = f"{len(record.chosen)} of {among}"
    if confirmed and confirmed.chosen.primary:
        return _confirmed(confirmed, share)
    missing = "cannot be read" if tuning.refused else "were not measured"
    reason = confirmed.chosen.reason if confirmed else f"the fresh blocks {missing}."
    return f"{share} chosen, not confirmed: {reason}"


def _confirmed(confirmed: Confirmed, share: str) -> str:
    chosen = confirmed.chosen
    words = {
        "improved": f"Keep {share}",
        "regressed": f"Keep stock: the choice, {share}, is slower",
        "equivalent": f"Keep stock: the choice, {share}, changes nothing beyond "
        f"±{unsigned(chosen.margin)}",
        "inconclusive": f"Keep stock: the choice, {share}, shows no gain",
    }
    if chosen.verdict not in words:
        return f"No verdict: {chosen.reason}"
    blocks = counted(confirmed.blocks, "fresh block")
    return f"{words[chosen.verdict]}: {_figures(chosen)} in {blocks}."


def _findings(tuning: Tuning) -> Iterator[Line]:
    chosen, confirmed = tuning.record.chosen, tuning.confirmed
    if not chosen:
        return
    yield Line(f"Chosen: {', '.join(chosen)}.", tone="strong")
    if not confirmed or not confirmed.chosen.primary or tuning.selection_gain is None:
        return
    seemed = f"While choosing it looked like {number(tuning.selection_gain)} %."
    yield Line(f"{seemed} The fresh blocks were not used to choose.")
    whole, beside = confirmed.whole, confirmed.chosen_against_whole
    if not whole or not whole.primary or not beside or not beside.primary:
        return
    count, margin = len(tuning.record.settings), unsigned(beside.margin)
    more = f", less than {margin}" if 1 + beside.primary.low > 1 / (1 + beside.margin) else ""
    words = {
        "equivalent": f"the chosen ones do all that all {count} do, within {margin}",
        "regressed": f"the others add something{more or '; keep all, or tune for longer'}",
        "improved": "the others take something away",
    }
    word = words.get(beside.verdict, "whether the others add anything is not shown")
    against = f"chosen against all {_figures(beside)}"
    yield Line(f"All {count} together: {_figures(whole)}; {against}: {word}.")


def _figures(comparison: Comparison) -> str:
    effect = comparison.primary
    return f"{number(effect.gain)} %{bracket(effect.low, effect.high, number)}" if effect else ""


def _notes(tuning: Tuning) -> Iterator[str]:
    record = tuning.record
    for name, (alone, beside) in record.interactions.items():
        yield (
            f"{name} gains {number(math.expm1(beside))} % beside the other chosen settings, "
            f"and {number(math.expm1(alone))} % over all combinations"
        )
    words = {
        "fails": "no cell could be measured under {}; left out of the race",
        "not measured": "too few cells to tell the effect of {} from that of other settings",
        "not decided": "not decided in this time: {}; a larger --budget decides more",
    }
    for word, sentence in words.items() if record.looks else ():
        if names := [one.name for one in tuning.settings if one.word == word and not one.kept]:
            yield sentence.format(", ".join(names))
    for name, reason in record.left_out.items():
        yield f"not a candidate: {name}: {reason.removeprefix(f'{name}: ')}"
    if record.manifest:
        yield f"the chosen settings are a Skyhook manifest: {record.manifest}"
        yield "what they gain on another day: the next command, then `evidence` over both runs"


def _legend(tuning: Tuning) -> Iterator[tuple[str, str]]:
    rules = tuning.record.rules
    whole = f"{counted(len(tuning.settings), 'setting')} and {counted(rules.looks, 'look')}"
    yield "gain", "over balanced combinations of the others; each setting is on in half of the arms"
    yield "from, to", f"95 % interval, for {whole} together (Bonferroni)"
    yield "does nothing", f"the interval lies within ±{unsigned(rules.margin)}"
    chance = f"a gain of {unsigned(rules.min_gain)} has a chance below 10 %"
    yield "no gain in sight", f"{chance}: the setting left the race"
    yield "kept", "chosen; only the fresh blocks measure the gain of the choice"
