"""An answer as GitHub-flavoured Markdown, for a comment or a document.

Names and reasons come from untrusted files: they are never interpreted as Markdown or HTML, never
notify anyone, and never become links.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from analysis.answer import Answer, Line, Section, Table, Word
from analysis.plain import SENTENCE, inert, one_line
from analysis.wording import spoken

from . import heads

# Characters special in Markdown or HTML; then what GitHub turns into mentions, references, links or
# formulas.
MARKS = re.compile(r"[&<>\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|[@#]|://|www\.", re.IGNORECASE)
LEADING = re.compile(r"^[-+]|^\d+(?=[.)]\s)")  # would begin another list inside a list
BROKEN_UP = ("@", "#", "://", "www.")
NO_CODE = str.maketrans("`|", "  ")  # would end a code span or its table cell
BREAK = "&#8203;"  # a zero-width space
MOST_ROWS = 100_000
T = TypeVar("T")


def render(answer: Answer, longest_bytes: int | None = None) -> str:
    """Write an answer as Markdown; beyond `longest_bytes`, shorten each section with a count."""
    page = _page(answer)
    if longest_bytes is None or len(page.encode()) <= longest_bytes:
        return page
    fits, too_many = 0, MOST_ROWS
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if len(_page(_shortened(answer, middle)).encode()) <= longest_bytes:
            fits = middle
        else:
            too_many = middle
    return _page(_shortened(answer, fits))


def _shortened(answer: Answer, most: int) -> Answer:
    left_out: list[str] = []

    def first(parts: Sequence[T], noun: str) -> Sequence[T]:
        left_out.extend([f"{len(parts) - most} {noun}"] * (len(parts) > most))
        return parts[:most]

    sections = []
    for section in answer.sections:
        tables = [
            replace(part, rows=first(part.rows, "rows"))
            for part in section.parts
            if isinstance(part, Table)
        ]
        lines = first([part for part in section.parts if isinstance(part, Line)], "lines")
        sections.append(replace(section, parts=[*tables, *lines]))
    warnings = first(list(dict.fromkeys(answer.warnings)), "warnings")
    note = Line(
        f"Omitted because the page would be too long: {', '.join(left_out)}. The log has them."
    )
    return replace(answer, sections=[*sections, Section("", [note])], warnings=warnings)


def _page(answer: Answer) -> str:
    return inert(re.sub(r"\n{3,}", "\n\n", "\n".join(_lines(answer)).strip()) + "\n")


def _lines(answer: Answer) -> Iterator[str]:
    if answer.title:
        yield f"## {safe(answer.title)}\n"
    yield from _list(answer.findings)
    for section in answer.sections:
        yield from _section(section)
    yield ""
    yield from _list(Line(text, "warning:") for text in dict.fromkeys(answer.warnings))
    if answer.next:
        yield f"\nNext: `{one_line(shlex.join(answer.next), SENTENCE).replace('`', '')}`"


def _section(section: Section) -> Iterator[str]:
    title = safe(section.title)
    yield (
        f"\n<details><summary>{title}</summary>\n"
        if section.folded
        else f"\n### {title}\n"
        if title
        else ""
    )
    for part in section.parts:
        if isinstance(part, Table):
            yield from _table(part)
        else:
            yield from _list([part])
    if section.folded:
        yield "\n</details>"


def _list(lines: Iterable[Line]) -> Iterator[str]:
    for line in lines:
        mark = "" if line.mark in {"", "•"} else f"{safe(line.mark)} "
        text = _linked(LEADING.sub(_escaped, safe(line.text)), line.href)
        yield f"- {mark}**{text}**" if line.tone == "strong" else f"- {mark}{text}"


def _table(table: Table) -> Iterator[str]:
    yield f"\n*{safe(table.title)}*\n" if table.title else ""
    yield f"| {' | '.join(map(safe, heads(table.columns)))} |"
    yield "|" + "|".join("---" if column.left else "---:" for column in table.columns) + "|"
    for row in table.rows:
        values = zip(row, table.columns, strict=True)
        yield f"| {' | '.join(_cell(value, column.write) for value, column in values)} |"
    yield ""


def _cell(value: object, write: Callable[[object], str]) -> str:
    if not isinstance(value, Word):
        return "" if value is None else safe(write(value))
    if value.tone == "code":
        return f"`{one_line(value.text, SENTENCE).translate(NO_CODE)}`"
    return _linked(safe(spoken(value.text)), value.href)


def _linked(text: str, href: str) -> str:
    return f"[{text}]({href})" if href else text


def safe(text: object) -> str:
    """Escape foreign text so that Markdown shows it literally."""
    return MARKS.sub(_escaped, one_line(text, SENTENCE))


def _escaped(match: re.Match[str]) -> str:
    first, rest = f"&#{ord(match[0][0])};", match[0][1:]
    return f"{first}{BREAK}{rest}" if match[0].lower() in BROKEN_UP else first
