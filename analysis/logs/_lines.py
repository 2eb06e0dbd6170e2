"""Lines of a foreign log, and the numbers in them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from pathlib import Path

NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
SHOWN = 60  # letters of a line that is complained of
CUT = "the log ends in the middle of it, as one does whose writer was killed"


class Line(NamedTuple):
    number: int
    text: str
    whole: bool


class Ignored:
    """Gathers the lines that could not be read, each with its number and why."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def __call__(self, line: Line, reason: str) -> None:
        self.said.append(f"line {line.number}: {reason}: {one_line(line.text, SHOWN)!r}")


def lines_of(path: Path) -> list[Line]:
    """Answer a log's lines, whatever bytes are in it; blank ones are left out.

    Raises: Unreadable, for an empty file and one that cannot be opened.
    """
    text = read_whole(path).decode("utf-8", errors="replace")
    if not text.strip():
        raise Unreadable(f"{path}: is empty: nothing was recorded, or the log was not copied; take it from its source.")
    result = text.split("\n")  # str.splitlines would also break at what may stand inside a line
    last = len(result)
    return [Line(at, text.removesuffix("\r"), at < last) for at, text in enumerate(result, 1) if text.strip()]


def number_in(text: str) -> float | None:
    """Read a number as programs print it; None for anything else, for `nan` and `inf` too, which are no measurement."""
    if NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def none_of_it(path: Path, what: str, ignored: Ignored) -> Unreadable:
    first = f"; the first of {len(ignored.said)} lines left out: {ignored.said[0]}" if ignored.said else ""
    return Unreadable(f"{path}: no sample of {what} in it{first}. Name a log of it, or record it again.")
