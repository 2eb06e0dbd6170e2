"""Changes that somebody knows of: a small file, so that a history alarms about what is new.

```yaml
- workload: cnn_train
  tweakset: stock                     # left out: every tweak set
  metric: throughput_samples_per_s    # left out: every metric
  date: 2026-11-03                    # or run: the id of the first run after the change
  note: the loader checks its input since a1b2c3d, issue 12
```

The place of a change is an estimate, which may still move by a run or two when more runs come in: so an entry speaks for the
change nearest to the run it names, if that is at most three runs away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from analysis import marked_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.marked_yaml import Value

    from .history import History, JudgedSeries, LevelChange, RunSeries

KEYS = ("workload", "tweakset", "metric", "run", "date", "note")
NEAR = 3


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """One entry of the file; of `run` and `date` (ISO 8601, UTC) one is None. `place` is where it stands, for messages."""

    place: str
    workload: str
    tweakset: str | None
    metric: str | None
    run: str | None
    date: str | None
    note: str

    def speaks_of(self, series: RunSeries) -> bool:
        theirs = (series.workload, series.tweakset, series.metric.name)
        return all(mine in (None, other) for mine, other in zip((self.workload, self.tweakset, self.metric), theirs, strict=True))

    def index_in(self, series: RunSeries) -> int | None:
        """Find the run that is named in a series: by its id, or the first of that date or later; None where there is none."""
        marks = [point.mark for point in series.points]
        if self.run is not None:
            return next((at for at, mark in enumerate(marks) if mark.run_id == self.run), None)
        return next((at for at, mark in enumerate(marks) if mark.started_utc >= str(self.date)), None)


def read(path: Path | str) -> list[Acknowledgement]:
    """Read the file.

    Raises: Refused, with the file's name and line, what is wrong there, and what to do.
    """
    return [_entry(entry) for entry in marked_yaml.read(path).entries()]


def _entry(entry: Value) -> Acknowledgement:
    values = dict(entry.items())
    for name, value in values.items():
        if name not in KEYS:
            value.refuse(f"unknown key {name!r}; an acknowledgement has {', '.join(KEYS)}")
    for name in ("workload", "note"):
        if name not in values:
            entry.refuse(f"an acknowledgement needs a {name}")
    if ("run" in values) == ("date" in values):
        entry.refuse("an acknowledgement needs either a run or a date, and not both")
    texts = {name: value.text() for name, value in values.items()}
    if "date" in texts:
        try:
            texts["date"] = date.fromisoformat(texts["date"]).isoformat()
        except ValueError:
            values["date"].refuse(f"{texts['date']!r} is no date; write it as 2026-11-03")
    wanted = {name: texts.get(name) for name in ("tweakset", "metric", "run", "date")}
    return Acknowledgement(entry.place, texts["workload"], note=texts["note"], **wanted)


def acknowledge(history: History, entries: list[Acknowledgement]) -> History:
    """Mark the changes that entries speak for; an entry that speaks for none is said to be so."""
    judged = {id(judged): judged for judged in history.judged}
    notes = list(history.notes)
    for entry in entries:
        matched = False
        for key, one in judged.items():
            nearest = _nearest(entry, one)
            if nearest is not None:
                matched = True
                changes = (replace(change, acknowledged=entry.note) if change is nearest else change for change in one.changes)
                judged[key] = replace(one, changes=tuple(changes))
        if not matched:
            when = f"run {entry.run}" if entry.run else str(entry.date)
            notes.append(f"{entry.place}: acknowledges nothing: no change of {entry.workload} was found within {NEAR} runs of {when}.")
    return replace(history, judged=tuple(judged.values()), notes=tuple(notes))


def _nearest(entry: Acknowledgement, judged: JudgedSeries) -> LevelChange | None:
    at = entry.index_in(judged.series) if entry.speaks_of(judged.series) else None
    if at is None:
        return None
    near = [change for change in judged.changes if abs(change.found.index - at) <= NEAR]
    return min(near, key=lambda change: abs(change.found.index - at), default=None)
