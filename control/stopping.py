"""Judge an arm's blocks during a run: the detectable effect, and an outlying last block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median, stdev
from typing import NamedTuple

from .t_test import ALPHA, detectable_gain
from .turns import NORMAL_MAD

FEWEST_KNOWN = 3
FAR, FEWEST_LIKE = 5.0, 4  # robust standard deviations; blocks from which these can be had


class ArmPrecision(NamedTuple):
    """How precisely an arm is known from its blocks.

    `mde` is the smallest gain that they would call, a fraction, among all contrasts of the study.
    """

    blocks: int
    log_sd: float
    mde: float
    odd: float | None = (
        None  # by what fraction its last block was off the others, where that was far
    )


def known(log_ratios: Sequence[float], family: int) -> ArmPrecision | None:
    """Return the precision from an arm's log ratios to the baseline; None for fewer than three."""
    blocks = len(log_ratios)
    if blocks < FEWEST_KNOWN:
        return None
    log_sd = stdev(log_ratios)
    return ArmPrecision(
        blocks, log_sd, detectable_gain(log_sd, blocks, ALPHA / family), _odd(log_ratios)
    )


def _odd(log_ratios: Sequence[float]) -> float | None:
    *others, last = log_ratios
    middle = median(others)
    spread = NORMAL_MAD * median(abs(value - middle) for value in others)
    far = len(others) >= FEWEST_LIKE and abs(last - middle) > FAR * spread > 0
    return math.expm1(last - middle) if far else None
