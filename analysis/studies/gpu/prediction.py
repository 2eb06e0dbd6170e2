"""What SMACT should be, from how many blocks there are: between b / (SMs × ⌈b / SMs⌉) and min(b, SMs) / SMs, times the duty.

The upper end holds where blocks that share an SM do not slow each other (few warps, which wait for their own results). The lower one holds
where they do, or wait for each other: of 133 full blocks on 132 SMs one SM has two, works twice as long as all others, and these have
nothing to do meanwhile. Seen so on an H200 (docs/gpu_metrics.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .bounds import limits
from .sampled import statistics
from .terms import MEDIAN, SMACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Cell, Chip, Size

NEAR = 0.02


@dataclass(frozen=True, slots=True)
class Predicted:
    """One cell's SMACT beside the range it should be in; all are means over its runs."""

    size: Size
    least: float
    most: float
    observed: float
    duty: float

    @property
    def off(self) -> float:
        """How far it is above the range, or below it (negative); 0 inside."""
        return max(self.observed - self.most, 0.0) + min(self.observed - self.least, 0.0)


@dataclass(frozen=True, slots=True)
class Predictions:
    """All cells whose duty is known, and how many of them are near their range."""

    cells: tuple[Predicted, ...]
    near: int
    missing: str | None = None


def predictions(cells: Sequence[Cell], chip: Chip) -> Predictions:
    """Set SMACT (median of the cell's samples) beside its prediction, where duty and SMs are known."""
    if chip.sms is None:
        return Predictions((), 0, chip.missing)
    pairs: dict[Size, list[tuple[float, float, float, float]]] = {}
    for cell in cells:
        most, observed, duty = limits(cell.size, chip), statistics(cell, SMACT).get(MEDIAN), cell.work.duty
        if most is not None and observed is not None and duty is not None:
            blocks = cell.size[0]
            least = blocks / (chip.sms * math.ceil(blocks / chip.sms))
            pairs.setdefault(cell.size, []).append((least * duty, most.smact * duty, observed, duty))
    if not pairs:
        return Predictions((), 0, "how long a kernel ran of the time between two launches was not recorded")
    result = [Predicted(size, *(float(one) for one in np.mean(each, axis=0))) for size, each in sorted(pairs.items())]
    return Predictions(tuple(result), sum(abs(predicted.off) <= NEAR for predicted in result))
