"""Another study's table: a CSV file with a column per factor, the response, and possibly the block.

The separator is a comma, semicolon or tab; lines that begin with # are comments. A row without a
response is a lost cell; in a column `run`, as in our design files, F (failed) and N (not yet run)
mean the same.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Literal

import pandas as pd

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


def read_table(
    path: Path,
    response: str,
    factors: tuple[str, ...],
    block: str | None = None,
    *,
    better: Literal["lower", "higher"] | None = None,
    log: bool = False,
) -> DesignData:
    """Read a table of observations, by the roles of its columns; `log` analyses ratios.

    Raises: Unreadable, with the file's line, for an invalid table. UnknownName, for a missing
    column. Refused, for columns from which no effect can be estimated.
    """
    frame = _read(path)
    _check_roles(path, frame, response, [*factors, *([] if block is None else [block])])
    varied = tuple(
        DesignFactor(name, letter, _levels(path, frame[name]))
        for name, letter in zip(factors, letters(len(factors)), strict=True)
    )
    rows, lost, points = [], dict[tuple[str, str], list[str]](), dict[str, tuple[str, ...]]()
    for line, fields in frame.to_dict("index").items():
        levels = tuple(fields[name] for name in factors)
        named = zip(factors, levels, strict=True)
        point = ", ".join(f"{name} {level}" for name, level in named)
        points.setdefault(point, levels)
        own_block = "" if block is None else fields[block]
        written, mark = fields[response], fields.get(RAN, "").upper() if response != RAN else ""
        reason = "no response" if written.lower() in MISSING else ""
        if mark in NOT_RUN:
            reason = f"run = {mark}: {NOT_RUN[mark]}, whatever its response"
        if reason:
            lost.setdefault((point, reason), []).append(own_block)
            continue
        value = _number(written)
        if value is None or abs(value) > LARGEST or (log and value <= 0):
            needed = " above 0, for the ratios of --log" if log else f" up to {LARGEST:g}"
            raise Unreadable(
                f"{path}, line {line}: {one_line(written, 60)!r} in column {response!r} is not a "
                f"number{needed}."
            )
        rows.append(EffectRow(point, levels, own_block, value))
    if len(rows) < 2:
        raise Unreadable(
            f"{path}: {len(rows)} rows with a number in column {response!r}: too few to estimate "
            "an effect."
        )
    return DesignData(
        path.stem,
        response,
        response,
        varied,
        points,
        tuple(rows),
        tuple(LostPoint(point, reason, tuple(blocks)) for (point, reason), blocks in lost.items()),
        better=better,
        scale="log" if log else "raw",
        notes=tuple(_copies(path, frame)),
    )


def _check_roles(path: Path, frame: pd.DataFrame, response: str, given: list[str]) -> None:
    used = [response, *given]
    for name in used:
        if name not in frame.columns:
            listed = one_line(", ".join(frame.columns))
            raise UnknownName(f"{path}: no column {name!r}; available: {listed}.")
        if used.count(name) > 1:
            raise Refused(
                f"column {name!r} is given twice: a column is a factor, the block or the response."
            )
    for name in given:
        for line in frame.index[frame[name] == ""]:
            raise Unreadable(f"{path}, line {line}: nothing in column {name!r}.")


def _copies(path: Path, frame: pd.DataFrame) -> Iterator[str]:
    """Yield rows that equal earlier ones. Raises: Refused, for consecutive ones: a paste."""
    first: dict[tuple[str, ...], int] = {}
    copies = []
    for place, (_, *fields) in enumerate(frame.itertuples(name=None)):
        original = first.setdefault(tuple(fields), place)
        if original != place:
            copies.append((place, original))
    runs = groupby(enumerate(copies), key=lambda one: (one[1][0] - one[0], one[1][1] - one[0]))
    lines = frame.index
    for _, pairs in runs:
        own = [copy for _, copy in pairs]
        if len(own) >= PASTED:
            (start, original), (end, last) = own[0], own[-1]
            raise Refused(
                f"{path}: lines {lines[start]} to {lines[end]} equal lines {lines[original]} to "
                f"{lines[last]} in every column. Remove the copy or, if these are separate runs, "
                "number the runs in a column."
            )
    if copies:
        each = [f"line {lines[place]} as line {lines[original]}" for place, original in copies]
        yield (
            f"equal in every column: {first_few(each, MOST_COPIES)}. If this is a copy, not a "
            "separate run, the error is too small."
        )


def _read(path: Path) -> pd.DataFrame:
    """Read the fields of all rows as text, by the number of their line."""
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
        raise Unreadable(f"{path}: no rows; a table needs a line of names and a row per cell.")
    separator = max(",;\t", key=next(iter(written.values())).count)
    try:
        records = [*csv.reader(written.values(), delimiter=separator, strict=True)]
    except csv.Error as error:
        raise Unreadable(f"{path}: not CSV ({error}).") from None
    if len(records) < len(written):
        raise Unreadable(f"{path}: a quoted field spans several lines; write each row on one line.")
    head = [name.strip() for name in records[0]]
    if "" in head or len({*head}) < len(head):
        raise Unreadable(
            f"{path}: each column needs its own name; the names are {one_line(str(head))}."
        )
    for number, fields in zip(written, records, strict=True):
        if len(fields) != len(head):
            raise Unreadable(
                f"{path}, line {number}: {len(fields)} fields, but the header has {len(head)}."
            )
    rows = [[field.strip() for field in fields] for fields in records[1:]]
    return pd.DataFrame(rows, index=[*written][1:], columns=head)


def _levels(path: Path, column: pd.Series) -> tuple[str, ...]:
    levels = [str(level) for level in column.unique()]
    if not 2 <= len(levels) <= MOST_LEVELS:
        raise Refused(
            f"{path}: column {column.name!r} has {len(levels)} levels; a factor has 2 to "
            f"{MOST_LEVELS}."
        )
    numbers = {level: _number(level) for level in levels}
    if None in numbers.values():
        return tuple(levels)
    if len({*numbers.values()}) < len(numbers):
        raise Unreadable(
            f"{path}: column {column.name!r} writes one number in two ways: "
            f"{one_line(', '.join(levels))}; use one spelling."
        )
    return tuple(sorted(levels, key=lambda level: numbers[level] or 0.0))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
