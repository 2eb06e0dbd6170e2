"""Files of jobs: CSV as foreign data, and groups of streams from saved runs and lists of jobs.

A list of jobs has the columns job,submit_s and, if measured, admit_s, start_s, end_s; a run is a
value of the column `run`. Also read are class, priority, replicas, attempts, outcome and slots;
other columns are ignored.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.files import read_text
from analysis.load import load_each
from analysis.machine import Machines
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

from .records import LONGEST, MOST_SLOTS, OUTCOMES, TIMES, JobRun, Stream, distinct, plan, streams

if TYPE_CHECKING:
    Lines = list[tuple[str, dict[str, str]]]  # where it stands, and its cells by column

HEAD = "job,submit_s,start_s,end_s"
MISSING = frozenset({"", "nan", "none", "null", "n/a", "na"})
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def text_of(path: Path) -> str:
    return read_text(path, "a table is UTF-8 CSV")


def parse(text: str, where: object) -> tuple[list[str], Lines]:
    """Return columns, and non-blank lines; messages begin with `where`. Raises: Unreadable."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines: Lines = []
    try:
        names = [name.strip() for name in next(reader, [])]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise Unreadable(
                f"{where}: has the column {one_line(twice[0])!r} {names.count(twice[0])} times; "
                "keep one."
            )
        for cells in reader:
            at = f"{where}: line {reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(names):
                raise Unreadable(f"{at}: has {len(cells)} cells for {len(names)} columns.")
            lines.append(
                (at, {name: cell.strip() for name, cell in zip(names, cells, strict=True)})
            )
    except csv.Error as error:
        raise Unreadable(f"{where}: line {reader.line_num}: not CSV ({error}).") from None
    return names, lines


def groups(names: Sequence[str], refused: list[str]) -> list[list[Stream]]:
    """Read every stream, grouped by conditions; add a line to `refused` for each unusable one.

    Runs of different machines are never in one group, and copies of a stream are omitted. Raises:
    Refused, if nothing is usable.
    """
    on_machine: list[tuple[Stream, int | None]] = []  # with the number of its machine
    machines = Machines()
    for name in names:
        if name.endswith(".csv"):
            try:
                on_machine += [(stream, None) for stream in parse_jobs(text_of(Path(name)), name)]
            except Unreadable as error:
                refused.append(" ".join(str(error).splitlines()))
            continue
        for run in load_each([name], refused):
            machine = machines.number_of(run.machine)
            try:
                on_machine += [(stream, machine) for stream in streams(run, refused)]
            except Refused as error:
                refused.append(str(error))
    several = len(machines.known) > 1
    every = [
        replace(stream, group=f"{stream.group} on {machines.known[machine]}")
        if several and machine is not None
        else stream
        for stream, machine in on_machine
    ]
    return grouped_alike(every, refused)


def grouped_alike(streams: Sequence[Stream], refused: list[str]) -> list[list[Stream]]:
    """Group streams by condition, without copies. Raises: Refused, if there are none."""
    by_group: dict[str, list[Stream]] = {}
    for stream in distinct(streams, refused):
        by_group.setdefault(stream.group, []).append(stream)
    if not by_group:
        raise Refused(refused[0] if refused else "no stream of jobs.")
    return list(by_group.values())


def rows(
    text: str, where: str | Path, needed: Sequence[str], more: str = ""
) -> tuple[list[str], Lines]:
    """Parse a table with required columns; `more` ends the message on missing ones.

    Raises: Unreadable.
    """
    names, lines = parse(text, where)
    if missing := ", ".join(name for name in needed if name not in names):
        raise Unreadable(
            f"{where}: no column {missing}; found: {one_line(', '.join(names)) or 'nothing'}.{more}"
        )
    return names, lines


def parse_jobs(text: str, where: str) -> list[Stream]:
    names, lines = rows(text, where, ("job", "submit_s"), f" A list of jobs begins with {HEAD}.")
    runs: dict[str, list[JobRun]] = {}
    slots: dict[str, int | None] = {}
    for at, row in lines:
        run = row.get("run", "")
        runs.setdefault(run, []).append(_job(row, at))
        held = _number(row, "slots", at, WHOLE, "not a whole number")
        of_run = None if held is None else int(held)
        if (
            slots.setdefault(run, of_run) != of_run
            or not 1 <= (1 if of_run is None else of_run) <= MOST_SLOTS
        ):
            raise Unreadable(
                f"{at}: slots {of_run}; a stream needs a single number, 1 to {MOST_SLOTS}."
            )
    if not runs:
        raise Unreadable(f"{where}: has no jobs.")
    measured = not {"admit_s", "start_s", "end_s"}.isdisjoint(names)
    result = []
    for run, jobs in runs.items():
        drawn = plan("", [job.submit_s for job in jobs], ())  # on a clock, two streams never agree
        name = f"{where} {run}".strip()
        result.append(
            Stream(
                name,
                where,
                tuple(jobs),
                slots[run],
                measured=measured,
                drawn=(("plan", drawn),) if drawn else (),
            )
        )
    return result


def _job(row: Mapping[str, str], at: str) -> JobRun:
    number, *wholes = (
        _number(row, name, at, WHOLE, "not a whole number")
        for name in ("job", "priority", "replicas", "attempts")
    )
    if number is None or number < 0:
        raise Unreadable(f"{at}: job {one_line(row['job'], 60)!r}; it must be a whole number.")
    outcome = row.get("outcome", "")
    if outcome and outcome not in OUTCOMES:
        raise Unreadable(
            f"{at}: outcome {one_line(outcome)!r} must be one of {', '.join(OUTCOMES)}."
        )
    times_s = (
        _number(row, name, at, NUMBER, "not a time in seconds; leave it empty if it is missing")
        for name in TIMES
    )
    priority, replicas, attempts = (None if value is None else int(value) for value in wholes)
    job = JobRun(int(number), *times_s)  # type: ignore[arg-type] # four times
    job = replace(job, outcome=outcome, class_=row.get("class", ""))
    return replace(
        job, priority=priority, replicas=max(1, replicas or 1), attempts=max(1, attempts or 1)
    )


def _number(
    row: Mapping[str, str], name: str, at: str, form: re.Pattern[str], wrong: str
) -> float | None:
    text = row.get(name, "")
    if text.lower() in MISSING:
        return None
    if not form.fullmatch(text) or not abs(float(text)) <= (LONGEST if form is NUMBER else 1e18):
        raise Unreadable(f"{at}: {name} is {one_line(text, 60)!r}, {wrong}.")
    return float(text)
