"""An answer on a terminal: fitted to its width, colour with a meaning, no word broken."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, repeat, zip_longest
from typing import TYPE_CHECKING, TextIO
from unicodedata import combining, east_asian_width

from analysis.answer import Answer, Column, Line, Section, Table, Tone, Word
from analysis.plain import SENTENCE, inert, one_line
from analysis.wording import spoken

if TYPE_CHECKING:
    Cell = tuple[str, Tone]

STYLES: Mapping[Tone, str] = {
    "": "",
    "good": "32",
    "bad": "1;31",
    "open": "33",
    "quiet": "2",
    "strong": "1",
    "code": "",
}
WIDTH = 100  # columns, the default
NARROWEST, WIDEST = 60, 160
LONGEST = 40  # lines of an answer without --all
LEAST = 8  # lines of a partly shown section
GAP = 2
NOTHING: Cell = ("", "")
# Kept on one line: number and unit, `p` and value, both ends of an interval, a verdict.
GLUED = re.compile(
    r"(\d) "
    r"(?=(?:%|[mnµ]?s|min|h|W|J|[kMG]i?B(?:/s)?|samples/s|images/s|CPUs?)(?!\w))"
    r"|(\bp|[\[(][-+.\d]+,) "
    r"(?=[-+<.\d]+)|(can't) (?=tell)"
)
BREAKS = (":/", "=_-.,")  # a name may be broken after these, preferably the first


def wants_color(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether to write colour: on a colour terminal without NO_COLOR, or with FORCE_COLOR.

    See no-color.org.
    """
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or (stream.isatty() and environ.get("TERM") != "dumb")


def width_of(stream: TextIO, environ: Mapping[str, str] = os.environ) -> int:
    """Return the columns of a page: COLUMNS, else the terminal's, else 100."""
    asked = environ.get("COLUMNS", "")
    own = shutil.get_terminal_size((WIDTH, 0)).columns if stream.isatty() else WIDTH
    return min(max(int(asked) if asked.isdecimal() else own, NARROWEST), WIDEST)


def for_stdout(answer: Answer, *, explain: bool = False, whole: bool = True) -> str:
    color = wants_color(sys.stdout)
    return render(answer, width_of(sys.stdout), explain=explain, color=color, whole=whole)


def render(
    answer: Answer,
    width: int = WIDTH,
    *,
    explain: bool = False,
    color: bool = False,
    whole: bool = True,
) -> str:
    """Write an answer within `width`; unless `whole`, stop at 40 lines and name the rest."""
    page = _Page(width, color)
    blocks = [[*page.title(answer.title), *page.lines(answer.findings)]]
    sections = [(section, page.section(section)) for section in answer.sections]
    blocks += (
        [lines for _, lines in sections]
        if whole
        else _shortened(sections, LONGEST - len(blocks[0]), width)
    )
    blocks.append(
        page.lines([Line(text, "warning:", "open") for text in dict.fromkeys(answer.warnings)])
    )
    blocks = [block for block in blocks if any(block)] or [[]]
    if answer.next:
        blocks[-1].append(f"next: {clean(shlex.join(answer.next))}")  # for pasting: never wrapped
    if explain:
        blocks.append(page.lines([Line(text, word, "quiet") for word, text in answer.legend]))
    text = "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks)
    return inert(text + "\n")  # names from files must not become CI commands


def _shortened(
    sections: Sequence[tuple[Section, list[str]]], room: int, width: int
) -> list[list[str]]:
    shown: list[list[str]] = []
    last = [lines for section, lines in sections[-1:] if not section.title and len(lines) < LEAST]
    room -= sum(map(len, last))
    sections = sections[: len(sections) - len(last)]
    for at, (_, lines) in enumerate(sections):
        room -= len(lines) + 1
        if room >= 0:
            shown.append(lines)
            continue
        part = lines[: room + len(lines)]
        part = part[
            : next(
                (end for end in range(len(part) - 1, LEAST, -1) if not part[end]),
                len(part) * (len(part) > LEAST),
            )
        ]
        titles = [
            re.split("[:;,]", title)[0]
            for section, _ in sections[at + bool(part) :]
            if (title := clean(section.title))
        ]
        left = sum(len(lines) for _, lines in sections[at:]) - len(part)
        more = f"… {left} more lines with --all{': ' if titles else '.'}{', '.join(titles)}"
        return [*shown, part, wrap(more, width)[:2], *last]
    return [*shown, *last]


def clean(text: object) -> str:
    return one_line(text, SENTENCE)


def cells(text: str) -> int:
    """Return the terminal columns of a text."""
    return (
        len(text)
        if text.isascii()
        else sum(0 if combining(one) else 1 + (east_asian_width(one) in "WF") for one in text)
    )


def wrap(text: str, width: int) -> list[str]:
    """Wrap a text between words, and a word wider than the page between its parts."""
    lines: list[str] = []
    for word in _words(text):
        for part in _parts(word, width):
            if lines and cells(lines[-1]) + 1 + cells(part) <= width:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
    return [line.replace("\xa0", " ") for line in lines] or [""]


def _words(text: str) -> list[str]:
    return GLUED.sub("\\1\\2\\3\xa0", text).split(" ")


def _parts(word: str, width: int) -> Iterator[str]:
    while cells(word) > width:
        at = next(at for at in range(len(word), 0, -1) if cells(word[:at]) <= width or at == 1)
        at = next(
            filter(None, (max(word.rfind(mark, 1, at) + 1 for mark in marks) for marks in BREAKS)),
            at,
        )
        yield word[:at]
        word = word[at:]
    yield word


@dataclass(frozen=True, slots=True)
class _Page:
    width: int
    color: bool

    def paint(self, text: str, tone: Tone) -> str:
        return f"\x1b[{STYLES[tone]}m{text}\x1b[0m" if self.color and tone and text else text

    def title(self, text: str) -> list[str]:
        return self.lines([Line(text, tone="strong")] if text else [])

    def section(self, section: Section) -> list[str]:
        lines, together = self.title(section.title), list[Line]()
        for at, part in enumerate(section.parts):
            if isinstance(part, Line):
                together.append(part)
                continue
            blank = at or (section.title and part.title)
            lines += [*self.lines(together), *[""] * bool(blank), *self.table(part)]
            together = []
        return [*lines, *[""] * (0 < len(together) < len(section.parts)), *self.lines(together)]

    def lines(self, lines: Iterable[Line]) -> list[str]:
        """Write lines; neighbours with marks share a margin and wrap under themselves."""
        written: list[str] = []
        for marked, group in groupby(lines, lambda line: bool(line.mark)):
            neighbours = [(clean(line.mark), clean(line.text), line.tone) for line in group]
            indent = max(cells(mark) for mark, _, _ in neighbours) + marked
            for mark, text, tone in neighbours:
                margins = chain([mark + " " * (indent - cells(mark))], repeat(" " * indent))
                written += [
                    self.paint(margin + line, tone)
                    for margin, line in zip(margins, wrap(text, self.width - indent), strict=False)
                ]
        return written

    def table(self, table: Table) -> list[str]:
        """Lay out a table; if too wide, drop spare columns, wrap names, put last columns below."""
        heads: list[list[Cell]] = [
            [(line, "") for line in column.head.split("\n")] for column in table.columns
        ]
        left, spare = (
            [column.left for column in table.columns],
            [float(column.spare) for column in table.columns],
        )
        rows: list[list[Cell]] = [
            [_cell(value, column) for value, column in zip(row, table.columns, strict=True)]
            for row in table.rows
        ]
        columns = [
            [text for text, _ in [*heads[at], *(row[at] for row in rows)]]
            for at in range(len(left))
        ]
        natural = [max(map(cells, texts)) for texts in columns]
        least = [
            min(max(cells(word) for text in texts for word in _words(text)), self.width // 2)
            if to_left
            else width
            for texts, to_left, width in zip(columns, left, natural, strict=True)
        ]
        shown = list(range(len(left)))
        while _across(natural[at] for at in shown) > self.width and any(spare[at] for at in shown):
            shown.remove(max(shown, key=lambda at: spare[at]))
        lines = self.title(table.title)
        for number, block in enumerate(_blocks(shown, least, left, self.width)):
            widths = _widths(block, natural, least, self.width)
            depth = max(len(heads[at]) for at in block)
            top = [[NOTHING] * (depth - len(head)) + head for head in heads]
            lines += [""] * bool(number)
            for row in [*([head[at] for head in top] for at in range(depth)), *rows]:
                lines += self._row([(*row[at], widths[at], left[at]) for at in block])
        return lines

    def _row(self, row: Sequence[tuple[str, Tone, int, bool]]) -> Iterator[str]:
        wrapped = [wrap(text, width) if to_left else [text] for text, _, width, to_left in row]
        for texts in zip_longest(*wrapped, fillvalue=""):
            blanks = [
                " " * (width - cells(text))
                for text, (_, _, width, _) in zip(texts, row, strict=True)
            ]
            line = [
                self.paint(text, tone) + blank if to_left else blank + self.paint(text, tone)
                for text, blank, (_, tone, _, to_left) in zip(texts, blanks, row, strict=True)
            ]
            yield (" " * GAP).join(line).rstrip()


def _across(widths: Iterable[int]) -> int:
    return sum(width + GAP for width in widths) - GAP


def _blocks(
    shown: Sequence[int], least: Sequence[int], left: Sequence[bool], width: int
) -> list[list[int]]:
    names = next((at for at, column in enumerate(shown) if not left[column]), 1) or 1
    while (
        names > 1
        and _across([*(least[at] for at in shown[:names]), max(least[at] for at in shown)]) > width
    ):
        names -= 1
    blocks = [[*shown[:names]]]
    for column in shown[names:]:
        if len(blocks[-1]) > names and _across(least[at] for at in [*blocks[-1], column]) > width:
            blocks.append([*shown[:names]])
        blocks[-1].append(column)
    return blocks


def _widths(
    block: Sequence[int], natural: Sequence[int], least: Sequence[int], width: int
) -> dict[int, int]:
    widths = {at: natural[at] for at in block}
    for at in sorted(block, key=lambda at: least[at] - natural[at]):
        widths[at] -= min(max(_across(widths.values()) - width, 0), natural[at] - least[at])
    return widths


def _cell(value: object, column: Column) -> Cell:
    if isinstance(value, Word):
        return spoken(clean(value.text)), value.tone
    return NOTHING if value is None else (clean(column.write(value)), "")
