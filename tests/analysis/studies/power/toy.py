"""A toy network's model, known to the last digit, so that searches can be checked otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from control.power.terms import Anchor, Partition, Platform

if TYPE_CHECKING:
    from control.power.terms import Floats

GPU = Platform(
    "toy",
    tuple(map(float, range(210, 2101, 15))),
    (5001.0, 9501.0),
    (9501.0, 5001.0),
    anchor_mhz=1950.0,
    tdp_w=350.0,
)


@dataclass(frozen=True, slots=True)
class Toy:
    """Processes fill the GPU by share, large batches better; faster memory costs more power.

    `falling`: power falls with the clock instead. `likes` adds that many images/s where processes
        differ. `partitions`, where given, are those that were profiled.
    """

    mem_mhz: float = 5001.0
    partitions: tuple[Partition, ...] = ()
    network: str = "none"
    gpu: str = "toy"
    sm_range_mhz: tuple[float, float] = (210.0, 1950.0)
    idle_w: float = 60.0
    falling: bool = False
    likes: float = 0.0

    def anchor(self, partitions: Sequence[Partition]) -> Anchor:
        """Shape (partitions,)."""
        busy = np.array(
            [
                sum(p * b / (b + 8) for p, b in zip(one.shares, one.batches, strict=True))
                for one in partitions
            ]
        )
        mixed = np.array(
            [len(set(zip(one.shares, one.batches, strict=True))) - 1 for one in partitions]
        )
        faster = 1 + self.mem_mhz / 20_000
        throughput = (
            20 * busy**0.9 * faster
            - 2 * np.array([len(one.shares) for one in partitions])
            + self.likes * mixed
        )
        return Anchor(np.minimum(busy, 100.0), busy * 0.8, throughput, 1.5 * busy * faster)

    def throughput_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """In proportion to the root of the clock."""
        return anchor.throughput_images_per_s * np.sqrt(sm_mhz / 1950)

    def power_w(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """Idle power and memory, and the rest by the clock to 1.3."""
        return (
            self.idle_w
            + self.mem_mhz / 500
            + anchor.dynamic_power_w * (sm_mhz / 1950) ** (-0.3 if self.falling else 1.3)
        )


def by_memory(*models: Toy) -> dict[float, Toy]:
    """The models as a search takes them."""
    return {one.mem_mhz: one for one in models}


def partition(*processes: tuple[float, int]) -> Partition:
    """A partition from (share, batch) pairs."""
    return Partition(tuple(share for share, _ in processes), tuple(batch for _, batch in processes))
