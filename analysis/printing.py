"""Text on a page of 100 columns: what is printed by more than one command."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console

from .wording import probability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

WIDTH = 100
UNITS = ((1e9, "ns", 1e-7), (1e6, "µs", 1e-4), (1e3, "ms", 0.1))


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


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    if seconds < 120 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def tiny(p: float) -> str:
    return probability(p) if p >= 0.001 else f"{p:.1e}"


def unit_of(times_s: Iterable[float]) -> tuple[float, str]:
    """Answer what to multiply seconds by so that the longest time has a digit or two before its point, and the unit it then has."""
    longest_s = max(times_s)
    return next(((scale, unit) for scale, unit, below_s in UNITS if longest_s < below_s), (1.0, "s"))


def measures(*values: float) -> list[str]:
    """Write values that belong together with equally many decimals: four digits of the first."""
    largest = abs(values[0])
    decimals = next((decimals for decimals, limit in enumerate((1000, 100, 10, 1)) if largest >= limit), 3 if largest >= 0.1 else 5)
    return [f"{value:.{decimals}f}" for value in values]
