"""Another study's table: a CSV file with a column per factor, the response, and possibly the block.

The separator is a comma, semicolon or tab; lines that begin with # are comments. A row without a
response is a lost cell; in a column `run`, as in our design files, F (failed) and N (not yet run)
mean the same. A non-number in place of a number is refused, with its line.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal

from analysis.files import read_text
from analysis.plain import one_line
from analysis.terms import Refused, UnknownName, Unreadable
from control.names import first_few

from .observed import letters
from .terms import DesignData, DesignFactor, EffectRow, LostPoint

MISSING = frozenset({"", "na", "nan", "n/a", "none", "null", "-"})
MOST_LEVELS = 50
MOST_ROWS = 10_000
LARGEST = 1e100  # its square, and sums of squares, are finite
MOST_COPIES = 3  # listed individually
PASTED = 3  # consecutive rows equal to consecutive earlier ones
RAN = "run"  # Y: yes, or:
NOT_RUN = {"F": "failed", "N": "not yet run"}
Line = dict[str, str]  # the fields of a row by column
Lines = Mapping[int, Line]  # by their numbers in the file


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """The roles of columns. `better` may be None; `log` analyses ratios, not differences."""

    response: str
    factors: tuple[str, ...]
    block: str | None = None
    better: Literal["lower", "higher"] | None = None
    log: bool = False


def read_table(path: Path, columns: ColumnRoles) -> DesignData:
    """Read a table of observations.

    Raises: Unreadable, with the file's line, for an invalid table. UnknownName, for a missing
    column. Refused, for columns from which no effect can be estimated.
    """
    lines = _lines(path)
    names = list(next(iter(lines.values())))
    used = [
        columns.response,
        *columns.factors,
        *([columns.block] if columns.block is not None else []),
    ]
    for name in used:
        if name not in names:
            raise UnknownName(
                f"{path}: no column {name!r}; available: {one_line(', '.join(names))}."
            )
        if used.count(name) > 1:
            raise Refused(
                f"column {name!r} is given twice: a column is a factor, the block or the response."
            )
    factors = tuple(
        DesignFactor(name, letter, _levels(path, lines, name))
        for name, letter in zip(columns.factors, letters(len(columns.factors)), strict=True)
    )
    rows, lost, points = [], dict[tuple[str, str], list[str]](), dict[str, tuple[str, ...]]()
    for number, line in lines.items():
        levels = tuple(line[name] for name in columns.factors)
        point = ", ".join(
            f"{name} {level}" for name, level in zip(columns.factors, levels, strict=True)
        )
        points.setdefault(point, levels)
        block = line[columns.block] if columns.block is not None else ""
        if columns.block is not None and not block:
            raise Unreadable(f"{path}, line {number}: missing block in column {columns.block!r}.")
        mark = line.get(RAN, "").upper() if columns.response != RAN else ""
        if mark in NOT_RUN:
            lost.setdefault(
                (point, f"run = {mark}: {NOT_RUN[mark]}, whatever its response"), []
            ).append(block)
        elif line[columns.response].lower() in MISSING:
            lost.setdefault((point, "no response"), []).append(block)
        else:
            value = _response(f"{path}, line {number}", line[columns.response], columns)
            rows.append(EffectRow(point, levels, block, value))
    if len(rows) < 2:
        raise Unreadable(
            f"{path}: {len(rows)} rows with a number in column {columns.response!r}: too few to "
            "estimate an effect."
        )
    return DesignData(
        path.stem,
        columns.response,
        columns.response,
        factors,
        points,
        tuple(rows),
        tuple(LostPoint(point, reason, tuple(blocks)) for (point, reason), blocks in lost.items()),
        better=columns.better,
        scale="log" if columns.log else "raw",
        notes=tuple(_copies(path, lines)),
    )


def _copies(path: Path, lines: Lines) -> Iterator[str]:
    """Yield rows that equal earlier ones. Raises: Refused, for consecutive ones: a paste."""
    first: dict[tuple[str, ...], int] = {}
    copies = []
    for number, line in lines.items():
        original = first.setdefault(tuple(line.values()), number)
        if original != number:
            copies.append((number, original))
    places = ((number - at, original - at) for at, (number, original) in enumerate(copies))
    for _, pairs in groupby(zip(copies, places, strict=True), key=itemgetter(1)):
        (number, original), *others = [copy for copy, _ in pairs]
        if len(others) + 1 >= PASTED:
            last, last_original = others[-1]
            raise Refused(
                f"{path}: lines {number} to {last} equal lines {original} to {last_original} in "
                "every"
                " column. Remove the copy or, if these are separate runs, number the"
                " runs in a column."
            )
    if copies:
        shown = first_few(
            [f"line {number} as line {original}" for number, original in copies], MOST_COPIES
        )
        yield (
            f"equal in every column: {shown}. If this is a copy, not a separate run, the error is "
            "too small."
        )


def _lines(path: Path) -> Lines:
    text = read_text(
        path, "a table is UTF-8 CSV", "no such file; name a saved run (.json) or a table (.csv)"
    )
    written = {
        number: line
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    }
    if len(written) > MOST_ROWS + 1:
        raise Refused(
            f"{path}: {len(written) - 1} rows, more than {MOST_ROWS}: a row must be a cell (a "
            "whole run), not a step."
        )
    if len(written) < 2:
        raise Unreadable(
            f"{path}: {'no rows below its header' if written else 'empty'}; a table needs a line "
            "of names and a row per cell."
        )
    separator = max(",;\t", key=next(iter(written.values())).count)
    try:
        records = [
            [field.strip() for field in fields]
            for fields in csv.reader(written.values(), delimiter=separator, strict=True)
        ]
    except csv.Error as error:
        raise Unreadable(f"{path}: not CSV ({error}).") from None
    if len(records) < len(written):
        raise Unreadable(f"{path}: a quoted field spans several lines; write each row on one line.")
    (first, head), *rows = zip(written, records, strict=True)
    for name in head:
        if not name or head.count(name) > 1:
            how = f"{one_line(name, 60)!r} is repeated" if name else "has no name"
            raise Unreadable(
                f"{path}, line {first}: a column {how}; give each column its own name."
            )
    for number, fields in rows:
        if len(fields) != len(head):
            raise Unreadable(
                f"{path}, line {number}: {len(fields)} fields, but the header has {len(head)}."
            )
    return {number: dict(zip(head, fields, strict=True)) for number, fields in rows}


def _levels(path: Path, lines: Lines, name: str) -> tuple[str, ...]:
    for number, line in lines.items():
        if not line[name]:
            raise Unreadable(f"{path}, line {number}: missing level in column {name!r}.")
    levels = list(dict.fromkeys(line[name] for line in lines.values()))
    if len(levels) < 2:
        raise Refused(
            f"{path}: column {name!r} is {one_line(levels[0], 60)!r} in every row; a factor needs "
            "two or more levels."
        )
    if len(levels) > MOST_LEVELS:
        raise Refused(
            f"{path}: column {name!r} has {len(levels)} levels, more than {MOST_LEVELS}, so it is "
            "not a factor; name another column."
        )
    numbers = [value for value in map(_number, levels) if value is not None]
    if len(numbers) < len(levels):
        return tuple(levels)
    if len(set(numbers)) < len(numbers):
        raise Unreadable(
            f"{path}: column {name!r} writes one number in two ways: "
            f"{one_line(', '.join(levels))}; use one spelling."
        )
    return tuple(level for _, level in sorted(zip(numbers, levels, strict=True)))


def _response(where: str, text: str, columns: ColumnRoles) -> float:
    value, written = _number(text), one_line(text, 60)
    if value is None:
        raise Unreadable(f"{where}: {written!r} in column {columns.response!r} is not a number.")
    if abs(value) > LARGEST:
        raise Refused(
            f"{where}: {written} in column {columns.response!r} is too large; use another unit."
        )
    if columns.log and value <= 0:
        raise Refused(
            f"{where}: {columns.response} = {written}: --log needs numbers above 0, for ratios."
        )
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
