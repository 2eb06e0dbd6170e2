"""Cells that are far from what their tweak set and their block let expect: what made an average odd has a name."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Cell

FAR = 5.0  # robust standard deviations
FEWEST = 3  # tweak sets and blocks: of two that differ nobody knows which one is odd
SWEEPS = 10


class Odd(NamedTuple):
    """A cell, and by what fraction its value is above (+) or below (-) what its tweak set and block let expect."""

    cell: Cell
    off: float


def odd_cells(cells: Sequence[Cell], metric: str) -> list[Odd]:
    """Answer the odd ones of the measured cells of one workload, the oddest first.

    Median polish (Tukey 1977) of log values into tweak set and block; far is beyond 5 robust standard deviations of what is left, and by
    more than 1 %. The polish makes many of the rest 0: the median absolute deviation is of as many as there are degrees of freedom, the
    largest, and widened for them. Of tables of pure normal noise, 3 × 3 to 24 × 10, it rings a cell in 1 of 80 at most (simulated).
    """
    left = {cell.id: math.log(cell.metrics[metric]) for cell in cells if cell.outcome == "measured" and cell.metrics.get(metric, 0.0) > 0}
    known = [cell for cell in cells if cell.id in left]
    sets, blocks = len({cell.tweakset for cell in known}), len({cell.block for cell in known})
    if min(sets, blocks) < FEWEST:
        return []
    groups: dict[str | int, list[str]] = {}  # a name is a tweak set, a number a block: sets first, then blocks
    for cell in known:
        groups.setdefault(cell.tweakset, []).append(cell.id)
    for cell in known:
        groups.setdefault(cell.block, []).append(cell.id)
    for _ in range(SWEEPS):
        for ids in groups.values():
            middle = statistics.median(left[one] for one in ids)
            left |= {one: left[one] - middle for one in ids}
    freedom = len(known) - sets - blocks + 1
    if freedom < FEWEST:
        return []
    sizes = sorted(map(abs, left.values()))[-freedom:]
    limit = max(FAR * 1.4826 * statistics.median(sizes) * math.sqrt(len(known) / freedom), 0.01)
    found = [Odd(cell, math.expm1(left[cell.id])) for cell in known if abs(left[cell.id]) > limit]
    return sorted(found, key=lambda one: -abs(math.log1p(one.off)))
