"""Whether every cell ran what the others ran, told by how long it took.

With equally many launches a kernel of more blocks takes at least as long, and at most as many times as long as it has more blocks. A cell
that breaks this with others was cut short or ran on: the one that disagrees with most is named, then it is left out and the rest looked at
again. Where two disagree with each other alone, the line through the cells that nobody disagrees with decides; where it cannot, both are
named as a pair of which one is wrong. A count is off by up to `SAMPLES`, and what is reckoned from it by as many times more.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .sampled import idle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .terms import GridCell, Size

FACTOR = 1.5  # caches fill and clocks fall: a little off is no other work
SAMPLES = 2.0  # the error of a count: a sample more or less at each end
SHORT = 0.5  # of two logs of one run, the shorter has less than so much of the longer


@dataclass(frozen=True, slots=True)
class OddCell:
    """A cell whose run does not fit: `samples` that it took, and what the others with as many threads leave it (either may be unknown).

    `rival` is the other cell of a pair of which one is wrong and nothing tells which; then the limits are what the rival leaves it.
    """

    size: Size
    samples: float
    least: float | None
    most: float | None
    rival: Size | None = None


@dataclass(frozen=True, slots=True)
class Uneven:
    """A cell whose logs are not of one length: one of them was cut short."""

    place: str
    counts: Mapping[str, int]


def odd_ones(samples: Mapping[Size, float]) -> list[OddCell]:
    """Find the cells that did not run what the others of equal threads ran; `samples` is how long each took."""
    result = []
    for threads in sorted({size[1] for size in samples}):
        left = {size[0]: count for size, count in samples.items() if size[1] == threads and count}  # 0 is no run at all
        while quarrels := _quarrels(left):
            blamed = _blamed(quarrels, left)
            counts = {blocks: left.pop(blocks) for blocks in blamed}
            for blocks, count in counts.items():
                rival = next((other for other in blamed if other != blocks), None)
                others = left if rival is None else {rival: counts[rival]}
                result.append(OddCell((blocks, threads), count, *_between(blocks, others), None if rival is None else (rival, threads)))
    return sorted(result, key=lambda odd: odd.size)


def _quarrels(left: Mapping[int, float]) -> dict[tuple[int, int], float]:
    """Answer the pairs of numbers of blocks that disagree, and by how much (logarithm of the ratio)."""
    result = {
        (few, many): max(_over(left[few], left[many]), _over(left[many], left[few], many / few))
        for few in left
        for many in left
        if few < many
    }
    return {pair: off for pair, off in result.items() if off > 0}


def _over(count: float, other: float, times: float = 1.0) -> float:
    """By how much a count lies above so many times another, beyond what is tolerated."""
    return math.log(count / (max(other, 1.0) * times)) if count - SAMPLES > FACTOR * times * (other + SAMPLES) else 0.0


def _blamed(quarrels: Mapping[tuple[int, int], float], left: Mapping[int, float]) -> tuple[int, ...]:
    """Answer the cell that is wrong, or both of a pair of which one is."""
    times = Counter(blocks for pair in quarrels for blocks in pair)
    most = max(times.values())
    worst = [blocks for blocks, number in times.items() if number == most]
    if len(worst) == 1:
        return (worst[0],)
    pair = max((quarrel for quarrel in quarrels if set(quarrel) & set(worst)), key=lambda quarrel: quarrels[quarrel])
    agreed = {blocks: count for blocks, count in left.items() if blocks not in times}
    off = tuple(blocks for blocks in pair if _off_line(blocks, left[blocks], agreed))
    return off if len(off) == 1 else pair


def _off_line(blocks: int, count: float, others: Mapping[int, float]) -> bool:
    """Whether a count lies beside the line through the others, with logarithms on both axes.

    The line is flat while launches take longest and then bends upwards to in proportion, nowhere down: between two others a cell lies below
    their chord, and beyond two of them it lies above where these lead.
    """
    below, above = sorted(number for number in others if number < blocks), sorted(number for number in others if number > blocks)
    here, at = math.log(blocks), {number: (math.log(number), math.log(max(value, 1.0))) for number, value in others.items()}
    for near, far in (*([below[:-3:-1]] if len(below) > 1 else []), *([above[:2]] if len(above) > 1 else [])):
        (x, y), (x_far, y_far) = at[near], at[far]
        if _over(math.exp(y + min(max((y - y_far) / (x - x_far), 0.0), 1.0) * (here - x)), count):
            return True
    if not (below and above):
        return False
    (x, y), (x_above, y_above) = at[below[-1]], at[above[0]]
    return bool(_over(count, math.exp(y + (y_above - y) / (x_above - x) * (here - x))))


def _between(blocks: int, others: Mapping[int, float]) -> tuple[float | None, float | None]:
    """Answer what its neighbours leave a cell: as long as the smaller one at least, as the larger one at most, and by proportion."""
    below, above = (
        max((number for number in others if number < blocks), default=None),
        min((number for number in others if number > blocks), default=None),
    )
    least = [others[below] - SAMPLES] if below is not None else []
    most = [(others[below] + SAMPLES) * blocks / below] if below is not None else []
    least += [(others[above] - SAMPLES) * blocks / above] if above is not None else []
    most += [others[above] + SAMPLES] if above is not None else []
    low, high = max(least, default=None), min(most, default=None)
    return (low, high) if low is None or high is None or low <= high else (high, low)


def uneven(cells: Sequence[GridCell]) -> list[Uneven]:
    """Find cells one of whose logs ended long before the other."""
    result = []
    for cell in cells:
        counts = {log.source: len(log) for log in cell.logs}
        if len(counts) > 1 and min(counts.values()) < SHORT * max(counts.values()):
            result.append(Uneven(cell.place, counts))
    return result


def launches_differ(cells: Sequence[GridCell]) -> dict[Size, float]:
    """Answer the cells that say they launched another number of kernels than most did; none where no number is most cells'."""
    known = {cell.size: cell.work.launches for cell in cells if cell.work.launches is not None}
    if not known:
        return {}
    usual, times = Counter(known.values()).most_common(1)[0]
    return {size: count for size, count in sorted(known.items()) if count != usual} if 2 * times > len(known) else {}


def nothing_ran(cells: Sequence[GridCell]) -> list[GridCell]:
    """Find cells in which no sample shows any work."""
    return [cell for cell in cells if idle(cell)[1] == 0]
