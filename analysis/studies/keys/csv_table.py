"""Another study's design and results as a table: a CSV file with a column a factor, one for the response, and maybe one for the block.

Any separator of comma, semicolon and tab; lines that begin with # are comments. A row without a response is a cell that was lost; where
there is a column `run`, as in design files of ours, F (failed) and N (not yet run) say so too. What is no number where one belongs is
refused, with its line.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Refused, UnknownName, Unreadable
from control.names import first_few

from .observed import letters
from .terms import DesignFactor, EffectRow, LostPoint, Observed

MISSING = frozenset({"", "na", "nan", "n/a", "none", "null", "-"})
MOST_LEVELS = 50
MOST_ROWS = 10_000
LARGEST = 1e100  # its square, and sums of that, are still numbers
MOST_COPIES = 3  # named one by one
RAN = "run"  # Y: yes, or
NOT_RUN = {"F": "failed", "N": "not yet run"}


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns are what. `better` is None where more is neither good nor bad; `log` analyses ratios instead of differences."""

    response: str
    factors: tuple[str, ...]
    block: str | None = None
    better: Literal["lower", "higher"] | None = None
    log: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    fields: dict[str, str]


def read_table(path: Path, columns: Columns) -> Observed:
    """Read a table as what was observed.

    Raises: Unreadable, with the file's line, for what is no such table. UnknownName, for a column it does not have. Refused, for columns
    that no effect can be taken of.
    """
    lines = _lines(path)
    names = list(lines[0].fields)
    columns_used = [columns.response, *columns.factors, *([columns.block] if columns.block is not None else [])]
    for name in columns_used:
        if name not in names:
            raise UnknownName(f"{path}: no column {name!r}; it has {one_line(', '.join(names))}.")
        if columns_used.count(name) > 1:
            raise Refused(f"column {name!r} is named twice: a column is a factor, the block or the response.")
    factors = tuple(_factor(path, lines, name, letter) for name, letter in zip(columns.factors, letters(len(columns.factors)), strict=True))
    rows, lost, points = [], dict[tuple[str, str], list[str]](), dict[str, tuple[str, ...]]()
    for line in lines:
        levels = tuple(line.fields[factor.name] for factor in factors)
        point = ", ".join(f"{factor.name} {level}" for factor, level in zip(factors, levels, strict=True))
        points.setdefault(point, levels)
        block = line.fields[columns.block] if columns.block is not None else ""
        if columns.block is not None and not block:
            raise Unreadable(f"{path}, line {line.number}: no block in column {columns.block!r}.")
        value = _response(path, line, columns)
        if value is None:
            lost.setdefault((point, _loss(line, columns)), []).append(block)
        else:
            rows.append(EffectRow(point, levels, block, value))
    if len(rows) < 2:
        raise Unreadable(f"{path}: {len(rows)} rows with a number in column {columns.response!r}: no effect can be taken of so few.")
    return Observed(
        study=path.stem,
        workload=columns.response,
        profile="",
        design="table",
        metric=columns.response,
        better=columns.better,
        scale="log" if columns.log else "raw",
        margin=None,
        factors=factors,
        points=points,
        rows=tuple(rows),
        lost=tuple(LostPoint(point, reason, tuple(blocks)) for (point, reason), blocks in lost.items()),
        notes=tuple(_copies(lines)),
    )


def _loss(line: _Line, columns: Columns) -> str:
    mark = line.fields.get(RAN, "").upper() if columns.response != RAN else ""
    return f"run = {mark}: {NOT_RUN[mark]}, whatever its response" if mark in NOT_RUN else "no response"


def _copies(lines: Sequence[_Line]) -> Iterator[str]:
    first: dict[tuple[str, ...], int] = {}
    copies = [
        (line.number, first[key]) for line in lines if first.setdefault(key := tuple(line.fields.values()), line.number) != line.number
    ]
    if copies:
        text = first_few([f"line {number} as line {original}" for number, original in copies], MOST_COPIES)
        yield f"equal in every column: {text}. If that is a copy and no run of its own, the error is too small."


def _lines(path: Path) -> list[_Line]:
    try:
        text = read_whole(path, "no such file; name a saved run (.json) or a table (.csv)").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: not a text file; a table is UTF-8 CSV.") from None
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    if len(numbered) > MOST_ROWS + 1:
        raise Refused(f"{path}: {len(numbered) - 1} rows, more than {MOST_ROWS}: a row is a cell (a whole run), never a step of it.")
    if len(numbered) < 2:
        raise Unreadable(f"{path}: {'no rows below its header' if numbered else 'empty'}; a table has a line of names and a row a cell.")
    separator = max(",;\t", key=numbered[0][1].count)
    try:
        split = [
            (number, [field.strip() for field in fields])
            for (number, _), fields in zip(
                numbered, csv.reader((line for _, line in numbered), delimiter=separator, strict=True), strict=False
            )
        ]
    except csv.Error as error:
        raise Unreadable(f"{path}: not CSV ({error}).") from None
    head = split[0][1]
    if len(set(head)) < len(head) or "" in head:
        twice = next((name for name in head if head.count(name) > 1), "")
        how = f"{one_line(twice, 60)!r} is there twice" if twice else "has no name"
        raise Unreadable(f"{path}, line {split[0][0]}: a column {how}; give each its own name.")
    if len(split) < len(numbered):
        raise Unreadable(f"{path}: a quoted field goes on over lines; write each row on one.")
    for number, fields in split[1:]:
        if len(fields) != len(head):
            raise Unreadable(f"{path}, line {number}: {len(fields)} fields, where the header has {len(head)}.")
    return [_Line(number, dict(zip(head, fields, strict=True))) for number, fields in split[1:]]


def _factor(path: Path, lines: Sequence[_Line], name: str, letter: str) -> DesignFactor:
    for line in lines:
        if not line.fields[name]:
            raise Unreadable(f"{path}, line {line.number}: no level in column {name!r}.")
    levels = list(dict.fromkeys(line.fields[name] for line in lines))
    if len(levels) < 2:
        raise Refused(f"{path}: column {name!r} is {one_line(levels[0], 60)!r} in every row; a factor has two levels or more.")
    if len(levels) > MOST_LEVELS:
        raise Refused(
            f"{path}: column {name!r} has {len(levels)} levels, more than {MOST_LEVELS}: a measurement is no factor; name another."
        )
    numbers = [_number(level) for level in levels]
    if all(number is not None for number in numbers):
        if len(set(numbers)) < len(numbers):
            raise Unreadable(f"{path}: column {name!r} writes one number in two ways: {one_line(', '.join(levels))}; write it in one.")
        levels.sort(key=lambda level: _number(level) or 0.0)
    return DesignFactor(name, letter, tuple(levels))


def _response(path: Path, line: _Line, columns: Columns) -> float | None:
    text = line.fields[columns.response]
    if text.lower() in MISSING or (columns.response != RAN and line.fields.get(RAN, "").upper() in NOT_RUN):
        return None
    value = _number(text)
    if value is None:
        raise Unreadable(f"{path}, line {line.number}: {one_line(text, 60)!r} in column {columns.response!r} is no number.")
    if abs(value) > LARGEST:
        raise Refused(f"{path}, line {line.number}: {one_line(text, 60)} in column {columns.response!r} is too large; take another unit.")
    if columns.log and value <= 0:
        raise Refused(
            f"{path}, line {line.number}: {columns.response} = {one_line(text, 60)}: --log takes ratios, which are of numbers above 0."
        )
    return value


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
