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


SPARK = 20
NEAR = 3
RAMP, PLAIN_RAMP = "▁▂▃▄▅▆▇█", "_.-=+*#@"
Event = tuple["LevelChange", ...]  # a workload's change at one time, in one metric or in both


def answer(
    history: History,
    worse: Sequence[LevelChange],
    *,
    recent: int | None = None,
    plain: bool = False,
) -> Answer:
    """Make the answer; `worse` are regressions in the last `recent` runs, if those fail a build.

    `plain` is for ASCII terminals.
    """
    judged = any(judged.p is not None for judged in history.judged)
    exit_code = 3 if not judged else int(bool(worse and recent))
    events = _events(history)
    table = _table(events, history, plain=plain)
    findings = [Line(_headline(history), tone="strong")]
    if recent and judged:
        findings.insert(0, _ruling(worse, recent))
    lines = bullets(history.notes, "note:")
    return Answer(
        title="History" + "".join(f" on {machine}" for machine in _machine(history)),
        findings=[*findings, *_odd_runs(history), *_short(history)],
        sections=[Section("", [*([table] if events else []), *lines])] if events or lines else [],
        legend=list(_legend(history)),
        data={
            "exit_code": exit_code,
            "runs": history.runs,
            "first_utc": history.first_utc,
            "last_utc": history.last_utc,
            "recent_regressions": len(worse),
            "series": [_series(judged) for judged in history.judged],
            "notes": history.notes,
        },
        rows=_flat(history),
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
    """Yield series whose last runs are outlying: neither changed nor quiet, too few for a level."""
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
                and change.series.metric not in {change.series.metric for change in event}
            ):
                event.append(change)
                break
        else:
            events.append([change])
    return [
        tuple(
            sorted(event, key=lambda change: not change.series.metric.name.startswith("throughput"))
        )
        for event in events
    ]


def _table(events: Sequence[Event], history: History, *, plain: bool) -> Table:
    machines = not _machine(history)
    arrow = "->" if plain else "→"
    columns: Columns = [
        (
            Column("series", left=True),
            lambda event: (
                event[0].series.name + (f" on {event[0].series.machine}" if machines else "")
            ),
        ),
        (Column("so far", left=True, spare=2), lambda event: _spark(event[0].series, plain=plain)),
        (Column("first run", left=True), lambda event: event[0].first.started_utc[:10]),
        (
            Column("before, after", left=True),
            lambda event: f"{_label(event[0].last_before)}{arrow}{_label(event[0].first)}",
        ),
        (Column("gain, % [95 %]", write=_gain), lambda event: event[0]),
        (
            Column("and by", write=_gain, spare=1),
            lambda event: event[1] if len(event) > 1 else None,
        ),
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
    """Return the commit, starred if edited, else the file's name."""
    if mark.commit:
        commit, _, edited = mark.commit.partition("+")
        return commit[:7] + ("*" if edited else "")
    return Path(mark.origin).stem[-9:]


def _spark(series: RunSeries, *, plain: bool) -> str:
    sign = 1.0 if series.metric.better == "higher" else -1.0
    tame = without_outliers(np.log([point.value for point in series.points]))  # outliers flatten
    return sparkline((sign * tame).tolist(), SPARK, plain=plain)


def sparkline(values: Sequence[float], width: int, *, plain: bool = False) -> str:
    count = min(width, len(values))
    cuts = [round(at * len(values) / count) for at in range(count + 1)]
    heights = [median(values[begin:end]) for begin, end in pairwise(cuts)]
    low, high = min(heights), max(heights)
    ramp = PLAIN_RAMP if plain else RAMP
    if high == low:
        return ramp[len(ramp) // 2] * count
    return "".join(
        ramp[min(int((height - low) / (high - low) * len(ramp)), len(ramp) - 1)]
        for height in heights
    )


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
    """Return a change for programs: gains are fractions, levels in the metric's unit or ratios."""
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


def _flat(history: History) -> Table:
    rows = [_subject(change.series) | _change(change) for change in history.changes]
    return Table(
        [Column(name) for name in rows[0]] if rows else [], [list(row.values()) for row in rows]
    )


def _series(judged: JudgedSeries) -> dict[str, object]:
    """Return a series with its changes; `evidence` has other tools' statistics, on log values."""
    evidence = ("energy", "student_t", "df", "student_p")
    return {
        **_subject(judged.series),
        "better": judged.series.metric.better,
        "runs": len(judged.series.points),
        "not_judged": judged.reason,
        **{name: getattr(judged, name) for name in ("odd_last", "p", "p_adjusted")},
        "changes": [
            _change(change) | {"evidence": {name: getattr(change.found, name) for name in evidence}}
            for change in judged.changes
        ],
    }
