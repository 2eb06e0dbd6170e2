"""CSV as a foreign file: refused with the line that is wrong."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from pathlib import Path

    Lines = list[tuple[str, dict[str, str]]]  # where it stands, and its cells by column


def text_of(path: Path) -> str:
    try:
        return read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: is no CSV in UTF-8 ({error}).") from None


def parse(text: str, where: object) -> tuple[list[str], Lines]:
    """Columns, and lines but for blank ones; `where` begins what is said of it. Raises: Unreadable."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines: Lines = []
    try:
        names = [name.strip() for name in next(reader, [])]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise Unreadable(f"{where}: has the column {one_line(twice[0])!r} {names.count(twice[0])} times; leave one.")
        for cells in reader:
            at = f"{where}: line {reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(names):
                raise Unreadable(f"{at}: has {len(cells)} cells for {len(names)} columns.")
            lines.append((at, {name: cell.strip() for name, cell in zip(names, cells, strict=True)}))
    except csv.Error as error:
        raise Unreadable(f"{where}: line {reader.line_num}: is no CSV ({error}).") from None
    return names, lines
