"""A step's time in an arm that took turns with others, cleared of what the machine did to all of them alike."""

from __future__ import annotations

import math
from statistics import fmean, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HUBER = 1.345  # standard deviations: 95 % as efficient as the mean where noise is normal
NORMAL_MAD = 1.4826  # what the median absolute deviation of normal noise is multiplied with to be its standard deviation
SWEEPS = 20  # after which another moves nothing by a hundredth of a per cent
SMALLEST = 1e-12
MOST_CORES = 1.0  # of others in a slice: what they use on further CPUs holds up the same steps
HALF = 0.5  # of a slice: where others took more of it, by how much they held it up is no longer to be told


def round_adjusted_s(slices_s: Sequence[Sequence[Sequence[float]]], others_cpu_s: Sequence[Sequence[float | None]] = ()) -> list[float]:
    """One step time an arm, of step times by arm, round and place in the slice (arms × rounds × places, seconds).

    Steps of one round and one place stand beside each other. Their logs are an arm's value plus a level that all arms share: what the
    machine did then, and what that place is (a first step after a pause, one that writes a checkpoint). Both are fitted robustly, so that
    single slow steps do not move them. Places count by their share of the time; the result is the mean step time of all arms times what an
    arm differs from it.

    `others_cpu_s` is what others used of the CPUs in each slice (arms × rounds, seconds; None where that was not seen). By how much a step
    is slower where they use more is one slope for the whole block, and is taken out too: who gets more of them is a matter of chance.
    Nobody makes a step faster by using the CPUs, and a second that others take holds it up by about a second at most: the rest is noise.
    """
    places = range(len(slices_s[0][0]))
    shift = _slowed(slices_s, others_cpu_s) if others_cpu_s else [[0.0] * len(arm) for arm in slices_s]
    logs = [
        [[math.log(one[place]) - by for one, by in zip(arm, own, strict=True)] for arm, own in zip(slices_s, shift, strict=True)]
        for place in places
    ]
    typical_s = [math.exp(fmean(fmean(arm) for arm in arms)) for arms in logs]
    values = [additive(arms) for arms in logs]
    whole_s = math.fsum(typical_s)
    return [
        fmean(typical_s) * math.exp(math.fsum(share * own[arm] for share, own in zip(typical_s, values, strict=True)) / whole_s)
        for arm in range(len(slices_s))
    ]


def _slowed(slices_s: Sequence[Sequence[Sequence[float]]], others_cpu_s: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """By how much (log) each slice was slower than the mean one because others used the CPUs: least squares within rounds and arms."""
    cores = [
        [None if used is None else min(used / math.fsum(one), MOST_CORES) for one, used in zip(own, others, strict=True)]
        for own, others in zip(slices_s, others_cpu_s, strict=True)
    ]
    seen = [number for arm in cores for number in arm if number is not None]
    if not seen:
        return [[0.0] * len(arm) for arm in slices_s]
    middle = fmean(seen)
    differs = [[0.0 if number is None else number - middle for number in arm] for arm in cores]
    x, y = _centred(differs), _centred([[math.log(math.fsum(one)) for one in arm] for arm in slices_s])
    spread = math.fsum(number * number for arm in x for number in arm)
    slope = math.fsum(a * b for pair in zip(x, y, strict=True) for a, b in zip(*pair, strict=True)) / spread if spread else 0.0
    slope = min(max(slope, 0.0), 1 / (1 - min(middle, HALF)))
    return [[slope * number for number in arm] for arm in differs]


def _centred(table: Sequence[Sequence[float]]) -> list[list[float]]:
    """Less the means of its rows and columns."""
    rows, columns = [fmean(row) for row in table], [fmean(column) for column in zip(*table, strict=True)]
    middle = fmean(rows)
    return [
        [number - own - level + middle for number, level in zip(row, columns, strict=True)] for row, own in zip(table, rows, strict=True)
    ]


def additive(table: Sequence[Sequence[float]]) -> list[float]:
    """The rows' values of a table that is row plus column plus noise, their mean 0: Huber's M-estimate (Robust Statistics, 1981).

    By turns, rows and columns are means in which a number counts the less, the farther it lies beyond 1.345 standard deviations.
    """
    columns = [fmean(column) for column in zip(*table, strict=True)]
    rows = [median(number - level for number, level in zip(row, columns, strict=True)) for row in table]
    for _ in range(SWEEPS):
        left = [[number - own - level for number, level in zip(row, columns, strict=True)] for row, own in zip(table, rows, strict=True)]
        scale = max(NORMAL_MAD * median(abs(number) for row in left for number in row), SMALLEST)
        weights = [[min(1.0, HUBER * scale / abs(number)) if number else 1.0 for number in row] for row in left]
        columns = [
            math.fsum(w * (row[at] - own) for w, row, own in zip(of_column, table, rows, strict=True)) / math.fsum(of_column)
            for at, of_column in enumerate(zip(*weights, strict=True))
        ]
        rows = [
            math.fsum(w * (number - level) for w, number, level in zip(of_row, row, columns, strict=True)) / math.fsum(of_row)
            for of_row, row in zip(weights, table, strict=True)
        ]
        middle = fmean(rows)
        rows = [own - middle for own in rows]
    return rows
