"""DeepTweak's `benchmark.csv`, row by row: which process wrote which rows, and how long each step took.

The logger appends, and begins with a header each time it starts, so one file may hold several runs of one configuration.
"""

from __future__ import annotations

import csv
import io
import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from analysis.files import read_whole
from analysis.terms import Steps, Unreadable

from .fields import LARGEST_COUNT, LONGEST_S, SHORTEST_S

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

Values = tuple["float | None", ...]

# Step times are rounded to a millisecond and the clock beside them to ten: over a run of minutes they agree far better than this.
CLOCK_TOLERANCE, CLOCK_SLACK_S = 0.02, 0.1
# No counter of bytes gets there: a digit too many, or two numbers run together.
LARGEST = 1e24


class Process(NamedTuple):
    """What one process wrote: its steps, a value a step for each column as it is written, and how many steps lack a row."""

    steps: Steps
    columns: Mapping[str, Values]
    gaps: int


class Rows(NamedTuple):
    """A file's rows as texts. `lines[n]` is where `rows[n]` stands in the file; `starts` are the rows that follow a header."""

    path: Path
    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    lines: Sequence[int]
    starts: frozenset[int]

    def refuse(self, at: int, what: str) -> NoReturn:
        _damaged(self.path, self.lines[at], what)

    def column(self, name: str) -> Values:
        place = self.header.index(name)
        values: list[float | None] = []
        for at, row in enumerate(self.rows):
            try:
                value = float(row[place]) if row[place] else None
            except ValueError:
                self.refuse(at, f"{name} is {row[place][:30]!r}, which is no number")
            if value is not None and not math.isfinite(value):
                value = None
            if value is not None and abs(value) > LARGEST:
                self.refuse(at, f"{name} is {value:g}, which nobody can have measured")
            values.append(value)
        return tuple(values)


def _damaged(path: Path, line: int, what: str) -> NoReturn:
    raise Unreadable(f"{path}:{line}: {what}; the file is damaged or was edited: take it from its source again.")


def read(path: Path) -> Rows:
    """Read a file's rows.

    Raises: Unreadable, with file and line, for what is no such table.
    """
    try:
        text = read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: not a text file; a benchmark.csv is UTF-8.") from None
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    try:
        numbered = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except csv.Error as error:
        _damaged(path, reader.line_num, f"no CSV ({error})")
    header = numbered[0][1] if numbered else []
    if "step_time" not in header:
        raise Unreadable(f"{path}: no column step_time in its first line: not a benchmark.csv of DeepTweak.")
    if len(set(header)) < len(header):
        _damaged(path, numbered[0][0], "has a column twice")
    rows: list[list[str]] = []
    lines: list[int] = []
    starts: set[int] = set()
    for line, row in numbered:
        if row == header:
            starts.add(len(rows))
        elif len(row) != len(header):
            _damaged(path, line, f"has {len(row)} fields where {len(header)} belong")
        else:
            rows.append(row)
            lines.append(line)
    if not rows:
        raise Unreadable(f"{path}: has a header and no step: the run wrote nothing, measure again.")
    return Rows(path, tuple(header), rows, lines, frozenset(starts))


def processes(rows: Rows, wanted: Collection[str]) -> list[Process]:
    """Split rows by the processes that wrote them; columns that are not wanted are not looked at.

    Raises: Unreadable, with file and line, for rows that cannot be the steps of one process after the other.
    """
    numbers, wall_s, samples = _numbers(rows), _times(rows), _samples(rows)
    columns = {name: rows.column(name) for name in rows.header if name in wanted}
    clock_s = rows.column("time_elapsed") if "time_elapsed" in rows.header else ()
    starts = _starts(rows, numbers)
    result: list[Process] = []
    for first, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        part = slice(first, end)
        process = Process(
            steps=Steps(wall_s[part], samples[part], None, None, warmup=0),
            columns={name: values[part] for name, values in columns.items()},
            gaps=numbers[end - 1] - numbers[first] + 1 - (end - first),
        )
        if not process.gaps:
            _must_agree(rows, first, process.steps, clock_s[part])
        if any(process.steps.wall_s == other.steps.wall_s for other in result):
            rows.refuse(first, "and after it stand the step times of an earlier run once more, which is a copy and no second measurement")
        result.append(process)
    return result


def _numbers(rows: Rows) -> tuple[int, ...]:
    if "step" not in rows.header:
        return tuple(range(1, len(rows.rows) + 1))
    return _whole(rows, "step")


def _samples(rows: Rows) -> tuple[int, ...]:
    """Answer the samples of each step: the batch of all GPUs together where they share the data, so taken as it stands; else 1."""
    if "batch_size" not in rows.header or all(value is None for value in rows.column("batch_size")):
        return (1,) * len(rows.rows)
    return _whole(rows, "batch_size")


def _whole(rows: Rows, name: str) -> tuple[int, ...]:
    result = []
    for at, value in enumerate(rows.column(name)):
        if value is None or not value.is_integer() or not 1 <= value <= LARGEST_COUNT:
            rows.refuse(at, f"{name} is no whole number from 1")
        result.append(int(value))
    return tuple(result)


def _times(rows: Rows) -> tuple[float, ...]:
    result = []
    for at, seconds in enumerate(rows.column("step_time")):
        if seconds is None or not SHORTEST_S <= seconds <= LONGEST_S:
            rows.refuse(at, f"step_time is {'missing' if seconds is None else seconds}, where seconds above 0 belong")
        result.append(seconds)
    return tuple(result)


def _starts(rows: Rows, numbers: Sequence[int]) -> list[int]:
    starts = {0, *(start for start in rows.starts if start < len(numbers))}
    for at, (before, now) in enumerate(pairwise(numbers), 1):
        if now <= before and at not in starts:
            if now != 1:
                rows.refuse(at, f"is step {now} after step {before}: two processes wrote into one file, or a row was copied")
            starts.add(at)
    return sorted(starts)


def _must_agree(rows: Rows, first: int, steps: Steps, clock_s: Values) -> None:
    """Refuse steps that do not add up to the clock beside them: other units, or rows from somewhere else."""
    if len(clock_s) < 2 or clock_s[0] is None or clock_s[-1] is None:
        return
    passed_s, added_s = clock_s[-1] - clock_s[0], math.fsum(steps.wall_s[1:])
    if abs(passed_s - added_s) > CLOCK_TOLERANCE * max(passed_s, added_s) + CLOCK_SLACK_S:
        rows.refuse(first, f"and after it step_time adds up to {added_s:.6g} s where time_elapsed has {passed_s:.6g} s: other units?")
