"""The tables of an answer as CSV: raw values, an interval in three columns, missing ones empty."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO

from analysis.answer import Answer, Column, Interval, Section, Table, Word
from analysis.plain import SENTENCE, one_line

from . import heads

FORMULA = ("=", "+", "-", "@")  # a spreadsheet would compute these


def render(answer: Answer) -> str:
    """Write the answer's tables; merge those with equal columns.

    If sections have titles, the first column is the section of each row.
    """
    groups: dict[tuple[str, ...], list[tuple[str, Table]]] = {}
    for section in [Section(parts=[answer.rows])] if answer.rows else answer.sections:
        for part in section.parts:
            if isinstance(part, Table):
                names = tuple(
                    column.name or head
                    for column, head in zip(part.columns, heads(part.columns), strict=True)
                )
                groups.setdefault(names, []).append((section.title, part))
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for at, tables in enumerate(groups.values()):
        if at:
            out.write("\n")
        titled = any(title for title, _ in tables)
        titles = [_safe(title) for title, table in tables for _ in table.rows]
        columns, rows = flat(
            tables[0][1].columns, [row for _, table in tables for row in table.rows]
        )
        writer.writerow([*["section"] * titled, *(_safe(name, FORMULA[:1]) for name in columns)])
        for title, row in zip(titles, rows, strict=True):
            writer.writerow([*[title] * titled, *map(_safe, row)])
    return out.getvalue()


def flat(
    columns: Sequence[Column], rows: Sequence[Sequence[object]]
) -> tuple[list[str], list[list[object]]]:
    """Return column names and rows of raw values; an interval takes three columns."""
    named = [column.name or head for column, head in zip(columns, heads(columns), strict=True)]
    wide = [
        column.interval or any(isinstance(row[at], Interval) for row in rows)
        for at, column in enumerate(columns)
    ]
    names = [
        part for name, three in zip(named, wide, strict=True) for part in _names(name, wide=three)
    ]
    return names, [
        [part for one, three in zip(row, wide, strict=True) for part in _values(one, wide=three)]
        for row in rows
    ]


def _names(name: str, *, wide: bool) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"] if wide else [name]


def _values(value: object, *, wide: bool) -> list[object]:
    if isinstance(value, Interval):
        return [value.value, value.low, value.high]
    return [value.text if isinstance(value, Word) else value, *[None] * (2 * wide)]


def _safe(value: object, formula: tuple[str, ...] = FORMULA) -> object:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = one_line(value, SENTENCE)
    return f"'{text}" if text.startswith(formula) else text
