"""The results of monitoring overhead: what an arm costs, and what may be said of a workload.

Overheads are fractions of the arm without a monitor (0.013 is 1.3 % more), above 0 where the monitor costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from analysis.stats.estimate import Change
from analysis.terms import Verdict
from analysis.wording import LARGEST

if TYPE_CHECKING:
    from analysis.stats.estimate import Mean

State = Literal["quiet", "underpowered", "differs", "missing"]
FINE = 0.10  # an overhead below it has two decimals


def percent(fraction: float, decimals: int | None = None) -> str:
    if abs(fraction) >= LARGEST:
        return f"{fraction * 100:+.1e}"
    places = (2 if abs(fraction) < FINE else 1) if decimals is None else decimals
    return f"{round(fraction * 100, places) + 0.0:+.{places}f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadFigure(Change):
    """An overhead with its 95 % interval over `n` blocks; `p_equivalent` is that of its lying outside the margin."""

    p_equivalent: float | None = None

    @property
    def decimals(self) -> int:
        return 2 if max(abs(self.value), abs(self.low), abs(self.high)) < FINE else 1

    @property
    def amount(self) -> str:
        return f"{percent(self.value, self.decimals)} %"

    @property
    def ends(self) -> str:
        return f"[{percent(self.low, self.decimals)}, {percent(self.high, self.decimals)}]"

    @property
    def cell(self) -> str:
        """Both for a column whose head says percent: `+0.12 [-0.04, 0.43]`."""
        return f"{self.amount.removesuffix(' %')} {self.ends.replace('+', '')}"

    def __str__(self) -> str:
        return f"{self.amount} {self.ends}, n {self.n}"


@dataclass(frozen=True, slots=True)
class MonitorUse:
    """What the monitor itself took, over the blocks; None where it could not be told (`MonitoredArm.missing` says why).

    `core`: of one core, its processes' CPU seconds, those of its report included and of its start not, by the seconds at work, or all by
    their life where the start is not known apart (1 is a whole core); an inside monitor has none: it is in the workload's.
    The others are medians. `memory_bytes`: its own peak and what the workload's peak grew by. `start_s`: until it watches. `stop_s`: from
    the last step until it is gone. `outside_s`: what the whole process took longer outside its measured steps than without a monitor.
    """

    core: Mean | None = None
    cpu_s: float | None = None
    samples: float | None = None
    memory_bytes: float | None = None
    own_peak_bytes: float | None = None
    written_bytes: float | None = None
    start_s: float | None = None
    stop_s: float | None = None
    outside_s: float | None = None


class LoadRange(NamedTuple):
    """Mean, smallest and largest 1-minute load average of an arm's cells."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredArm:
    """One monitor under one workload, against none. `label` is its name in tables.

    `cpu` is of the measured steps (the primary metric), `wall` of their wall time, `total` of all CPU from the process's start to its exit,
    the monitor's own processes included, `energy` of what a meter read, `placebo` the primary metric against the placebo (inside monitors).
    `verdict` is the house's word after the A/A check, `said` what tables print, `reason` its sentence. `load` is the 1-minute load
    average: mean, smallest, largest. `lost` says which cells are missing and why: sentence → how many.
    """

    tweakset: str
    label: str
    base: str = ""
    kind: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    version: str | None = None
    rate_per_s: float | None = None
    n: int
    blocks: int
    verdict: Verdict
    said: str
    reason: str = ""
    cpu: OverheadFigure | None = None
    wall: OverheadFigure | None = None
    total: OverheadFigure | None = None
    energy: OverheadFigure | None = None
    placebo: OverheadFigure | None = None
    mde: float | None = None
    own: MonitorUse = field(default_factory=MonitorUse)
    load: LoadRange | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Control:
    """None against none again: `half` is half its 95 % interval. Only a quiet workload can show that a monitor costs nothing."""

    state: State
    figure: OverheadFigure | None
    half: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Overhead:
    """Everything that is said of one workload of one study; `base` is the primary metric without a monitor.

    `units` says what `n` counts: blocks, or what monitors took turns in.
    """

    study: str
    workload: str
    margin: float
    metric: str
    base: float | None
    family: int
    control: Control
    arms: tuple[MonitoredArm, ...]
    units: str = "blocks"
