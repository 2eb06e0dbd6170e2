"""How figures of jobs are written: times in a unit that suits them, intervals beside values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.wording import digits, probability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analysis.terms import Effect

    from .estimates import Figure, Ratio

    Document = dict[str, Any]

NONE = "–"


def number(value: float | None, most: int = 3) -> str:
    return NONE if value is None else digits(value, most)


def figure(value: Figure | Ratio | None, scale: float = 1.0) -> str:
    """Write a value with its interval: `0.612 [0.58, 0.645]`, without one where it has none."""
    if value is None:
        return NONE
    if value.low is None or value.high is None:
        return number(value.value * scale)
    return f"{number(value.value * scale)} [{number(value.low * scale)}, {number(value.high * scale)}]"


def value_of(figure: Figure | None, most: int = 3) -> str:
    return NONE if figure is None else number(figure.value, most)


def p_value(p: float | None) -> str:
    return NONE if p is None else probability(p)


def faster(effect: Effect | None, unknown: str) -> str:
    """Write a gain before the name of what it is over: `+12.0 % faster [+8.1, +16.0], p 0.001, than`; `unknown` is why there is none."""
    if effect is None:
        return f"{unknown}, before"
    shown = f"{100 * effect.gain:+.1f} % faster [{100 * effect.low:+.1f}, {100 * effect.high:+.1f}], p {probability(effect.p)}"
    return f"{shown}, than" if effect.low > 0 else f"not shown to be faster ({shown}) than"


def inverse(effect: Effect) -> tuple[float, float, float]:
    return 1 / (1 + effect.gain), 1 / (1 + effect.high), 1 / (1 + effect.low)


def unit(times_s: Iterable[float]) -> tuple[float, str]:
    from analysis.wording import unit_of  # noqa: PLC0415  # as above

    known = [time for time in times_s if time > 0]
    return unit_of(known) if known else (1.0, "s")
