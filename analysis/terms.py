"""The words of the read side: what a saved run holds and what is said about it.

Frozen records without behaviour; every other file of `analysis` imports from here and this file imports from none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Better = Literal["lower", "higher"]
Outcome = Literal["measured", "failed", "skipped"]
Verdict = Literal["improved", "regressed", "equivalent", "inconclusive", "not comparable"]


class Refused(Exception):
    """The analysis cannot do what was asked; the message is one line: what, where, and what to do."""


class Unreadable(Refused):
    """A file is not a saved run, or it is damaged; nothing in it was used."""


class UnknownName(Refused):
    """A tweak set was named that the run does not have; the message lists those it has."""


class NotComparable(Exception):
    """Two arms must not be compared; the message is the reason, as it is printed under the table."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity; `name` carries the unit (`step_time_p10_s`), `better` its good direction."""

    name: str
    better: Better


@dataclass(frozen=True, slots=True)
class Study:
    """A question put before the run; `margin` is the equivalence margin as a fraction (0.03 is 3 %)."""

    name: str
    question: str
    margin: float
    blocks: int
    primary: Metric


@dataclass(frozen=True, slots=True)
class Workload:
    """What was run. `primary`, where given, takes the place of the study's."""

    name: str
    primary: Metric | None = None
    description: str = ""
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting a tweak set asks for, as written in its manifest. `kind` is sysctl, ulimit, service or boot."""

    kind: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class TweakSet:
    """A manifest that was measured; without settings and scripts it is the untouched machine."""

    name: str
    requested: tuple[Setting, ...] = ()
    scripts: int = 0
    description: str = ""
    path: str | None = None
    sha256: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Steps:
    """A cell's steps in time order, equally long columns; the first `warmup` of them are not measured."""

    wall_s: tuple[float, ...]
    samples: tuple[int, ...]
    tokens: tuple[int, ...] | None
    cpu_s: tuple[float, ...] | None
    warmup: int


@dataclass(frozen=True, slots=True)
class Applied:
    """What the kernel answered for one cell, by key: what was asked, found before, found in force, and found afterwards.

    `side_effects`: tunables that changed without being asked for by name (what scripts did), by path. `left_alone`: values that
    somebody else changed meanwhile and that were not put back, by path.
    """

    requested: Mapping[str, object]
    before: Mapping[str, object]
    observed: Mapping[str, object]
    restored: Mapping[str, object]
    already_in_force: frozenset[str] = frozenset()
    side_effects: Mapping[str, object] = field(default_factory=dict)
    left_alone: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """One workload under one tweak set in one block: the unit of replication.

    `steps`, `metrics` and `applied` are there exactly when `outcome` is "measured"; `reason` when it is not. `contradictions` say
    where the file's own metrics are not those of its steps.
    """

    id: str
    study: str
    workload: str
    tweakset: str
    block: int
    order: int
    outcome: Outcome
    reason: str | None = None
    steps: Steps | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    applied: Applied | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    limits: Mapping[str, object] = field(default_factory=dict)
    boot_id: str | None = None
    contradictions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Design:
    """How the cells were laid out in time: `order` lists cell ids as they ran."""

    seed: int
    blocks: int
    steps: int | None
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One saved run. `origin` says where it came from; `warnings` what the reader noticed and could live with."""

    origin: str
    run_id: str
    started_utc: str
    interrupted: bool
    studies: Mapping[str, Study]
    workloads: Mapping[str, Workload]
    tweaksets: Mapping[str, TweakSet]
    cells: tuple[Cell, ...]
    machine: Mapping[str, object]
    design: Design
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Effect:
    """How much better the candidate is than the baseline in one metric, from paired blocks.

    `gain` and the interval are fractions, above 0 where the candidate is better, whichever way the metric runs: a step time
    that falls to 1/1.25 of itself is a gain of 0.25 (a quarter more steps in the same time). `baseline` is the baseline's own
    value (geometric mean over the paired blocks, in the metric's unit). `log_sd` is the spread of the log ratio between blocks.
    `p` is two-sided and not adjusted. `p_equivalent` is the larger of the two one-sided p-values (TOST).
    """

    metric: Metric
    pairs: int
    baseline: float
    gain: float
    low: float
    high: float
    low90: float
    high90: float
    log_sd: float
    p: float
    p_equivalent: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One tweak set against the baseline under one workload, and what may be said of it.

    `primary` carries the verdict and was declared before the run; `second` stands beside it. Both are None where nothing could be
    compared. `pairs` counts the blocks complete in both arms, of `blocks` that were planned. `family` counts the contrasts `p_holm`
    is adjusted for; `mde` is the smallest gain this design would have called, after that adjustment, with 80 % probability.
    `untouched` is true where neither arm changed the machine (an A/A comparison).
    """

    study: str
    workload: str
    baseline: str
    tweakset: str
    verdict: Verdict
    reason: str
    blocks: int
    margin: float
    primary_metric: Metric
    pairs: int = 0
    primary: Effect | None = None
    second: Effect | None = None
    p_holm: float | None = None
    family: int = 0
    mde: float | None = None
    untouched: bool = False
    notes: tuple[str, ...] = ()
