"""A `tune` as an answer: what to keep, what that gains in fresh blocks, what became of each setting."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table, Tone, Word, bullets
from analysis.wording import bracket, counted, number, unsigned

if TYPE_CHECKING:
    from analysis.terms import Comparison, Effect

    from .tune import Tuning

TONES: dict[str, Tone] = {
    "helps": "good",
    "harms": "bad",
    "does nothing": "quiet",
    "no gain in sight": "quiet",
    "not decided": "open",
}
INTERRUPTED = 130  # as a shell has it
COLUMNS = (
    Column("setting", "setting", left=True),
    Column("in the race", "word", left=True),
    Column("gain %", "gain"),
    Column("95 % interval", "interval"),
    Column("look", "look", spare=1),
    Column("kept", "kept", left=True),
)


def answer(tuning: Tuning) -> Answer:
    """Make the answer."""
    record = tuning.record
    chosen = record["chosen"]
    kept = {} if chosen is None else chosen
    notes = list(_notes(tuning))
    table = Section("What became of each setting", [_table(tuning, kept)])
    sections = [table] if tuning.settings else []
    return Answer(
        title=verdict_of(tuning),
        findings=[*_findings(tuning)],
        sections=[*sections, Section("", bullets(notes, "note:"))] if notes else sections,
        warnings=_warnings(tuning),
        legend=list(_legend(tuning)),
        next=_next(tuning),
        data=_data(tuning),
        exit_code=INTERRUPTED if record.get("interrupted") else 0,
    )


def verdict_of(tuning: Tuning) -> str:
    record, confirmed = tuning.record, tuning.confirmed
    count = len(record["settings"])
    if record["chosen"] is None:
        seen = "" if tuning.settings else " before the race came to its first look"
        return f"Not finished: the choice among {counted(count, 'setting')} was interrupted{seen}."
    if not record["chosen"]:
        return f"Keep stock: none of {counted(count, 'setting')} is worth keeping."
    share = f"{len(record['chosen'])} of {counted(count, 'setting')}"
    if confirmed is None or confirmed.chosen.primary is None:
        reason = confirmed.chosen.reason if confirmed else "no fresh blocks were measured."
        return f"{share} chosen, not confirmed: {reason}"
    return _confirmed(confirmed.chosen, share)


def _confirmed(chosen: Comparison, share: str) -> str:
    assert chosen.primary is not None  # noqa: S101 the caller has looked
    figures = f"{_figures(chosen.primary)} in {counted(chosen.primary.n_candidate, 'fresh block')}"
    words = {
        "improved": f"Keep {share}: {figures}.",
        "regressed": f"Keep stock: the {share} that were chosen make it slower, {figures}.",
        "not comparable": f"No verdict: {chosen.reason}",
    }
    shown = f"Keep stock: that the {share} that were chosen gain anything is not shown, {figures}."
    return words.get(chosen.verdict, shown)


def _findings(tuning: Tuning) -> Iterator[Line]:
    chosen, confirmed = tuning.record["chosen"], tuning.confirmed
    if chosen:
        yield Line(f"Chosen: {', '.join(chosen)}.", tone="strong")
    if chosen and confirmed and confirmed.chosen.primary and tuning.selection_gain is not None:
        yield Line(f"While choosing it looked like {number(tuning.selection_gain)} %. The fresh blocks were not used to choose.")
    if confirmed and confirmed.whole and confirmed.whole.primary and confirmed.beside:
        yield Line(_beside(confirmed.whole, confirmed.beside, len(tuning.record["settings"])))


def _beside(whole: Comparison, beside: Comparison, count: int) -> str:
    assert whole.primary is not None  # noqa: S101 the caller has looked
    figures = f"All {count} together: {_figures(whole.primary)}"
    if beside.primary is None:
        return f"{figures}."
    difference = f"chosen against all {_figures(beside.primary)}"
    if beside.verdict == "equivalent":
        return f"{figures}; the chosen ones do all that all {count} do, within {unsigned(beside.margin)} ({difference})."
    if beside.verdict == "regressed":
        return f"{figures}; the others still add something ({difference}): keep all, or tune for longer."
    if beside.verdict == "improved":
        return f"{figures}; the others take something away ({difference})."
    return f"{figures}; whether the others add anything is not shown ({difference})."


def _figures(effect: Effect) -> str:
    return f"{number(effect.gain)} %{bracket(effect.low, effect.high, number)}"


def _table(tuning: Tuning, kept: dict[str, float]) -> Table:
    rows = []
    for setting in tuning.settings:
        interval = bracket(setting.low, setting.high, number).strip()
        word = Word(setting.word, TONES[setting.word])
        rows.append(
            [
                setting.name,
                word,
                number(setting.gain),
                interval,
                setting.look,
                "kept" if setting.name in kept else "",
            ]
        )
    return Table(COLUMNS, rows)


def _notes(tuning: Tuning) -> Iterator[str]:
    record = tuning.record
    for name, (alone, beside) in record["interactions"].items():
        yield (
            f"{name} gains {number(math.expm1(beside))} % beside the other chosen settings, "
            f"and {number(math.expm1(alone))} % over all combinations"
        )
    if failed := [name for look in record["looks"] for name in look["failed"]]:
        yield f"no cell could be measured under {', '.join(failed)}: it left the race"
    for name, reason in record["left_out"].items():
        yield f"not a candidate: {name}: {reason.removeprefix(f'{name}: ')}"
    if record["manifest"]:
        yield f"the chosen settings are a Skyhook manifest: {record['manifest']}"
        yield "what they gain on another day: the next command, then `evidence` over both runs"
    if undecided := [
        setting.name for setting in tuning.settings if setting.word == "not decided" and setting.name not in (record["chosen"] or {})
    ]:
        yield f"not decided in this time: {', '.join(undecided)}; a larger --budget decides more"


def _warnings(tuning: Tuning) -> list[str]:
    if tuning.record.get("interrupted"):
        return ["interrupted: what was measured by then is judged; the same command with --resume goes on"]
    return []


def _legend(tuning: Tuning) -> Iterator[tuple[str, str]]:
    rules = tuning.record["rules"]
    yield (
        "gain",
        "of the setting, over balanced combinations of the others: of half of the arms it is a part",
    )
    yield (
        "95 % interval",
        f"holds for all {len(tuning.record['settings'])} settings and {rules['looks']} looks together (Bonferroni)",
    )
    yield "helps, harms", "the interval lies above, or below, 0"
    yield "does nothing", f"the interval lies within {unsigned(rules['margin'])}"
    yield (
        "no gain in sight",
        f"the chance that it gains {unsigned(rules['min_gain'])} is below 10 %: it left the race at this look",
    )
    yield "kept", "chosen; what the choice gains is said by fresh blocks alone"


def _next(tuning: Tuning) -> tuple[str, ...]:
    return tuple(tuning.record["again"]) if tuning.record["manifest"] else ()


def _data(tuning: Tuning) -> dict[str, object]:
    record, confirmed = tuning.record, tuning.confirmed
    return {
        "name": record["name"],
        "chosen": record["chosen"],
        "selection_gain": tuning.selection_gain,
        "manifest": record["manifest"],
        "interrupted": record.get("interrupted", False),
        "settings": list(tuning.settings),
        "left_out": record["left_out"],
        "interactions": record["interactions"],
        "confirmed": None
        if confirmed is None
        else {
            "run_id": confirmed.run.run_id,
            "chosen": confirmed.chosen,
            "whole": confirmed.whole,
            "chosen_against_whole": confirmed.beside,
        },
    }
