"""The smallest gain that an arm's blocks would call, computed while a run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import stdev

from .t_test import ALPHA, detectable_gain

FEWEST_KNOWN = 3


def detectable(log_ratios: Sequence[float], family: int) -> float | None:
    """Return that gain, a fraction, from log ratios to the baseline; None for fewer than three."""
    blocks = len(log_ratios)
    if blocks < FEWEST_KNOWN:
        return None
    return detectable_gain(stdev(log_ratios), blocks, ALPHA / family)
