"""What a model sees of a partition: its tenants one by one, and five numbers about all of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from control.power.terms import Floats, Partition

COLUMNS = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """Tenants of many partitions, flat: shape (tenants,), the first tenant of each partition in `first` (partitions,).

    `columns` (partitions, 5): means of ln share and ln batch, ln of the number of tenants, and the spreads (sd) of the first two,
    which are 0 wherever all tenants are alike.
    """

    shares: Floats
    batches: Floats
    first: NDArray[np.intp]
    columns: Floats

    def total(self, of_tenants: Floats) -> Floats:
        """Sum over each partition's tenants. Shape: (tenants,) to (partitions,)."""
        return np.add.reduceat(of_tenants, self.first)


def see(partitions: Sequence[Partition]) -> Seen:
    """Take the partitions apart; there must be at least one, with at least one tenant each."""
    counts = np.array([len(one.shares) for one in partitions], dtype=np.intp)
    shares = np.fromiter(chain.from_iterable(one.shares for one in partitions), dtype=np.float64)
    batches = np.fromiter(chain.from_iterable(one.batches for one in partitions), dtype=np.float64)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
    share_mean, share_sd = _moments(np.log(shares), first, counts)
    batch_mean, batch_sd = _moments(np.log(batches), first, counts)
    columns = np.column_stack([share_mean, np.log(counts), batch_mean, share_sd, batch_sd])
    return Seen(shares, batches, first, columns)


def _moments(values: Floats, first: NDArray[np.intp], counts: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Mean and population sd of each partition's tenants."""
    mean = np.add.reduceat(values, first) / counts
    spread = np.add.reduceat((values - np.repeat(mean, counts)) ** 2, first) / counts
    return mean, np.sqrt(spread)
