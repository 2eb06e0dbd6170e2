"""Does a switch outlast its settle steps? The first half of the steps that count against the second, and the gain from step to step.

Both segments of a pair did the same work step by step, so their ratio at each place after the switch is a gain. What still acts from
before makes the gain smaller at first, in both segments of a pair; without it the gain has no trend, whatever drifts beside it.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.stats.signed_rank import signed_rank_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Cell

FEWEST_STEPS = 4  # a half of fewer than two is no half
FEWEST_PAIRS = 6  # of fewer no signed-rank test ever says less than 0.05


@dataclass(frozen=True, slots=True)
class CarryOver:
    """The typical gain in the first and in the second half of the segments, fractions, and whether they differ by more than chance.

    `p_halves` is of their difference, `p_place` of a steady change of the gain from step to step; `p` is the smaller of the two, doubled
    because two were tried.
    """

    early: float
    late: float
    p_halves: float
    p_place: float
    p: float


def carry_over(pairs: Sequence[tuple[Cell, Cell]]) -> CarryOver | None:
    """Test pairs of segments, the baseline's first; None where they are too few or too short.

    Two signed-rank tests over the pairs, which a stalled step here and there does not blind: of the difference between the halves' medians
    of the log gain, and of its slope over the steps. The middle step of an odd number belongs to neither half.
    """
    gains = [_step_gains(*pair) for pair in pairs]
    gains = [gain for gain in gains if len(gain) >= FEWEST_STEPS]
    if len(gains) < FEWEST_PAIRS or len({len(gain) for gain in gains}) > 1:
        return None
    half, middle = len(gains[0]) // 2, (len(gains[0]) - 1) / 2
    early, late = ([statistics.median(gain[part]) for gain in gains] for part in (slice(half), slice(-half, None)))
    p_halves = signed_rank_p([after - before for before, after in zip(early, late, strict=True)])
    p_place = signed_rank_p([math.fsum((at - middle) * gain for at, gain in enumerate(group)) for group in gains])
    return CarryOver(
        early=math.expm1(statistics.median(early)),
        late=math.expm1(statistics.median(late)),
        p_halves=p_halves,
        p_place=p_place,
        p=min(1.0, 2 * min(p_halves, p_place)),
    )


def _step_gains(result: Cell, under: Cell) -> list[float]:
    """Log of how many times faster each counted step was under the tweak set."""
    entry, other = (cell.steps.wall_s[cell.steps.warmup :] if cell.steps else () for cell in (result, under))
    return [math.log(before / after) for before, after in zip(entry, other, strict=True)]
