"""The words of power-capped inference: what is set, what is predicted, what is asked for.

A GPU is shared by N processes of one model. Process i may use `shares[i]` percent of the streaming multiprocessors and works in batches of
`batches[i]` images; one clock of the multiprocessors and one of the memory hold for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Partition:
    """Shares in percent and batches in images, one of each per process, in order."""

    shares: tuple[float, ...]
    batches: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """A partition and the clocks it runs at, MHz."""

    partition: Partition
    sm_mhz: float
    mem_mhz: float


@dataclass(frozen=True, slots=True)
class Platform:
    """A GPU's supported clocks, ascending, those of the memory that are searched (best first), and where its anchors were taken."""

    name: str
    sm_mhz: tuple[float, ...]
    mem_mhz: tuple[float, ...]
    searched_mem_mhz: tuple[float, ...]
    anchor_mhz: float
    tdp_w: float


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be run: a model under a cap. `schedule` has (from this iteration on, cap); a fixed cap is ((0, cap),).

    Caps are in W, without watts in CPU seconds per second.
    """

    id: int
    gpu: str
    model: str
    dataset: str
    schedule: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Anchor:
    """What partitions give at the anchor clock, shape (partitions,): everything that does not depend on the clock.

    Utilisations are NVML's, percent of time; `throughput_images_per_s` and `dynamic_power_w` are those at the reference clock.
    """

    sm_util_percent: Floats
    mem_util_percent: Floats
    throughput_images_per_s: Floats
    dynamic_power_w: Floats


class Model(Protocol):
    """A model of one network on one GPU at one memory clock. Pure; vectorised."""

    @property
    def network(self) -> str:
        """Its name, as torchvision has it."""

    @property
    def gpu(self) -> str:
        """Of which GPU."""

    @property
    def mem_mhz(self) -> float:
        """At which memory clock."""

    @property
    def sm_range_mhz(self) -> tuple[float, float]:
        """The clocks within which it was fitted."""

    def anchor(self, partitions: Sequence[Partition]) -> Anchor:
        """What each partition gives at the anchor clock."""

    def throughput_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """All processes together. Shape: that of anchor's fields broadcast with `sm_mhz`, e.g. (partitions, 1) with (clocks,)."""

    def power_w(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """The board, static and dynamic, of the largest single reading. Shape as above."""
