"""What the gate says: a ruling on each contrast, and one word that follows from all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from analysis.terms import Comparison, Metric

Ruling = Literal["pass", "regression", "undecided"]


@dataclass(frozen=True, slots=True)
class Ruled:
    """What the gate says of one contrast in one metric.

    `limit` is the largest loss allowed, a fraction. `loss` and `loss_high` are the loss found and its one-sided 95 % upper
    bound (below 0 the candidate is better), None where nothing could be compared. `blocks_needed` is about how many blocks would decide,
    where more blocks can.
    """

    comparison: Comparison
    metric: Metric
    limit: float
    ruling: Ruling
    reason: str
    loss: float | None = None
    loss_high: float | None = None
    blocks_needed: int | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate's answer: every ruling, what was refused or warned of, and the one word that follows from all of them."""

    baseline: str
    candidate: str
    rulings: tuple[Ruled, ...]
    ruling: Ruling
    warnings: tuple[str, ...] = ()
