"""The words of a decision: what can be set, what was asked, what was seen, what is set next. Frozen, without behaviour.

A cap, a margin and power are in the `cap_unit` of the question: W where something measures power, else CPU seconds per second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from analysis.power.terms import Partition

Unit = Literal["W", "cpu_s_per_s"]
Speed = Literal["sm_mhz", "throttle"]


class Unsupported(Exception):
    """The algorithm needs what this back-end or this question lacks; the message says what."""


class Infeasible(Exception):
    """Nothing that can be set keeps cap and latency; `smallest_cap` is the smallest one that can be kept, None where none can."""

    def __init__(self, said: str, smallest_cap: float | None) -> None:
        super().__init__(said)
        self.smallest_cap = smallest_cap


@dataclass(frozen=True, slots=True)
class Tenant:
    """One process: its share of the device, percent (100 where shares cannot be set), and how many images it infers at a time."""

    share_percent: float
    batch: int


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be set; None is as the machine has it. `throttle` stands in the clock's place where there is none to set."""

    tenants: tuple[Tenant, ...]
    sm_mhz: float | None = None
    mem_mhz: float | None = None
    power_limit_w: float | None = None
    throttle: float | None = None


@dataclass(frozen=True, slots=True)
class Knobs:
    """What the back-end can set: None, or False, where it cannot. All ladders ascend; `power_limit_w` is the least and the most."""

    shares: bool
    batches: tuple[int, ...]
    most_processes: int
    sm_mhz: tuple[float, ...] | None = None
    mem_mhz: tuple[float, ...] | None = None
    power_limit_w: tuple[float, float] | None = None
    throttle: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be run, under which cap, with what.

    `caps` are (from this iteration on, cap). `parameters` is the path of the fitted models, None where there are none; `margin` is to be
    kept below the cap in addition to what an algorithm keeps of itself. `slo_ms` bounds each tenant's latency, None where nothing does.
    """

    algorithm: str
    gpu: str
    model: str
    caps: tuple[tuple[int, float], ...]
    knobs: Knobs
    cap_unit: Unit = "W"
    iterations: int = 60
    seed: int = 1
    shadow: bool = False
    parameters: str | None = None
    slo_ms: float | None = None
    margin: float = 0.0

    @property
    def cap(self) -> float:
        """The cap of the first iteration."""
        return self.caps[0][1]


@dataclass(frozen=True, slots=True)
class Seen:
    """What an iteration showed; None where nothing measured it.

    `cap` is the one in force in the next iteration. `settings` are as they were, not as they were asked for; `refused` has a sentence for
    each that could not be had, beginning with its knob. Latencies are of one batch, a value per tenant (None: it finished none); `oom` are
    the indices of tenants whose batch did not fit into memory.
    """

    iteration: int
    cap: float
    settings: Settings
    throughput_images_per_s: float | None
    power_mean: float | None
    power_max: float | None
    refused: tuple[str, ...] = ()
    sm_util_percent: float | None = None
    mem_util_percent: float | None = None
    latency_ms: tuple[float | None, ...] = ()
    latency_p95_ms: tuple[float | None, ...] = ()
    oom: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a model says of settings: all tenants' images per second, and the power in the cap's unit."""

    throughput_images_per_s: float
    power_w: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What to set next, and why, in a few words."""

    settings: Settings
    why: str
    predicted: Predicted | None = None


class Controller(Protocol):
    """An algorithm at work on one question. Asked in turn: `first` once, then `then` after every iteration."""

    def first(self) -> Decision:
        """What the first iteration runs with."""

    def then(self, seen: Seen) -> Decision:
        """What the next one runs with."""


def tenants_of(partition: Partition) -> tuple[Tenant, ...]:
    """The processes of a partition."""
    return tuple(Tenant(float(share), int(batch)) for share, batch in zip(partition.shares, partition.batches, strict=True))
