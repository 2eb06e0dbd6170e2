"""Scales for step times: logarithmic where they span much, with few ticks at round numbers, written out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MUCH = 4.0  # largest over smallest


def log_or_linear(axes: Axes, which: Literal["x", "y"], low: float, high: float, most: int = 6) -> None:
    """Scale one axis for positive values from `low` to `high`, with about `most` ticks."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if high / low <= MUCH:
        room = 0.08 * (high - low) or 0.1 * high
        axes.set(**{f"{which}lim": (low - room, high + room)})
        axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=1))
        return
    room = (high / low) ** 0.06
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low / room, high * room)})
    axis.set_major_locator(FixedLocator(round_ticks(low / room, high * room, most)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """Choose round numbers between two positive ones, as many of each decade as fit; two at least where that can be."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        finer = ticks
        ticks = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
        if len(ticks) <= most:
            return ticks if len(ticks) > 1 or len(finer) < 2 else [finer[0], finer[-1]]
    return ticks[:: math.ceil(len(ticks) / most)]
