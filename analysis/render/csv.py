"""The tables of an answer as CSV: raw values, an interval in three columns, missing ones empty."""

from __future__ import annotations

import csv
from io import StringIO

from analysis.answer import Answer, Interval, Section, Table, Word
from analysis.plain import SENTENCE, one_line

from . import heads

FORMULA = ("=", "+", "-", "@")  # what a spreadsheet would compute


def render(answer: Answer) -> str:
    """Write its tables; those with equal columns are one, with the section of each row, where these have titles, in the first column."""
    groups: dict[tuple[str, ...], list[tuple[str, Table]]] = {}
    for section in [Section(parts=[answer.rows])] if answer.rows else answer.sections:
        for part in section.parts:
            if isinstance(part, Table):
                names = tuple(column.name or head for column, head in zip(part.columns, heads(part.columns), strict=True))
                groups.setdefault(names, []).append((section.title, part))
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for at, (names, tables) in enumerate(groups.items()):
        if at:
            out.write("\n")
        wide = [any(isinstance(row[place], Interval) for _, table in tables for row in table.rows) for place in range(len(names))]
        titled = any(title for title, _ in tables)
        writer.writerow(
            [*["section"] * titled, *(one for at, name in enumerate(names) for one in _names(_safe(name, FORMULA[:1]), wide=wide[at]))]
        )
        for title, table in tables:
            for row in table.rows:
                values = [value for place, one in enumerate(row) for value in _values(one, wide=wide[place])]
                writer.writerow([*[_safe(title)] * titled, *values])
    return out.getvalue()


def _names(name: object, *, wide: bool) -> list[object]:
    return [name, f"{name}_low", f"{name}_high"] if wide else [name]


def _values(value: object, *, wide: bool) -> list[object]:
    if isinstance(value, Interval):
        return [value.value, value.low, value.high]
    text = value.text if isinstance(value, Word) else value
    return [_safe(text), *[""] * (2 * wide)]


def _safe(value: object, formula: tuple[str, ...] = FORMULA) -> object:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = one_line(value, SENTENCE)
    return f"'{text}" if text.startswith(formula) else text
