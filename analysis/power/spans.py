"""From where to where the partitions go that a model was fitted to: outside, its answer is a guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Partition


@dataclass(frozen=True, slots=True)
class Spans:
    """Smallest and largest share (percent) and batch (images) of a process, and the most processes at once."""

    shares: tuple[float, float]
    batches: tuple[int, int]
    processes: int


def spans_of(partitions: Sequence[Partition]) -> Spans:
    """Those of partitions, one or more."""
    shares = [share for one in partitions for share in one.shares]
    batches = [batch for one in partitions for batch in one.batches]
    return Spans((min(shares), max(shares)), (min(batches), max(batches)), max(len(one.shares) for one in partitions))
