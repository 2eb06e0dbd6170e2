"""A step's time in an arm that took turns with others, cleared of what the machine did to all of them alike."""

from __future__ import annotations

import math
from statistics import fmean, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def round_adjusted_s(slices_s: Sequence[Sequence[Sequence[float]]]) -> list[float]:
    """One step time an arm, of step times by arm, round and place in the slice (arms × rounds × places, seconds).

    Steps of one round and one place stand beside each other: their level, the mean over arms of the log, is what the machine did then, and
    what that place is (a first step after a pause, one that writes a checkpoint). An arm's value at a place is the median over rounds of
    what its steps differ from that level: one sweep of a median polish (Tukey, Exploratory Data Analysis, 1977), which single slow steps
    do not move. Places count by their share of the time, and the whole is put back on the mean step time of all arms.
    """
    places = range(len(slices_s[0][0]))
    logs = [[[math.log(slices[place]) for slices in arm] for arm in slices_s] for place in places]
    levels = [[fmean(of_round) for of_round in zip(*arms, strict=True)] for arms in logs]
    typical_s = [math.exp(fmean(level)) for level in levels]
    values = []
    for arm in range(len(slices_s)):
        differences = [median(log - level for log, level in zip(logs[place][arm], levels[place], strict=True)) for place in places]
        weighted = math.fsum(share * differs for share, differs in zip(typical_s, differences, strict=True)) / math.fsum(typical_s)
        values.append(fmean(typical_s) * math.exp(weighted))
    return values
