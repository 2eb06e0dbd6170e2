"""A series in one line of text: a letter a run, or for several runs their median."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

RAMP, PLAIN_RAMP = "▁▂▃▄▅▆▇█", "_.-=+*#@"


def sparkline(values: Sequence[float], width: int, *, plain: bool = False) -> str:
    """Draw values in time order from low to high, at most `width` letters; `plain` for terminals that have only ASCII."""
    count = min(width, len(values))
    cuts = [round(at * len(values) / count) for at in range(count + 1)]
    heights = [median(values[begin:end]) for begin, end in pairwise(cuts)]
    low, high = min(heights), max(heights)
    ramp = PLAIN_RAMP if plain else RAMP
    if high == low:
        return ramp[len(ramp) // 2] * count
    return "".join(ramp[min(int((height - low) / (high - low) * len(ramp)), len(ramp) - 1)] for height in heights)
