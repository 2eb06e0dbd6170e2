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
    "fails": "bad",
    "not measured": "open",
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
    sections = [table] if record["looks"] else []
    return Answer(
        title=verdict_of(tuning),
        findings=[*_findings(tuning)],
        sections=[*sections, Section("", bullets(notes, "note:"))] if notes else sections,
        warnings=_warnings(tuning),
        legend=list(_legend(tuning)),
        next=_next(tuning),
        data=_data(tuning),
        rows=_raw(tuning, kept),
        exit_code=INTERRUPTED if record.get("interrupted") else 0,
    )


def verdict_of(tuning: Tuning) -> str:
    record, confirmed = tuning.record, tuning.confirmed
    count = len(record["settings"])
    if record["chosen"] is None:
        seen = "" if tuning.settings else " before the race came to its first look"
        return f"Not finished: the choice among {counted(count, 'setting')} was interrupted{seen}."
    if not record["chosen"] and not tuning.settings:
        words = {word for _, word in _without_gain(tuning)}
        if words == {"fails"}:
            return (
                f"Keep stock: no cell could be measured under any of {counted(count, 'setting')}."
            )
        return (
            "No verdict: too few cells were measured to tell the effect of any of "
            f"{counted(count, 'setting')}."
        )
    if not record["chosen"]:
        return f"Keep stock: none of {counted(count, 'setting')} is shown to be worth keeping."
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
        "regressed": f"Keep stock: the choice, {share}, is slower: {figures}.",
        "equivalent": (
            f"Keep stock: the choice, {share}, changes nothing beyond ±{unsigned(chosen.margin)}: "
            f"{figures}."
        ),
        "inconclusive": f"Keep stock: the choice, {share}, shows no gain: {figures}.",
    }
    return words.get(chosen.verdict, f"No verdict: {chosen.reason}")


def _findings(tuning: Tuning) -> Iterator[Line]:
    chosen, confirmed = tuning.record["chosen"], tuning.confirmed
    if chosen:
        yield Line(f"Chosen: {', '.join(chosen)}.", tone="strong")
    if chosen and confirmed and confirmed.chosen.primary and tuning.selection_gain is not None:
        yield Line(
            f"While choosing it looked like {number(tuning.selection_gain)} %. The fresh blocks "
            "were not used to choose."
        )
    if confirmed and confirmed.whole and confirmed.whole.primary and confirmed.beside:
        yield Line(_beside(confirmed.whole, confirmed.beside, len(tuning.record["settings"])))


def _beside(whole: Comparison, beside: Comparison, count: int) -> str:
    assert whole.primary is not None  # noqa: S101 the caller has looked
    figures = f"All {count} together: {_figures(whole.primary)}"
    if beside.primary is None:
        return f"{figures}."
    difference = f"chosen against all {_figures(beside.primary)}"
    if beside.verdict == "equivalent":
        return (
            f"{figures}; the chosen ones do all that all {count} do, within "
            f"{unsigned(beside.margin)} ({difference})."
        )
    if beside.verdict == "regressed":
        return (
            f"{figures}; the others still add something ({difference}): keep all, or tune for "
            "longer."
        )
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
    rows += [
        [name, Word(word, TONES[word]), None, None, None, ""]
        for name, word in _without_gain(tuning)
    ]
    return Table(COLUMNS, rows)


def _raw(tuning: Tuning, kept: dict[str, float]) -> Table:
    """Make a table with a row per setting, numbers unformatted."""
    names = ("setting", "word", "gain", "low", "high", "look", "kept")
    rows: list[list[object]] = [
        [
            setting.name,
            setting.word,
            setting.gain,
            setting.low,
            setting.high,
            setting.look,
            setting.name in kept,
        ]
        for setting in tuning.settings
    ]
    rows += [[name, word, None, None, None, None, False] for name, word in _without_gain(tuning)]
    return Table([Column(name, name) for name in names], rows)


def _without_gain(tuning: Tuning) -> Iterator[tuple[str, str]]:
    """Yield the settings that no look knew a gain of, and the word for each."""
    judged = {setting.name for setting in tuning.settings}
    failed = {name for look in tuning.record["looks"] for name in look["failed"]}
    for name in tuning.record["settings"]:
        if name not in judged:
            yield name, "fails" if name in failed else "not measured"


def _notes(tuning: Tuning) -> Iterator[str]:
    record = tuning.record
    for name, (alone, beside) in record["interactions"].items():
        yield (
            f"{name} gains {number(math.expm1(beside))} % beside the other chosen settings, "
            f"and {number(math.expm1(alone))} % over all combinations"
        )
    if failed := [name for look in record["looks"] for name in look["failed"]]:
        yield f"no cell could be measured under {', '.join(failed)}; left out of the race"
    unknown = [name for name, word in _without_gain(tuning) if word == "not measured"]
    if unknown and record["looks"]:
        yield f"too few cells to tell the effect of {', '.join(unknown)} from that of other settings"
    for name, reason in record["left_out"].items():
        yield f"not a candidate: {name}: {reason.removeprefix(f'{name}: ')}"
    if record["manifest"]:
        yield f"the chosen settings are a Skyhook manifest: {record['manifest']}"
        yield "what they gain on another day: the next command, then `evidence` over both runs"
    if undecided := [
        setting.name
        for setting in tuning.settings
        if setting.word == "not decided" and setting.name not in (record["chosen"] or {})
    ]:
        yield f"not decided in this time: {', '.join(undecided)}; a larger --budget decides more"


def _warnings(tuning: Tuning) -> list[str]:
    """Return what to know of the answer; of the fresh blocks what `compare` warns of."""
    fresh = list(tuning.confirmed.warnings) if tuning.confirmed else []
    if tuning.record.get("interrupted"):
        return [
            (
                "interrupted: this answer is of what was measured so far; the same command with "
                "--resume goes on"
            ),
            *fresh,
        ]
    return fresh


def _legend(tuning: Tuning) -> Iterator[tuple[str, str]]:
    rules = tuning.record["rules"]
    yield (
        "gain",
        (
            "what the setting gains over balanced combinations of the others; it is on in half of "
            "the arms"
        ),
    )
    yield (
        "95 % interval",
        (
            f"holds for {counted(len(tuning.record['settings']), 'setting')} and "
            f"{counted(rules['looks'], 'look')} together (Bonferroni)"
        ),
    )
    yield "helps, harms", "the interval lies above, or below, 0"
    yield "does nothing", f"the interval lies within ±{unsigned(rules['margin'])}"
    yield "fails", "no cell could be measured under the setting"
    yield (
        "no gain in sight",
        (
            f"the chance that it gains {unsigned(rules['min_gain'])} is below 10 %: it left the "
            "race at this look"
        ),
    )
    yield "kept", "chosen; only the fresh blocks measure what the choice gains"


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
