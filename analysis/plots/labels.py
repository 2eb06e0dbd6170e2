"""Labels on axes and rows: metrics with units, names of tweak sets, and names cut to fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import LoadFlags

from analysis.labels import LABELS, TOLD_RATE, UNITS, label_of
from analysis.plain import one_line
from analysis.terms import Metric
from analysis.wording import digits, unit_of
from control import rates

from .style import FONT, TEXT

LONGEST = 200  # letters of a name: more fits nowhere on a page
BREAKS = "-_./ "  # a name is broken after these


class Measure(NamedTuple):
    """A metric's label and unit; values multiplied by `scale` are in `unit`."""

    name: str
    unit: str
    scale: float

    @property
    def label(self) -> str:
        """Return the label of an axis."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def value(self, number: float) -> str:
        """Write one value with its unit, to four digits."""
        return f"{digits(number * self.scale)} {self.unit}".strip()


def measure_of(metric: Metric | str, values: Sequence[float] = ()) -> Measure:
    """Choose name and unit for a metric's values; an unknown one keeps its name with the unit."""
    name = metric if isinstance(metric, str) else metric.name
    if name == TOLD_RATE:
        largest = max(map(abs, values), default=1.0)
        scale, unit = rates.scale_of(largest, "" if isinstance(metric, str) else metric.unit)
        return Measure("rate", unit, scale)
    if name not in LABELS:
        return Measure(one_line(name, 60), "", 1.0)
    units = (unit.strip() for ending, unit in UNITS.items() if ending in name)
    unit = next(units, "s")
    scale, unit = unit_of(values or [1.0]) if unit == "s" else (1.0, unit)
    return Measure(label_of(name), unit, scale)


def minus(text: str) -> str:
    """Write a minus sign where a hyphen stands before a digit, as the axes do."""
    return re.sub(r"(?<![\w.])-(?=\d)", "\N{MINUS SIGN}", text)


def joined(values: Iterable[str]) -> str:
    """List each text once, separated by commas."""
    return ", ".join(dict.fromkeys(values))


@cache
def _advance(letter: str, weight: str) -> float:
    font = get_font(findfont(FontProperties(family=FONT, weight=weight)))
    font.set_size(1000, 72)
    glyph = font.load_glyph(font.get_char_index(ord(letter)), flags=LoadFlags.NO_HINTING)
    return 1.03 * glyph.linearHoriAdvance / 65536 / 1000


def width_in(text: str, points: float = TEXT, weight: str = "normal") -> float:
    """Return the width of a line of text, in inches."""
    return points / 72 * sum(_advance(letter, weight) for letter in text)


def room_for(names: Iterable[str], most_in: float, points: float = TEXT) -> float:
    """Return the width of a column of names, in inches, with a gap; at most `most_in`."""
    widths = (width_in(one_line(name, LONGEST), points) for name in names)
    return min(most_in, max(widths, default=0.0) + 0.18)


def wrapped(text: str, room_in: float, points: float = TEXT) -> list[str]:
    """Wrap a text into lines that fit; a word longer than a line is broken too."""
    lines = [""]
    for word in one_line(text, 50 * LONGEST).split():
        longer = f"{lines[-1]} {word}".strip()
        if width_in(longer, points) > room_in:
            lines.append("")
            longer = word
        while width_in(longer, points) > room_in:
            at = _most(longer, room_in, points)
            lines[-1:] = [longer[:at], ""]
            longer = longer[at:]
        lines[-1] = longer
    return [line for line in lines if line]


def fitted(
    names: Iterable[str],
    room_in: float,
    points: float = TEXT,
    lines: int = 2,
    weight: str = "normal",
) -> dict[str, str]:
    """Fit names into lines of a column, broken or shortened in the middle; no two are alike."""
    shown: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = fit(name, room_in, points, lines, weight)
        # Two shortened names may be equal: then their place in the list distinguishes them.
        if text in shown.values():
            text = fit(f"{len(shown) + 1}. {name}", room_in, points, lines, weight)
        shown[name] = text
    return shown


def fit(
    name: str, room_in: float, points: float = TEXT, lines: int = 1, weight: str = "normal"
) -> str:
    """Fit a name into a number of lines."""
    return _folded(one_line(name, LONGEST), lines, room_in, points, weight)


def _most(text: str, room_in: float, points: float, weight: str = "normal") -> int:
    wide = 0.0
    for at, letter in enumerate(text):
        wide += width_in(letter, points, weight)
        if wide > room_in:
            return max(1, at)
    return len(text)


def _folded(name: str, lines: int, room_in: float, points: float, weight: str) -> str:
    most = _most(name, room_in, points, weight)
    if most >= len(name):
        return name
    if lines > 1:
        most = next((at for at in range(most, most // 2, -1) if name[at - 1] in BREAKS), most)
        return f"{name[:most]}\n{_folded(name[most:], lines - 1, room_in, points, weight)}"
    shorter = (
        f"{name[: (keep + 1) // 2]}…{name[len(name) - keep // 2 :]}" for keep in range(most, -1, -1)
    )
    return next((short for short in shorter if width_in(short, points, weight) <= room_in), "…")
