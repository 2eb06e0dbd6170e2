"""Whether every cell ran what the others ran, told by how long it took.

With equally many launches a kernel of more blocks takes at least as long, and at most as many times as long as it has more blocks. A cell
that breaks this with others was cut short or ran on. Of two that disagree neither is right by itself: the one that disagrees with most is
named, then it is left out and the rest looked at again.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .sampled import idle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .terms import Cell, Size

FACTOR = 1.5  # caches fill and clocks fall: a little off is no other work
SAMPLES = 2.0  # a sample more or less at each end is nothing
SHORT = 0.5  # of two logs of one run, the shorter has less than so much of the longer


@dataclass(frozen=True, slots=True)
class Odd:
    """A cell whose run does not fit: `samples` that it took, and what the others with as many threads leave it (either may be unknown)."""

    size: Size
    samples: float
    least: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class Uneven:
    """A cell whose logs are not of one length: one of them was cut short."""

    place: str
    counts: Mapping[str, int]


def odd_ones(samples: Mapping[Size, float]) -> list[Odd]:
    """Find the cells that did not run what the others of equal threads ran; `samples` is how long each took, in samples."""
    found = []
    for threads in sorted({size[1] for size in samples}):
        left = {size[0]: count for size, count in samples.items() if size[1] == threads}
        while len(left) > 2:
            blame = _blame(left)
            if not blame:
                break
            # Where two have as many quarrels, the one that is further off.
            worst = max(blame, key=lambda blocks: (len(blame[blocks]), math.fsum(blame[blocks])))
            count = left.pop(worst)
            found.append(Odd((worst, threads), count, *_between(worst, left)))
    return sorted(found, key=lambda one: one.size)


def _blame(left: Mapping[int, float]) -> dict[int, list[float]]:
    """Answer for each number of blocks how far it is off from each that it disagrees with (logarithm of the ratio)."""
    blame: dict[int, list[float]] = {}
    for few in left:
        for many in left:
            if few < many:
                off = max(_over(left[few], left[many]), _over(left[many], left[few] * many / few))
                if off > 0:
                    blame.setdefault(few, []).append(off)
                    blame.setdefault(many, []).append(off)
    return blame


def _over(count: float, limit: float) -> float:
    """By how much a count lies above its limit, beyond what is tolerated."""
    return math.log(count / max(limit, 1e-9)) if count > FACTOR * limit + SAMPLES else 0.0


def _between(blocks: int, others: Mapping[int, float]) -> tuple[float | None, float | None]:
    """Answer what its neighbours leave a cell: as long as the smaller one at least, as the larger one at most, and by proportion."""
    below, above = max((one for one in others if one < blocks), default=None), min((one for one in others if one > blocks), default=None)
    least = [others[below]] if below is not None else []
    most = [others[below] * blocks / below] if below is not None else []
    least += [others[above] * blocks / above] if above is not None else []
    most += [others[above]] if above is not None else []
    low, high = max(least, default=None), min(most, default=None)
    return (low, high) if low is None or high is None or low <= high else (high, low)


def uneven(cells: Sequence[Cell]) -> list[Uneven]:
    """Find cells one of whose logs ended long before the other."""
    found = []
    for cell in cells:
        counts = {log.source: len(log) for log in cell.logs}
        if len(counts) > 1 and min(counts.values()) < SHORT * max(counts.values()):
            found.append(Uneven(cell.place, counts))
    return found


def launches_differ(cells: Sequence[Cell]) -> dict[Size, float]:
    """Answer the cells that say they launched another number of kernels than most did; none where no number is most cells'."""
    known = {cell.size: cell.work.launches for cell in cells if cell.work.launches is not None}
    if not known:
        return {}
    usual, times = Counter(known.values()).most_common(1)[0]
    return {size: count for size, count in sorted(known.items()) if count != usual} if 2 * times > len(known) else {}


def nothing_ran(cells: Sequence[Cell]) -> list[Cell]:
    """Find cells in which no sample shows any work."""
    return [cell for cell in cells if idle(cell)[1] == 0]
