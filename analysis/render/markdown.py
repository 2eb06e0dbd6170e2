"""An answer as Markdown, for a comment or a document."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

from analysis.answer import Answer, Line, Table, Word
from analysis.plain import SENTENCE, inert, one_line
from analysis.wording import spoken

from . import heads

SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def render(answer: Answer) -> str:
    """Write it as Markdown: sections are headings of the third level."""
    return inert(re.sub(r"\n{3,}", "\n\n", "\n".join(_lines(answer)).strip()) + "\n")


def _lines(answer: Answer) -> Iterator[str]:
    yield f"**{safe(answer.title)}**"
    yield ""
    yield from _list(answer.findings)
    for section in answer.sections:
        yield ""
        if section.title:
            yield f"### {safe(section.title)}"
            yield ""
        before: Line | Table | None = None
        for part in section.parts:
            if isinstance(part, Line):
                if isinstance(before, Table):
                    yield ""
                yield from _list([part])
            else:
                yield ""
                yield from _table(part)
            before = part
    if answer.warnings:
        yield ""
        yield from (f"- warning: {safe(text)}" for text in dict.fromkeys(answer.warnings))
    if answer.next:
        yield ""
        yield f"Next: `{one_line(shlex.join(answer.next), SENTENCE).replace('`', '')}`"


def _list(lines: object) -> Iterator[str]:
    for line in lines if isinstance(lines, list | tuple) else ():
        mark = "" if line.mark in {"", "•"} else f"{safe(line.mark)} "
        text = safe(line.text)
        yield f"- {mark}**{text}**" if line.tone == "strong" else f"- {mark}{text}"


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"*{safe(table.title)}*"
        yield ""
    yield f"| {' | '.join(map(safe, heads(table.columns)))} |"
    yield "|" + "|".join("---" if column.left else "---:" for column in table.columns) + "|"
    for row in table.rows:
        yield f"| {' | '.join(_cell(value, column.write) for value, column in zip(row, table.columns, strict=True))} |"


def _cell(value: object, write: Callable[[object], str]) -> str:
    if value is None:
        return ""
    return safe(spoken(value.text) if isinstance(value, Word) else write(value))


def safe(text: object) -> str:
    return SPECIAL.sub(r"\\\1", one_line(text, SENTENCE))
