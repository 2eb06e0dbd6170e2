"""An answer on a terminal: as wide as it is, colour where it means something."""

from __future__ import annotations

import os
import re
import shutil
import sys
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from analysis.answer import Line, Table, Word
from analysis.plain import SENTENCE, inert, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

    from rich.console import RenderableType

    from analysis.answer import Answer, Section, Tone

STYLES: Mapping[Tone, str] = {"": "", "good": "green", "bad": "bold red", "open": "yellow", "quiet": "dim", "strong": "bold"}
WIDTH = 100  # columns, where nothing else is known
NARROWEST, WIDEST = 60, 160
NAME = 40  # columns a name may take before it folds


def on_page(parts: Iterable[RenderableType], width: int = WIDTH, *, color: bool = False) -> str:
    """Write the parts one below the other, no line longer than `width` unless it may not be wrapped, without blanks at line ends."""
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        height=WIDTH,  # with both given, rich asks neither COLUMNS nor TERM
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(part, crop=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip() + "\n"


def in_lines(name: str, width: int = WIDTH) -> str:
    lines = [""]
    for part in re.split(r"(?=:)", name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("  ")
        lines[-1] += part
    return "\n".join(lines)


def wants_color(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to write colour: to a terminal that can, unless NO_COLOR is set (no-color.org); anywhere, where FORCE_COLOR is."""
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or (stream.isatty() and environ.get("TERM") != "dumb")


def width_of(stream: TextIO, environ: Mapping[str, str] = os.environ) -> int:
    """Columns of a page: COLUMNS, else the terminal's, else 100."""
    asked = environ.get("COLUMNS", "")
    own = shutil.get_terminal_size((WIDTH, 0)).columns if stream.isatty() else WIDTH
    return min(max(int(asked) if asked.isdecimal() else own, NARROWEST), WIDEST)


def for_stdout(answer: Answer, *, explain: bool = False) -> str:
    """Write it as standard output wants it."""
    return render(answer, width_of(sys.stdout), explain=explain, color=wants_color(sys.stdout))


def render(answer: Answer, width: int = WIDTH, *, explain: bool = False, color: bool = False) -> str:
    """Write it as text, no line longer than `width`."""
    parts = [on_page(_parts(answer, width), width, color=color)]
    if answer.next:
        parts.append(f"next: {_clean(answer.next)}\n")  # to be pasted: it is not broken
    if explain and answer.legend:
        parts.append(on_page(_lines([Line(text, word, "quiet") for word, text in answer.legend]), width, color=color))
    return inert("\n".join(parts))  # a name out of a file must be no command to a CI runner that reads the log


def _parts(answer: Answer, width: int) -> Iterator[RenderableType]:
    if answer.title:
        yield _title(answer.title, width)
    yield from _lines(answer.findings)
    for at, section in enumerate(answer.sections):
        if at or answer.title or answer.findings:
            yield ""
        yield from _section(section, width)
    if answer.warnings:
        yield ""
        yield from _lines([Line(text, "warning:", "open") for text in dict.fromkeys(answer.warnings)])


def _section(section: Section, width: int) -> Iterator[RenderableType]:
    if section.title:
        yield _title(section.title, width)
    together: list[Line] = []
    for at, part in enumerate(section.parts):
        if isinstance(part, Line):
            together.append(part)
            continue
        yield from _lines(together)
        if at or (section.title and part.title):
            yield ""
        together = []
        yield from table(part, width)
    if together and len(together) < len(section.parts):
        yield ""
    yield from _lines(together)


def _title(text: str, width: int) -> Text:
    """A sentence wraps as ever; a name that is wider than the page is broken between its parameters."""
    clean = _clean(text)
    return Text(clean if " " in clean else in_lines(clean, width), "bold")


def _lines(lines: Sequence[Line]) -> Iterator[RenderableType]:
    """Neighbours with marks share a grid, so that they are wrapped under themselves."""
    marked: list[Line] = []
    for line in lines:
        if line.mark:
            marked.append(line)
            continue
        yield from _marked(marked)
        marked = []
        yield Text(_clean(line.text), STYLES[line.tone])
    yield from _marked(marked)


def _marked(lines: Sequence[Line]) -> Iterator[RenderableType]:
    if not lines:
        return
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row(Text(_clean(line.mark), STYLES[line.tone]), Text(_clean(line.text), STYLES[line.tone]))
    yield grid


def table(result: Table, width: int = WIDTH) -> Iterator[RenderableType]:
    """Lay out a table; where it is too wide, the columns that can be spared go, the most dispensable first."""
    if result.title:
        yield Text(_clean(result.title), "bold")
    shown = list(range(len(result.columns)))
    while True:
        grid = _grid(result, shown)
        dispensable = [at for at in shown if result.columns[at].spare]
        if not dispensable or _natural(grid) <= width:
            break
        shown.remove(max(dispensable, key=lambda at: result.columns[at].spare))
    yield grid


def _grid(result: Table, shown: Sequence[int]) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, header_style="")
    lines = max((result.columns[at].head.count("\n") for at in shown), default=0)
    for at in shown:
        column = result.columns[at]
        head = "\n" * (lines - column.head.count("\n")) + column.head
        if column.left:
            grid.add_column(head, overflow="fold", max_width=None if at == shown[-1] else NAME)
        else:
            grid.add_column(head, justify="right", no_wrap=True)
    for row in result.rows:
        grid.add_row(*(cell_text(row[at], result.columns[at].write) for at in shown))
    return grid


def _natural(grid: Grid) -> int:
    return Console(width=10_000, height=WIDTH).measure(grid).maximum


def cell_text(value: object, write: object) -> Text:
    """A cell as rich has it."""
    if value is None:
        return Text("")
    if isinstance(value, Word):
        return Text(_clean(value.text), STYLES[value.tone])
    return Text(_clean(write(value) if callable(write) else str(value)))


def _clean(text: object) -> str:
    return one_line(text, SENTENCE)


def join(answers: Iterable[Answer], width: int = WIDTH, *, color: bool = False) -> str:
    """Several answers, one below the other."""
    return "\n".join(render(answer, width, color=color) for answer in answers)
