"""Streams of jobs out of CSV: job,submit_s and, where they were measured, admit_s, start_s, end_s; a run a value of the column `run`.

Other columns that are read: class, priority, replicas, attempts, outcome, reason, slots. Whatever else there is stands for other programs.
"""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TYPE_CHECKING

from analysis.opening import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

from .copies import plan
from .records import LONGEST, MOST_SLOTS, TIMES
from .terms import OUTCOMES, Job, Stream

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

NEEDED = ("job", "submit_s")
HEAD = "job,submit_s,start_s,end_s"
MISSING = frozenset({"", "nan", "none", "null", "n/a", "na"})
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def read(path: Path) -> list[Stream]:
    """Read the streams of a file, in the order they begin in it.

    Raises: Unreadable, for what is no such file; the sentence says which line.
    """
    try:
        text = read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: is no text in UTF-8; a list of jobs is CSV.") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> list[Stream]:
    """Read streams out of CSV; `where` begins what is said of it. Raises: Unreadable."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    runs: dict[str, list[Job]] = {}
    slots: dict[str, int | None] = {}
    try:
        names = [name.strip() for name in next(lines, [])]
        _must_have_columns(names, where)
        for cells in lines:
            if not any(cell.strip() for cell in cells):
                continue
            at = f"{where}: line {lines.line_num}"
            if len(cells) != len(names):
                raise Unreadable(f"{at}: has {len(cells)} cells for {len(names)} columns.")
            row = {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
            run = row.get("run", "")
            runs.setdefault(run, []).append(_job(row, at))
            its = _whole(row, "slots", at)
            if slots.setdefault(run, its) != its or not 1 <= (1 if its is None else its) <= MOST_SLOTS:
                raise Unreadable(f"{at}: slots {its}; a stream has one number of them, 1 to {MOST_SLOTS}.")
    except csv.Error as error:
        raise Unreadable(f"{where}: line {lines.line_num}: {error}; a list of jobs is CSV.") from None
    if not runs:
        raise Unreadable(f"{where}: has no job.")
    measured = bool({"admit_s", "start_s", "end_s"} & set(names))
    return [
        Stream(f"{where} {run}".strip(), where, tuple(jobs), slots[run], measured=measured, drawn=_drawn(jobs))
        for run, jobs in runs.items()
    ]


def _drawn(jobs: Sequence[Job]) -> tuple[Hashable, ...]:
    """What makes two streams the same: when their jobs came, which no clock reads twice alike."""
    drawn = plan("", [job.submit_s for job in jobs], ())
    return (("plan", drawn),) if drawn else ()


def _must_have_columns(names: list[str], where: str) -> None:
    missing = [name for name in NEEDED if name not in names]
    if missing:
        found = one_line(", ".join(names)) or "nothing"
        raise Unreadable(f"{where}: no column {', '.join(missing)}; it has {found}. A list of jobs begins with {HEAD}.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Unreadable(f"{where}: has the column {one_line(twice[0])!r} {names.count(twice[0])} times; leave one.")


def _job(row: Mapping[str, str], at: str) -> Job:
    number = _whole(row, "job", at)
    if number is None or number < 0:
        raise Unreadable(f"{at}: job {one_line(row['job'], 60)!r}; it is a number that counts jobs.")
    times = {name: _time(row, name, at) for name in TIMES}
    outcome = row.get("outcome", "")
    if outcome and outcome not in OUTCOMES:
        raise Unreadable(f"{at}: outcome {one_line(outcome)!r} is none of {', '.join(OUTCOMES)}.")
    replicas = _whole(row, "replicas", at)
    return Job(
        number,
        **times,
        outcome=outcome,
        reason=row.get("reason", ""),
        kind=row.get("class", ""),
        priority=_whole(row, "priority", at),
        replicas=1 if replicas is None else max(1, replicas),
        attempts=max(1, _whole(row, "attempts", at) or 1),
    )


def _time(row: Mapping[str, str], name: str, at: str) -> float | None:
    text = row.get(name, "")
    if text.lower() in MISSING:
        return None
    if not NUMBER.fullmatch(text) or not math.isfinite(float(text)) or abs(float(text)) > LONGEST:
        raise Unreadable(f"{at}: {name} is {one_line(text, 60)!r}, no time in seconds; leave it empty where it is missing.")
    return float(text)


def _whole(row: Mapping[str, str], name: str, at: str) -> int | None:
    text = row.get(name, "")
    if text.lower() in MISSING:
        return None
    if not WHOLE.fullmatch(text):
        raise Unreadable(f"{at}: {name} is {one_line(text, 60)!r}, no whole number.")
    return int(text)
