"""A history on one screen, at most 100 columns: how many series changed; of those when, by how much, and whether for the worse.

Both summaries of a workload stand side by side, since what moves one mostly moves the other; every number is a gain, + is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from analysis.answer import TONES
from analysis.labels import label_of
from analysis.plain import one_line
from analysis.printing import hanging, on_page
from analysis.render.text import STYLES
from analysis.stats.changepoint import without_outliers
from analysis.stats.step_evidence import SHORTEST
from analysis.wording import number

from .acknowledged import NEAR
from .spark import sparkline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from .records import Change, History, Mark, Series

SHOWN = 15
NAME, SPARK, RUNS, GAIN = 56, 40, 20, 21


@dataclass(frozen=True, slots=True)
class Look:
    """How to write: for a terminal with colour or without, with only ASCII, every change or the first `SHOWN`."""

    color: bool = False
    plain: bool = False
    every: bool = False


@dataclass(frozen=True, slots=True)
class _Event:
    """What happened to a workload at one time, in one metric or in both alike."""

    changes: tuple[Change, ...]

    @property
    def at(self) -> Change:
        return self.changes[0]


def render(history: History, look: Look) -> str:
    """Write a history as text."""
    events = _events(history)
    shown = events if look.every else events[:SHOWN]
    columns = _columns(shown)
    parts: list[RenderableType] = [Text(_headline(history), "bold" if look.color else "")]
    parts += [Text(line) for line in _beside(history)]
    parts += [Text(), Text(_head(columns))] if shown else []
    notes: dict[str, int] = {}
    for subject in dict.fromkeys(_subject(event.at.series) for event in shown):
        own = [event for event in shown if _subject(event.at.series) == subject]
        parts.append(_series_line(own[0].at.series, history, look))
        parts += [_event_line(event, columns, notes, look) for event in own]
    if len(events) > len(shown):
        parts.append(Text(f"and {len(events) - len(shown)} more, older: --all"))
    remarks = [(f"({mark})", f"acknowledged: {one_line(note)}") for note, mark in notes.items()]
    remarks += [("note:", one_line(note)) for note in history.notes]
    parts += [Text(), hanging(remarks)] if remarks else []
    parts += [Text(), Text(_legend(history), "dim" if look.color else "")]
    return on_page(parts, color=look.color)


def _headline(history: History) -> str:
    changed = sum(bool(one.changes) for one in history.judged)
    judged = sum(one.p is not None for one in history.judged)
    verdict = f"{_counted(judged, 'series')} judged: {changed or 'none'} changed" if judged else "No series is long enough to be judged"
    span = f", {history.first_utc[:10]} to {history.last_utc[:10]}" if history.runs else ""
    refused = f", {_counted(len(history.refused), 'file')} refused" if history.refused else ""
    return f"{_counted(history.runs, 'run')}{span}{refused}. {verdict}."


def _beside(history: History) -> list[str]:
    """What else there is: the machine, where it is one, and the series that were not judged."""
    machines = {one.series.machine for one in history.judged}
    short = sum(one.p is None for one in history.judged)
    lines = list(machines) if len(machines) == 1 else []
    return lines + ([f"{_counted(short, 'series')} not judged: fewer than {SHORTEST} runs."] if short else [])


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 and not noun.endswith('s') else ''}"


def _subject(series: Series) -> tuple[str, ...]:
    """What both metrics of a workload have in common."""
    return series.study, series.workload, series.variant, series.tweakset, series.machine


def _events(history: History) -> list[_Event]:
    """Put changes of one subject together that began within a few runs of each other and go the same way; the newest first."""
    events: list[list[Change]] = []
    for change in history.changes:
        for event in events:
            first = event[0]
            if (
                _subject(first.series) == _subject(change.series)
                and first.verdict == change.verdict
                and abs(first.runs_since - change.runs_since) <= NEAR
                and change.series.metric not in {one.series.metric for one in event}
            ):
                event.append(change)
                break
        else:
            events.append([change])
    return [_Event(tuple(event)) for event in events]


def _columns(events: Sequence[_Event]) -> list[str]:
    """The metrics that changed, throughput first; a low quantile of step time shares its column with the one that stands in for it."""
    names = {_column(change.series) for event in events for change in event.changes}
    return sorted(names, key=lambda name: (not name.startswith("throughput"), name))


def _column(series: Series) -> str:
    label = label_of(series.metric)
    return "step time" if label in {"step", "p10 step", "median step"} else label


def _head(columns: Sequence[str]) -> str:
    metrics = " ".join(f"{name + ', %':>{GAIN}}" for name in columns)
    return f"  {'first run':10}  {'before, after':{RUNS}} {metrics}"


def _series_line(series: Series, history: History, look: Look) -> Text:
    name = one_line(series.name, 200)
    if len({one.series.machine for one in history.judged}) > 1:
        name += f" on {series.machine}"
    sign = 1.0 if series.metric.better == "higher" else -1.0
    tame = without_outliers(np.log([point.value for point in series.points]))  # one bad run would flatten all the others
    line = sparkline((sign * tame).tolist(), SPARK, plain=look.plain)
    return Text.assemble((f"{_shortened(name, NAME, look):{NAME}}", "bold" if look.color else ""), "  ", line)


def _event_line(event: _Event, columns: Sequence[str], notes: dict[str, int], look: Look) -> Text:
    change = event.at
    arrow = "->" if look.plain else "→"
    runs = f"{_called(change.last_before, look)}{arrow}{_called(change.first, look)}"
    found = {_column(one.series): _gain(one) for one in event.changes}
    gains = " ".join(f"{found.get(name, ''):>{GAIN}}" for name in columns)
    known = [one.acknowledged for one in event.changes if one.acknowledged]
    marks = ",".join(str(notes.setdefault(note, len(notes) + 1)) for note in dict.fromkeys(known))
    style = "dim" if len(known) == len(event.changes) else STYLES[TONES[change.verdict]]
    verdict = (change.verdict, style if look.color else "")
    return Text.assemble(f"  {change.first.started_utc[:10]}  {runs:{RUNS}} {gains}  ", verdict, f" ({marks})" if marks else "")


def _gain(change: Change) -> str:
    return f"{number(change.gain)} [{number(change.low).lstrip('+')}, {number(change.high).lstrip('+')}]"


def _called(mark: Mark, look: Look) -> str:
    """The commit a run measured, where it is known, with a star where it was edited; else the name of its file."""
    if mark.commit:
        commit, _, edited = mark.commit.partition("+")
        return commit[:7] + ("*" if edited else "")
    return _shortened(Path(mark.origin).stem, 9, look)


def _shortened(text: str, width: int, look: Look) -> str:
    dots = ".." if look.plain else "…"
    return text if len(text) <= width else dots + text[len(dots) - width :]


def _legend(history: History) -> str:
    judged = sum(one.p is not None for one in history.judged)
    lines = []
    if history.changes:
        lines += ["+ is better, - is worse, in every column and in the lines of blocks (up is better); [95 % interval]."]
        lines += ["A change lies between the two runs named, or a run or two beside; drift is seen as steps."]
    if judged:
        noise = "a series that is noise alone is called changed in at most 5 of 100 cases"
        lines += [f"False alarms: {noise if judged == 1 else f'at most 5 % of the series called changed, over all {judged} (BH)'}."]
    return "\n".join(lines)
