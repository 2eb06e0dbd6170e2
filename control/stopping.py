"""When an arm needs no more blocks: it would see what was asked for, or differs beyond doubt.

The first looks at the spread of its blocks alone, which says nothing of their mean where blocks are normal; but a spread that
happens to look small ends an arm too soon. The second is the bound of Haybittle (Br J Radiol 1971) and Peto (Br J Cancer 1976): looks
at so small a p cost the last test little. For both, all intervals and p of such a run are taken at 96 % where others' are at 95: with
it false alarms stay at 5 % (docs/calibration.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev
from typing import NamedTuple

from .t_test import ALPHA, detectable_gain, t_quantile, t_tail
from .turns import NORMAL_MAD

FEWEST_BLOCKS = 8
FEWEST_KNOWN = 3
FAR, FEWEST_LIKE = 5.0, 4  # robust standard deviations; blocks from which these can be had
SEQUENTIAL_ALPHA = 0.04
BEYOND_DOUBT_P = 0.0001


def widening(df: float) -> float:
    """By what a standard error is multiplied where it had a say in when to stop, so that an interval of 95 % is one of 96."""
    return t_quantile(1 - SEQUENTIAL_ALPHA / 2, df) / t_quantile(1 - ALPHA / 2, df)


class Known(NamedTuple):
    """What an arm's blocks say of it.

    `mde` is the smallest gain that they would call, a fraction, among all contrasts of the study; `p` that of no difference, alone.
    """

    blocks: int
    log_sd: float
    mde: float
    p: float
    odd: float | None = None  # by what fraction its last block was off the others, where that was far

    def why_decided(self, precision: float) -> str:
        """Why it needs no more blocks; empty where it does."""
        if self.blocks < FEWEST_BLOCKS:
            return ""
        if self.mde <= precision:
            return f"would see {100 * self.mde:.1f} % after {self.blocks} blocks"
        return f"p {self.p:.1g} after {self.blocks} blocks" if self.p < BEYOND_DOUBT_P else ""


def known(log_ratios: Sequence[float], family: int) -> Known | None:
    """What an arm's blocks say of it, each by the log of its ratio to the baseline; None of fewer than three."""
    blocks = len(log_ratios)
    if blocks < FEWEST_KNOWN:
        return None
    log_sd = stdev(log_ratios)
    t = abs(fmean(log_ratios)) * math.sqrt(blocks) / log_sd if log_sd else math.inf
    mde = detectable_gain(log_sd * widening(blocks - 1), blocks, ALPHA / family)
    return Known(blocks, log_sd, mde, 2 * t_tail(t, blocks - 1), _odd(log_ratios))


def _odd(log_ratios: Sequence[float]) -> float | None:
    *others, last = log_ratios
    middle = median(others)
    spread = NORMAL_MAD * median(abs(value - middle) for value in others)
    far = len(others) >= FEWEST_LIKE and abs(last - middle) > FAR * spread > 0
    return math.expm1(last - middle) if far else None
