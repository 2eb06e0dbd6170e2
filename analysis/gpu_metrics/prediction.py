"""What SMACT should be: so many SMs as there are blocks, for as long as a kernel is there: min(b, SMs) / SMs × duty.

That holds of a kernel whose blocks all run from its first to its last moment. Where one must wait for another, the last ones run on few
SMs, and SMACT is less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .bounds import limits
from .relations import fitted
from .sampled import statistics
from .terms import MEDIAN, SMACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Cell, Chip, Size

NEAR = 0.02


@dataclass(frozen=True, slots=True)
class Predicted:
    """One cell's SMACT beside what it should be; both are means over its runs."""

    size: Size
    predicted: float
    observed: float
    duty: float


@dataclass(frozen=True, slots=True)
class Predictions:
    """All cells whose duty is known; `r2` is that of observed on predicted as they are, no line fitted."""

    cells: tuple[Predicted, ...]
    near: int
    r2: float | None
    slope: float | None
    missing: str | None = None


def predictions(cells: Sequence[Cell], chip: Chip) -> Predictions:
    """Set SMACT (median of the cell's samples) beside its prediction, where duty and SMs are known."""
    if chip.sms is None:
        return Predictions((), 0, None, None, chip.missing)
    pairs: dict[Size, list[tuple[float, float, float]]] = {}
    for cell in cells:
        most, observed, duty = limits(cell.size, chip), statistics(cell, SMACT).get(MEDIAN), cell.work.duty
        if most is not None and observed is not None and duty is not None:
            pairs.setdefault(cell.size, []).append((most.smact * duty, observed, duty))
    if not pairs:
        return Predictions((), 0, None, None, "how long a kernel ran of the time between two launches was not recorded")
    found = [Predicted(size, *(float(one) for one in np.mean(each, axis=0))) for size, each in sorted(pairs.items())]
    near = sum(abs(one.observed - one.predicted) <= NEAR for one in found)
    said, seen = np.array([one.predicted for one in found]), np.array([one.observed for one in found])
    line = fitted(list(said), list(seen))
    total = float(((seen - seen.mean()) ** 2).sum())
    r2 = 1 - float(((seen - said) ** 2).sum()) / total if total > 0 else None
    return Predictions(tuple(found), near, r2, None if isinstance(line, str) else line[0])
