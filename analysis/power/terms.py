"""The words of power-capped inference: what is set, what is predicted, what is asked for.

A GPU is shared by N processes of one model. Process i may use `shares[i]` percent of the streaming multiprocessors and works in batches of
`batches[i]` images; one clock of the multiprocessors and one of the memory hold for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from analysis.plain import one_line
from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

WATTS, CPU_TIME = "W", "cpu_s_per_s"  # what a cap may be in: W, or CPU seconds per second where nothing measures power
SPOKEN = {CPU_TIME: "CPU s/s"}  # as pages write it, where that is not the unit's name
NAMED = {WATTS: "w", CPU_TIME: "cpu_s_per_s"}  # the end of a field's name in documents and files of tasks: cap_w, cap_cpu_s_per_s
CLOCK, THROTTLE = "sm_mhz", "throttle"  # what sets the pace: the clock, MHz, or the duty, 0 to 1


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

    Caps are in `cap_unit`: W, without watts CPU seconds per second.
    """

    id: int
    gpu: str
    model: str
    dataset: str
    schedule: tuple[tuple[int, float], ...]
    cap_unit: str = WATTS


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


def unit_of(*models: Model) -> str:
    """Answer the unit of what the models call power: W, unless they were fitted on a machine without a sensor of it."""
    return next((str(unit) for model in models if (unit := getattr(model, "cap_unit", None))), WATTS)


def pace_of(*models: Model) -> str:
    """Answer what the models call the clock: `sm_mhz`, or `throttle` where there was no clock to set."""
    return next((str(pace) for model in models if (pace := getattr(model, "clock", None))), CLOCK)


def must_be_in(cap_unit: str, models: Iterable[Model], whose: str) -> None:
    """Check that a cap and the models that are to keep it are in one unit; `whose` cap it is begins the sentence. Raises: Refused."""
    for model in models:
        unit = unit_of(model)
        if unit != cap_unit:
            known = f"is in {SPOKEN.get(unit, one_line(unit, 30))}" if unit in NAMED else "knows no power"
            name = f"{one_line(model.network)} on {one_line(model.gpu)}"
            mine = SPOKEN.get(cap_unit, one_line(cap_unit, 30))
            raise Refused(f"{whose} has a cap in {mine}; the model of {name} {known}: it cannot tell what keeps it.")
