"""How figures of jobs are written: times in a unit that suits them, intervals beside values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.printing import unit_of
from analysis.wording import digits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .estimates import Figure, Ratio


NONE = "–"


def number(value: float | None, most: int = 3) -> str:
    """Write a value to so many digits."""
    return NONE if value is None else digits(value, most)


def figure(one: Figure | None, scale: float = 1.0) -> str:
    """Write a value with its interval: `0.612 [0.58, 0.645]`, without one where it has none."""
    if one is None:
        return NONE
    value = number(one.value * scale)
    if one.low is None or one.high is None:
        return value
    return f"{value} [{number(one.low * scale)}, {number(one.high * scale)}]"


def unit(times_s: Iterable[float]) -> tuple[float, str]:
    """Answer by what to multiply seconds, and the unit they then have, so that the longest is readable."""
    known = [time for time in times_s if time > 0]
    return unit_of(known) if known else (1.0, "s")


def ratio_text(one: Ratio | None) -> str:
    """Write a ratio with its interval."""
    if one is None:
        return NONE
    value = number(one.value)
    return value if one.low is None else f"{value} [{number(one.low)}, {number(one.high)}]"
