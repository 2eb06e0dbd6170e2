"""A history as an answer: how many series changed, when, by how much, for better or worse.

Both summaries of a workload share a row, since they mostly change together; every number is a gain,
+ is better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from analysis.answer import (
    TONES,
    Answer,
    Column,
    Columns,
    Line,
    Section,
    Table,
    Word,
    bullets,
    table_of,
)
from analysis.labels import label_of
from analysis.stats.changepoint import SHORTEST, SHORTEST_LEVEL, without_outliers
from analysis.wording import bracket, counted, number, percent

if TYPE_CHECKING:
    from .history import ChangeMark, History, JudgedSeries, LevelChange, RunSeries


EVIDENCE = ("energy", "student_t", "df", "student_p")
SPARK = 20
NEAR = 3
RAMP = "▁▂▃▄▅▆▇█"
Event = tuple["LevelChange", ...]  # a workload's change at one time, in one metric or in both


def answer(history: History, worse: Sequence[LevelChange], *, recent: int | None = None) -> Answer:
    """Make the answer; `worse`: regressions in the last `recent` runs, if those fail a build."""
    judged = any(judged.p is not None for judged in history.judged)
    exit_code = 3 if not judged else int(bool(worse and recent))
    events = _events(history)
    findings = [Line(_headline(history), tone="strong")]
    if recent and judged:
        findings.insert(0, _ruling(worse, recent))
    parts: list[Line | Table] = [
        *([_table(events, history)] if events else []),
        *bullets(history.notes, "note:"),
    ]
    data = {name: getattr(history, name) for name in ("runs", "first_utc", "last_utc", "notes")}
    rows = [_subject(change.series) | _change(change) for change in history.changes]
    return Answer(
        title="History" + "".join(f" on {machine}" for machine in _machine(history)),
        findings=[*findings, *_odd_runs(history), *_short(history)],
        sections=[Section("", parts)] if parts else [],
        legend=list(_legend(history)),
        data={
            "exit_code": exit_code,
            "recent_regressions": len(worse),
            "series": [_series(judged) for judged in history.judged],
            **data,
        },
        rows=Table(
            [Column(name) for name in rows[0]] if rows else [], [[*row.values()] for row in rows]
        ),
        exit_code=exit_code,
    )


def _ruling(worse: Sequence[LevelChange], recent: int) -> Line:
    if not worse:
        return Line(f"No regression in the last {recent} runs.", tone="good")
    names = "; ".join(list(dict.fromkeys(change.series.name for change in worse))[:5])
    return Line(
        f"Regression: {_count(len(worse), 'change')} in the last {recent} runs: {names}.",
        tone="bad",
    )


def _headline(history: History) -> str:
    changed = sum(bool(judged.changes) for judged in history.judged)
    judged = sum(judged.p is not None for judged in history.judged)
    verdict = (
        f"{_count(judged, 'series')} judged: {changed or 'none'} changed"
        if judged
        else "No series is long enough to be judged"
    )
    span = f", {history.first_utc[:10]} to {history.last_utc[:10]}" if history.runs else ""
    refused = f", {_count(len(history.refused), 'file')} refused" if history.refused else ""
    return f"{_count(history.runs, 'run')}{span}{refused}. {verdict}."


def _machine(history: History) -> list[str]:
    machines = list({judged.series.machine for judged in history.judged})
    return machines if len(machines) == 1 else []


def _short(history: History) -> Iterator[Line]:
    short = sum(judged.p is None for judged in history.judged)
    if short:
        yield Line(f"{_count(short, 'series')} not judged: fewer than {SHORTEST} runs.")


def _odd_runs(history: History) -> Iterator[Line]:
    odd = {judged.series.name: judged for judged in reversed(history.judged) if judged.odd_last}
    for name, judged in reversed(odd.items()):
        runs = (
            "the last run is"
            if judged.odd_last == 1
            else f"each of the last {judged.odd_last} runs is"
        )
        off = f"{percent(judged.odd_gain)} or more off the level before"
        yield Line(
            f"Not yet judged: {name}: {runs} {off} (+ is better). A new level needs "
            f"{SHORTEST_LEVEL} runs.",
            tone="open",
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if noun == "series" else counted(number, noun)


def _events(history: History) -> list[Event]:
    """Group changes of one subject that begin within a few runs and agree in sign; newest first."""
    events: list[list[LevelChange]] = []
    for change in history.changes:
        for event in events:
            first = event[0]
            if (
                _subject(first.series) | {"metric": ""} == _subject(change.series) | {"metric": ""}
                and first.verdict == change.verdict
                and abs(first.runs_since - change.runs_since) <= NEAR
                and change.series.metric not in {other.series.metric for other in event}
            ):
                event.append(change)
                break
        else:
            events.append([change])
    for event in events:
        event.sort(key=lambda change: not change.series.metric.name.startswith("throughput"))
    return list(map(tuple, events))


def _table(events: Sequence[Event], history: History) -> Table:
    several = not _machine(history)

    def name(event: Event) -> str:
        series = event[0].series
        return f"{series.name} on {series.machine}" if several else series.name

    def ends(event: Event) -> str:
        return f"{_label(event[0].last_before)}→{_label(event[0].first)}"

    columns: Columns = [
        (Column("series", left=True), name),
        (Column("so far", left=True, spare=2), lambda event: _spark(event[0].series)),
        (Column("first run", left=True), lambda event: event[0].first.started_utc[:10]),
        (Column("before, after", left=True), ends),
        (Column("gain, % [95 %]", write=_gain), lambda event: event[0]),
        (Column("and by", write=_gain, spare=1), lambda event: (*event, None)[1]),
        (
            Column("verdict", left=True),
            lambda event: Word(event[0].verdict, TONES[event[0].verdict]),
        ),
    ]
    return table_of(columns, events)


def _gain(change: LevelChange) -> str:
    metric = change.series.metric.name
    label = "" if metric == "throughput_samples_per_s" else f"{label_of(metric)} "
    return f"{label}{number(change.gain)}{bracket(change.low, change.high)}"


def _label(mark: ChangeMark) -> str:
    if mark.commit:
        commit, _, edited = mark.commit.partition("+")
        return commit[:7] + ("*" if edited else "")
    return Path(mark.origin).stem[-9:]


def _spark(series: RunSeries) -> str:
    sign = 1.0 if series.metric.better == "higher" else -1.0
    tame = without_outliers(np.log([point.value for point in series.points]))  # outliers flatten
    return sparkline((sign * tame).tolist(), SPARK)


def sparkline(values: Sequence[float], width: int) -> str:
    count = min(width, len(values))
    cuts = [round(at * len(values) / count) for at in range(count + 1)]
    heights = [median(values[begin:end]) for begin, end in pairwise(cuts)]
    low, high = min(heights), max(heights)
    if high == low:
        return RAMP[len(RAMP) // 2] * count
    places = (int((height - low) / (high - low) * len(RAMP)) for height in heights)
    return "".join(RAMP[min(place, len(RAMP) - 1)] for place in places)


def _legend(history: History) -> Iterator[tuple[str, str]]:
    judged = sum(judged.p is not None for judged in history.judged)
    if history.changes:
        yield (
            "gain",
            "+ is better, - is worse, in every column and in the line of blocks (up is better).",
        )
        yield (
            "first run",
            (
                "a change lies between the two named runs, give or take a run or two; drift "
                "appears as steps."
            ),
        )
    if judged:
        noise = "a series of pure noise is called changed in at most 5 of 100 cases"
        several = f"at most 5 % of the series called changed, over all {judged} (BH)"
        yield "false alarms", f"{noise if judged == 1 else several}."


def _subject(series: RunSeries) -> dict[str, object]:
    names = ("study", "workload", "variant", "tweakset", "relative_to")
    return {
        **{name: getattr(series, name) for name in names},
        "metric": series.metric.name,
        "machine": series.machine,
    }


def _change(change: LevelChange) -> dict[str, object]:
    found = {
        name: getattr(change, name)
        for name in ("verdict", "gain", "low", "high", "before", "after", "runs_since")
    }
    sides = {"last_before": change.last_before, "first": change.first}
    marks = {
        f"{side}_{name}": getattr(mark, name)
        for side, mark in sides.items()
        for name in ("run_id", "started_utc", "commit", "origin")
    }
    return found | marks


def _series(judged: JudgedSeries) -> dict[str, object]:
    return {
        **_subject(judged.series),
        "better": judged.series.metric.better,
        "runs": len(judged.series.points),
        "not_judged": judged.reason,
        **{name: getattr(judged, name) for name in ("odd_last", "p", "p_adjusted")},
        "changes": [
            _change(change) | {"evidence": {name: getattr(change.found, name) for name in EVIDENCE}}
            for change in judged.changes
        ],
    }
