"""Files of jobs: CSV as foreign data, and groups of streams from saved runs and lists of jobs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from analysis.files import read_text
from analysis.labels import Machines
from analysis.load import load_each
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

from .records import MOST_SLOTS, JobRow, JobRun, Stream, distinct, job_of, plan, streams

if TYPE_CHECKING:
    Lines = list[tuple[str, dict[str, str]]]  # where it stands, and its cells by column

HEAD = "job,submit_s,start_s,end_s"
MISSING = frozenset({"", "nan", "none", "null", "n/a", "na"})


class CsvRow(JobRow, total=False):
    slots: Annotated[int, Meta(ge=1, le=MOST_SLOTS)]


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
        run, told = row.get("run", ""), _told(row, at)
        runs.setdefault(run, []).append(job_of(told))
        if slots.setdefault(run, told.get("slots")) != told.get("slots"):
            raise Unreadable(f"{at}: slots {told.get('slots')}; a stream needs a single number.")
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


def _told(row: Mapping[str, str], at: str) -> CsvRow:
    known = {name: text for name, text in row.items() if text.lower() not in MISSING}
    known.pop("result", None)
    try:
        return msgspec.convert({"outcome": "done", **known}, CsvRow, strict=False)
    except msgspec.ValidationError as error:
        raise Unreadable(f"{at}: {one_line(error, 200)}.") from None
