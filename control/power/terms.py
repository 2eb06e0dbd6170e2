"""Data types of power-capped inference: settings, predictions, and questions.

A GPU is shared by N processes of one model. Process i may use `shares[i]` percent of the streaming
multiprocessors and works in batches of `batches[i]` images; one clock of the multiprocessors and
one of the memory hold for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal, Protocol, Self

from control.errors import Refused, one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# What a cap is a cap on: the draw, or, where nothing measures that, CPU seconds per second. The
# latter is never called power.
Unit = Literal["W", "cpu_s_per_s"]
Speed = Literal["sm_mhz", "throttle"]
WATTS: Unit = "W"
CPU_TIME: Unit = (
    "cpu_s_per_s"  # what a cap may be in: W, or CPU seconds per second where nothing measures power
)
# As pages write it, where that is not the unit's name.
SPOKEN: dict[str, str] = {CPU_TIME: "CPU s/s"}
# How names of fields end in documents and files of tasks: cap_w.
NAMED: dict[str, str] = {WATTS: "w", CPU_TIME: "cpu_s_per_s"}
LARGE = 1e300  # a whole number of four hundred digits fits into no float
# MHz, W or images: what no device has, and a thousandth of it still fits into what a driver takes
MOST = 1e6
CLOCK, THROTTLE = "sm_mhz", "throttle"  # what sets the pace: the clock, MHz, or the duty, 0 to 1


@dataclass(frozen=True, slots=True)
class Partition:
    """Shares in percent and batches in images, one of each per process, in order."""

    shares: tuple[float, ...]
    batches: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Clocks:
    """A partition and its clocks, in MHz."""

    partition: Partition
    sm_mhz: float
    mem_mhz: float


@dataclass(frozen=True, slots=True)
class Platform:
    """A GPU's supported clocks (ascending), memory clocks to search (best first), anchor clock.

    The driver's name for it has one of the parts `detect`.
    """

    name: str
    sm_mhz: tuple[float, ...]
    mem_mhz: tuple[float, ...]
    searched_mem_mhz: tuple[float, ...]
    anchor_mhz: float
    tdp_w: float
    detect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Anchor:
    """Results of partitions at the anchor clock, shape (partitions,).

    Utilisations are NVML's, percent of time; `throughput_images_per_s` and `dynamic_power_w` are
    those at the reference clock.
    """

    sm_util_percent: Floats
    mem_util_percent: Floats
    throughput_images_per_s: Floats
    dynamic_power_w: Floats

    def column(self) -> Self:
        """Return the same as shape (partitions, 1), to broadcast with clocks."""
        return replace(self, **{one.name: getattr(self, one.name)[:, None] for one in fields(self)})


class Model(Protocol):
    """Interface of a model of one network on one GPU at one memory clock; pure, vectorised.

    `network` is torchvision's name; the model was fitted to clocks within `sm_range_mhz`.
    """

    @property
    def network(self) -> str: ...

    @property
    def gpu(self) -> str: ...

    @property
    def mem_mhz(self) -> float: ...

    @property
    def sm_range_mhz(self) -> tuple[float, float]: ...

    def anchor(self, partitions: Sequence[Partition]) -> Anchor:
        """Return each partition's figures at the anchor clock."""

    def throughput_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """Return all processes' throughput. Shape: anchor's fields broadcast with `sm_mhz`."""

    def power_w(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """Return the board's highest power reading. Shape: as for throughput."""


def unit_of(*models: Model) -> str:
    """Return the unit of the models' power: W, unless fitted on a machine without a sensor."""
    return next(
        (str(unit) for model in models if (unit := getattr(model, "cap_unit", None))), WATTS
    )


def pace_of(*models: Model) -> str:
    """Return the models' name for the clock: `sm_mhz`, or `throttle`."""
    return next((str(pace) for model in models if (pace := getattr(model, "clock", None))), CLOCK)


def must_be_in(cap_unit: str, models: Iterable[Model], whose: str) -> None:
    """Check that a cap has its models' unit. Raises: Refused, beginning with `whose` cap it is."""
    for model in models:
        unit = unit_of(model)
        if unit != cap_unit:
            known = (
                f"is in {SPOKEN.get(unit, one_line(unit, 30))}" if unit in NAMED else "has no power"
            )
            name = f"{one_line(model.network)} on {one_line(model.gpu)}"
            mine = SPOKEN.get(cap_unit, one_line(cap_unit, 30))
            raise Refused(
                f"{whose} has a cap in {mine}, but the model of {name} {known}: it cannot be used "
                "for that cap."
            )


class Unsupported(Exception):
    """The algorithm needs something that the back-end or question lacks; the message names it."""


class Infeasible(Refused):
    """No setting keeps cap and latency; `smallest_cap` is the smallest feasible one, or None."""

    def __init__(self, text: str, smallest_cap: float | None) -> None:
        super().__init__(text)
        self.smallest_cap = smallest_cap


@dataclass(frozen=True, slots=True)
class Tenant:
    """A process: its share of the device in percent (100 without shares), and its batch."""

    share_percent: float
    batch: int


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; None leaves the machine's value.

    `throttle` replaces the clock where there is none to set.
    """

    tenants: tuple[Tenant, ...]
    sm_mhz: float | None = None
    mem_mhz: float | None = None
    power_limit_w: float | None = None
    throttle: float | None = None


@dataclass(frozen=True, slots=True)
class Knobs:
    """The knobs that a back-end can set; None or False if unavailable.

    Ladders ascend; `power_limit_w` is the least and the most.
    """

    shares: bool
    batches: tuple[int, ...]
    most_processes: int
    sm_mhz: tuple[float, ...] | None = None
    mem_mhz: tuple[float, ...] | None = None
    power_limit_w: tuple[float, float] | None = None
    throttle: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """The problem that an algorithm solves: what to run, under which cap, with which knobs.

    `caps` are (from this iteration on, cap). `models` reads the fitted models by memory clock, MHz,
    None where there are none; it is called by those that need them alone, and raises Refused.
    `margin` is to be kept below the cap in addition to what an algorithm keeps of itself. `slo_ms`
    bounds each tenant's latency, None where nothing does.
    """

    algorithm: str
    gpu: str
    model: str
    caps: tuple[tuple[int, float], ...]
    knobs: Knobs
    cap_unit: Unit = "W"
    shadow: bool = False
    models: Callable[[], Mapping[float, Model]] | None = None
    slo_ms: float | None = None
    margin: float = 0.0

    @property
    def cap(self) -> float:
        return self.caps[0][1]


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of an iteration; None for missing ones.

    `cap` is the one in force in the next iteration. `settings` are as they were, not as they were
    asked for; `refused` has a sentence for each that could not be had, beginning with its knob.
    Latencies are of one batch, a value per tenant (None: it finished none); `oom` are the indices
    of tenants whose batch did not fit into memory.
    """

    iteration: int
    cap: float
    settings: Settings
    throughput_images_per_s: float | None
    power_mean: float | None
    power_max: float | None
    refused: tuple[str, ...] = ()
    latency_ms: tuple[float | None, ...] = ()
    latency_p95_ms: tuple[float | None, ...] = ()
    oom: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Predicted:
    """A model's prediction: all tenants' images per second, power in the cap's unit."""

    throughput_images_per_s: float
    power_w: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The settings to apply next, and a short reason."""

    settings: Settings
    why: str
    predicted: Predicted | None = None


class Controller(Protocol):
    """Interface of an algorithm at work on a question.

    Asked in turn: `first` once, then `then` after every iteration.
    """

    def first(self) -> Decision:
        """Return the settings of the first iteration."""

    def then(self, seen: Seen) -> Decision:
        """Return the settings of the next iteration."""


def tenants_of(partition: Partition) -> tuple[Tenant, ...]:
    return tuple(
        Tenant(float(share), int(batch))
        for share, batch in zip(partition.shares, partition.batches, strict=True)
    )


def must_be_settable(settings: Settings) -> None:
    """Check that settings are valid on any back-end. Raises: Refused."""
    numbers = [("share_percent", tenant.share_percent, 100.0) for tenant in settings.tenants]
    numbers += [("batch", tenant.batch, MOST) for tenant in settings.tenants]
    numbers += [
        (name, value, MOST)
        for name in ("sm_mhz", "mem_mhz", "power_limit_w")
        if (value := getattr(settings, name)) is not None
    ]
    numbers += [] if settings.throttle is None else [("throttle", settings.throttle, 1.0)]
    for name, value, most in numbers:
        if not 0 < value <= most:
            raise Refused(
                f"These settings are invalid: {name} is {min(value, LARGE):g}, which is not above "
                f"0 and at most {most:g}."
            )
