"""The words of a report on power-capped inference: one iteration as it was told, one cell, one algorithm on one task, and what is said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from analysis.terms import Verdict

if TYPE_CHECKING:
    from analysis.stats.estimate import Estimate, Mean

WATT, ACTIVITY = "W", "cpu_s_per_s"
SIMULATED, NO_SENSOR = "simulated", "none"
ASTRAY = 0.02  # of a clock: more than one state of any GPU at the clocks that matter
Holds = Literal["yes", "no", "not shown", "no sensor"]


@dataclass(frozen=True, slots=True)
class Knobs:
    """What was set, or asked for: images of each process; MHz, W and a duty from 0 to 1 where there is such a knob."""

    batches: tuple[int, ...] = ()
    sm_mhz: float | None = None
    mem_mhz: float | None = None
    power_limit_w: float | None = None
    throttle: float | None = None


@dataclass(frozen=True, slots=True)
class Tenant:
    """One process in one iteration: images done, parts of batches too; latency of batches in ms, the share over the SLO. None: not told."""

    images: float
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    over_slo_share: float | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration: settings, then `measured_s` seconds of measurement. `cap` was in force then.

    `power_mean`, `power_max` and what is above the cap (seconds; unit times seconds; the longest stretch; the worst reading less the cap)
    are None without a sensor. `predicted_*` is what the decider expected of the settings it asked for: images/s, and the largest reading.
    `refused` are settings that could not be had, `lost` processes that ran out of memory or ended, a sentence each.
    """

    number: int
    cap: float
    measured_s: float
    throughput_images_per_s: float
    tenants: tuple[Tenant, ...]
    asked: Knobs
    actual: Knobs
    power_mean: float | None = None
    power_max: float | None = None
    energy_j: float | None = None
    above_cap_s: float | None = None
    above_102_s: float | None = None
    above_cap_unit_s: float | None = None
    above_cap_longest_s: float | None = None
    above_cap_worst: float | None = None
    decision_s: float | None = None
    predicted_images_per_s: float | None = None
    predicted_power: float | None = None
    refused: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def astray(self) -> bool:
        """Whether a clock was another than was asked for, though nobody refused it: a GPU that is hot, or at its limit, slows down."""
        pairs = ((self.asked.sm_mhz, self.actual.sm_mhz), (self.asked.mem_mhz, self.actual.mem_mhz))
        return not self.refused and any(
            asked is not None and actual is not None and abs(actual - asked) > ASTRAY * asked for asked, actual in pairs
        )

    @property
    def images(self) -> float:
        """Of all processes together."""
        return math.fsum(tenant.images for tenant in self.tenants)


@dataclass(frozen=True, slots=True)
class Capped:
    """One cell: one algorithm on one task in one block. `task` is what the run says of it, `again` marks the copy of the arm.

    `infeasible` is why from some iteration on no setting would keep the cap: what was set stayed.
    """

    id: str
    study: str
    group: str
    arm: str
    block: int
    order: int
    backend: str
    unit: str
    power_source: str
    iterations: tuple[Iteration, ...]
    task: Mapping[str, object] = field(default_factory=dict)
    again: bool = False
    infeasible: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Foretold:
    """Predicted against measured: median of predicted ÷ measured − 1, and of its size; `n` iterations that ran as asked."""

    what: str
    n: int
    bias: float
    error: float


@dataclass(frozen=True, slots=True)
class MeasuredAlgorithm:
    """One algorithm on one task. `means` are over blocks, by response; `most` the largest of all iterations; `against` the baseline.

    `verdict` is the house's word on throughput. `front`: no other arm has more images/s from as little power. `lost` says which cells
    have no figures and why: sentence → how many. `refused` and `crashed` count iterations by what was said of them: settings
    that could not be had and processes that ended; `infeasible` counts cells, by the cap that no setting keeps; `astray` iterations whose
    clock was another and not refused. `unread` is how many of the `n` blocks lack a figure that others have, or that a sensor was there to
    give: response → blocks. Such a block is in no mean of it, and while one lacks the share above 1.02 times the cap none is said held.
    """

    name: str
    n: int
    blocks: int
    verdict: Verdict
    reason: str
    holds: Holds
    means: Mapping[str, Mean]
    most: Mapping[str, float]
    against: Mapping[str, Estimate]
    mde: float | None = None
    front: bool = False
    foretold: tuple[Foretold, ...] = ()
    lost: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    crashed: Mapping[str, int] = field(default_factory=dict)
    infeasible: Mapping[str, int] = field(default_factory=dict)
    astray: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """One task on one back-end: what is compared with each other. `again` is the A/A: arms against their own copies.

    `label` is what sentences call it, `steady` how many iterations of a run count, and how many there are.
    """

    name: str
    label: str
    title: str
    caps: tuple[float, ...]
    slo_ms: float | None
    steady: tuple[int, int]
    arms: tuple[MeasuredAlgorithm, ...]
    again: Estimate


@dataclass(frozen=True, slots=True)
class AllTasks:
    """One arm on all tasks of a back-end: means of log-ratios, and of shares, over tasks in a block, then over blocks.

    What is against the baseline is of the `tasks` that both have, `above` and `holds` of all that the arm has; `lacking` of its blocks are
    without one of them, or without a reading there, and are not in `above`.
    """

    name: str
    tasks: int
    throughput: Estimate
    above: Mean | None
    holds: Holds
    held: tuple[int, int]
    above_against: Estimate
    lacking: int = 0


@dataclass(frozen=True, slots=True)
class PowerSide:
    """One back-end of one run: its tasks, and its arms on all of them together. `family` counts the contrasts that Holm adjusts for."""

    backend: str
    unit: str
    power_source: str
    baseline: str
    margin: float
    family: int
    groups: tuple[Group, ...]
    together: tuple[AllTasks, ...]
