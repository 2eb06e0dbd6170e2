"""Rungs one above the other: clocks or throttles to run at, batches to work in."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from .terms import Settings, Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Knobs, Speed


def speeds_of(knobs: Knobs) -> tuple[Speed, tuple[float, ...]]:
    """What sets the pace here and its states, ascending: the clock, else the throttle. Raises: Unsupported, where nothing does."""
    if knobs.sm_mhz:
        return "sm_mhz", knobs.sm_mhz
    if knobs.throttle:
        return "throttle", knobs.throttle
    raise Unsupported("neither a clock nor a throttle can be set here.")


def at_speed(settings: Settings, name: Speed, value: float) -> Settings:
    """The same settings at another clock or throttle."""
    return replace(settings, sm_mhz=value) if name == "sm_mhz" else replace(settings, throttle=value)


def speed_in(settings: Settings, name: Speed) -> float | None:
    """The clock or throttle of settings."""
    return settings.sm_mhz if name == "sm_mhz" else settings.throttle


def nearest(ladder: Sequence[float], value: float) -> int:
    """The index of the rung nearest to `value`, of two the lower one."""
    above = bisect_right(ladder, value)
    return min((at for at in (above - 1, above) if 0 <= at < len(ladder)), key=lambda at: (abs(ladder[at] - value), at))


def at_most(ladder: Sequence[float], value: float) -> int:
    """The index of the highest rung that is not above `value`; 0 where all are."""
    return max(bisect_right(ladder, value) - 1, 0)


def clamped(index: int, ladder: Sequence[float]) -> int:
    """The index itself, or that of the end it ran past."""
    return min(max(index, 0), len(ladder) - 1)


def batches_of(ladder: Sequence[int], knobs: Knobs) -> tuple[int, ...]:
    """The rungs of an algorithm's ladder that exist here; where fewer than two do, the back-end's own."""
    here = tuple(batch for batch in ladder if batch in knobs.batches)
    return here if len(here) > 1 else knobs.batches
