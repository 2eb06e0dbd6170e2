"""How the figures of a capped run are written: differences with their interval, caps with their unit, and the words for verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.wording import digits, number, percent, probability

from .terms import ACTIVITY, NO_SENSOR, SIMULATED, WATT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Against, Mean, Side

UNITS = {WATT: "W", ACTIVITY: "CPU s/s"}
EXCESSES = {WATT: "W·s", ACTIVITY: "CPU s"}


def unit_of(side: Side) -> str:
    """The unit of the cap as people write it."""
    return UNITS.get(side.unit, side.unit)


def excess_of(side: Side) -> str:
    """The unit of what is above the cap, times how long it is."""
    return EXCESSES.get(side.unit, f"{unit_of(side)}·s")


def drawn_from(side: Side) -> str:
    """What is limited: power, or where no watts are read, activity."""
    return "power" if side.unit == WATT else "activity"


def caps(values: Sequence[float], side: Side) -> str:
    """Write a cap, or those of a schedule in their order: `130 W`, `200, 160, 120 W`."""
    return f"{', '.join(f'{value:g}' for value in values)} {unit_of(side)}" if values else "unknown"


def shown(one: Against, what: str = "") -> str:
    """Write a difference in a sentence: `+3.2 % [2.0, 4.4] images/s (Holm p 0.002, 20 blocks)`."""
    if one.value is None:
        return one.missing or "unknown"
    ends = "" if one.low is None or one.high is None else f" [{number(one.low).lstrip('+')}, {number(one.high).lstrip('+')}]"
    p = "" if one.p_adjusted is None else f"Holm p {probability(one.p_adjusted)}, "
    return f"{percent(one.value)}{ends}{f' {what}' if what else ''} ({p}{one.blocks} blocks)"


def share(one: Mean | None) -> str:
    """Write a share of time in percent with its interval: `4.2 [3.1, 5.3]`."""
    if one is None:
        return ""
    ends = "" if one.low is None or one.high is None else f" [{100 * one.low:.1f}, {100 * one.high:.1f}]"
    return f"{100 * one.value:.1f}{ends}"


def value(one: Mean | None, most: int = 4) -> str:
    """Write a mean without its interval, to so many digits."""
    return "" if one is None else digits(one.value, most)


def source(side: Side) -> str:
    """Say where the readings come from, which decides what may be said of the cap."""
    if side.power_source == SIMULATED:
        return f"SIMULATED: back-end {side.backend} is a plant made from a model or tables. No figure here was measured on a GPU."
    if side.unit == ACTIVITY:
        return f"ACTIVITY, not power: back-end {side.backend} limits and reads CPU seconds a second. No watts were read, none are claimed."
    if side.power_source == NO_SENSOR:
        return f"NO SENSOR: back-end {side.backend} reads no power here. Nothing is said of the cap."
    return f"Measured: back-end {side.backend}, power read by {side.power_source}."
