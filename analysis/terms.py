"""The vocabulary of the read side: saved runs and conclusions about them, never written to.

`Cell` and `Comparison` occur by the ten thousand: frozen, each would take four times as long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from control import errors, words
from control.t_test import ALPHA

Factor = words.Factor
Metric = words.Metric
Outcome = words.Outcome
Verdict = Literal["improved", "regressed", "equivalent", "inconclusive", "not comparable"]

STOCK, AGAIN = "stock", "stock-again"  # the machine as found, and a second such arm

Refused = errors.Refused
Unreadable = errors.Unreadable
UnknownName = errors.UnknownName


class NotComparable(Exception):
    """Two arms must not be compared; the message is the reason, printed below the table."""


@dataclass(frozen=True, slots=True)
class SavedStudy:
    """A question posed before the run; `margin` is the equivalence margin, a fraction (0.03: 3 %).

    `baseline` names untouched arms that were declared to form the baseline; empty if there is one.
    """

    name: str
    question: str
    margin: float
    blocks: int
    primary: Metric
    baseline: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedWorkload:
    """A workload; `primary`, if given, replaces the study's; `command`: that of `deeptweak run`."""

    name: str
    primary: Metric | None = None
    description: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    command: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setting:
    kind: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class SavedTweakSet:
    """A measured manifest, or a `monitor` in its place; without either, the untouched machine.

    `level_of`: the column that is compared instead of tweak sets (`arm_column`).
    """

    name: str
    requested: tuple[Setting, ...] = ()
    scripts: int = 0
    description: str = ""
    path: str | None = None
    sha256: str | None = None
    warnings: tuple[str, ...] = ()
    monitor: str = ""
    level_of: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    """A cell's steps in the order of their ends; the first `warmup` are not measured.

    Jobs that wait `overlap`.
    """

    wall_s: tuple[float, ...]
    samples: tuple[int, ...]
    tokens: tuple[int, ...] | None
    cpu_s: tuple[float, ...] | None
    warmup: int
    overlap: bool = False
    rate_per_s: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class AppliedKeys:
    """Values of one cell by key: requested, before the cell, in force during it, and after it.

    `side_effects`: tunables by path that changed unasked; `by_scripts`: those that scripts wrote,
        None if unrecorded. `left_alone`: values by path that other programs set, so they were not
        restored.
    """

    requested: Mapping[str, object]
    before: Mapping[str, object]
    observed: Mapping[str, object]
    restored: Mapping[str, object]
    already_in_force: frozenset[str] = frozenset()
    side_effects: Mapping[str, object] = field(default_factory=dict)
    by_scripts: tuple[str, ...] | None = None
    left_alone: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Cell:
    """One workload under one tweak set in one block: the unit of replication.

    `metrics` exist exactly if `outcome` is "measured", `reason` if it is not; `steps` and `applied`
    likewise, except in other tools' files. `telemetry`: by column and statistic, over the measured
    steps; `series`: whole columns. `window_s`: of the measured steps, on the clock of the telemetry
    file. `contradictions`: saved metrics that disagree with the steps. `segments`: with alternated
    settings, cells of both arms, two per pair, whose `process` is its block. `slices_s`,
    `slice_starts_s`, `others_cpu_s`: per round of cells that took turns. `pooled`: the untouched
    cells that it stands for. `report`: the workload's own rows by name; `reading`: what its study
    read there.
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
    applied: AppliedKeys | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    limits: Mapping[str, object] = field(default_factory=dict)
    boot_id: str | None = None
    contradictions: tuple[str, ...] = ()
    started_utc: str | None = None
    duration_s: float | None = None
    window_s: tuple[float, float] | None = None
    environment: Mapping[str, object] = field(default_factory=dict)
    telemetry: Mapping[str, float] = field(default_factory=dict)
    telemetry_missing: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    segments: tuple[Cell, ...] = ()
    slices_s: tuple[tuple[float, ...], ...] = ()
    others_cpu_s: tuple[float | None, ...] = ()
    slice_starts_s: tuple[float, ...] = ()
    pooled: tuple[Cell, ...] = ()
    process: int | None = None
    node: str | None = None
    report: Mapping[str, tuple[Mapping[str, object], ...]] = field(default_factory=dict)
    monitor: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    reading: object = None


@dataclass(frozen=True, slots=True)
class DesignPoint:
    """A tweak set's point in a design: a level for every factor of the decomposed tweak set."""

    tweakset: str
    levels: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Design:
    """The layout of cells: `order` lists cell ids as they ran, `kind` names the `--design`.

    `points` are by tweak set, without stock. With a `budget_s`, as many cells were measured as
    fitted.
    """

    seed: int
    blocks: int
    steps: int | None
    order: tuple[str, ...]
    kind: str = "matrix"
    factors: tuple[Factor, ...] = ()
    points: Mapping[str, DesignPoint] = field(default_factory=dict)
    notes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    budget_s: float | None = None

    def blocks_of(self, study: str, workload: str, tweakset: str) -> int:
        """Return how many blocks an arm was planned to have; a budget may give workloads fewer."""
        head = f"{study}/{workload}-{tweakset}-b"
        numbers = (
            [text.removeprefix(head) for text in self.order if text.startswith(head)]
            if self.budget_s
            else []
        )
        own = max(
            (int(number) for number in numbers if re.fullmatch("[1-9][0-9]{0,8}", number)),
            default=self.blocks,
        )
        return min(own, self.blocks)


@dataclass(frozen=True, slots=True)
class Run:
    """One saved run. `origin` is its source; `warnings` are problems that the reader tolerated.

    `replicated` is false for formats without blocks: such a run is one cell per arm. `commit` ends
    in `+dirty` if the source was edited. `place`: where cells ran on a cluster. `left_out`: a
    sentence per benchmark without usable times. `by_place`: workloads that only their place in the
    file tells apart.
    """

    origin: str
    run_id: str
    started_utc: str
    interrupted: bool
    studies: Mapping[str, SavedStudy]
    workloads: Mapping[str, SavedWorkload]
    tweaksets: Mapping[str, SavedTweakSet]
    cells: tuple[Cell, ...]
    machine: Mapping[str, object]
    design: Design
    warnings: tuple[str, ...] = ()
    format: str = "deeptweak"
    baseline: str = "stock"
    replicated: bool = True
    commit: str | None = None
    telemetry_file: Mapping[str, object] = field(default_factory=dict)
    place: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    by_place: frozenset[str] = frozenset()

    @property
    def is_switched(self) -> bool:
        return any(cell.segments for cell in self.cells)

    @property
    def lacks_baseline(self) -> bool:
        """Return whether cells were measured, but none of the baseline."""
        measured = {cell.tweakset for cell in self.cells if cell.outcome == "measured"}
        return bool(measured) and self.baseline not in measured and not self.is_switched

    @property
    def is_monitored(self) -> bool:
        """Return whether the run compares cells with a monitor, or with and without one."""
        return any(cell.monitor for cell in self.cells) or any(
            tweakset.monitor for tweakset in self.tweaksets.values()
        )


@dataclass(frozen=True, slots=True)
class Effect:
    """The gain of the candidate over the baseline in one metric.

    metric: `name`, the `better` direction (`lower` or `higher`), and the `unit` of a rate reported
        by a program, else empty
    design: `paired` by block, `switched` within processes (pairs of segments, or processes), or
        `two-sample` (no common blocks)
    n_baseline, n_candidate: units (blocks, or runs) in each arm
    baseline: the baseline's geometric mean, in the metric's unit
    gain, low, high, low90, high90: above 0 is better, whichever way the metric runs (a step time
        that falls to 1/1.25 is a gain of 0.25); 95 % interval, and the 90 % interval, which lies
        inside the margin if the verdict is `equivalent`
    log_sd, log_se, df: spread of the log ratio between pairs, or of log values between the units of
        an arm (pooled); standard error of the log gain; its degrees of freedom. For runs at
        different times, log_sd is the spread at which independent runs would be equally uncertain
    p, p_equivalent: two-sided, not adjusted; the larger of the two one-sided p-values against the
        margin (TOST)
    values_baseline, values_candidate: the underlying values, one per unit, in the metric's unit
    """

    metric: Metric
    n_baseline: int
    n_candidate: int
    baseline: float
    gain: float
    low: float
    high: float
    low90: float
    high90: float
    log_sd: float
    log_se: float
    df: float
    p: float
    p_equivalent: float
    values_baseline: tuple[float, ...]
    values_candidate: tuple[float, ...]
    design: Literal["paired", "switched", "two-sample"] = "paired"


@dataclass(slots=True)
class Comparison:
    """One tweak set against the baseline under one workload, with the conclusion.

    study, workload, baseline, tweakset: what was compared
    baseline_run, candidate_run: the arms' sources
    baseline_arms: the untouched arms that form the baseline, if there are several
    guard: whether this is the contrast between those arms, in no family and judged by its own p
    level_of: the column of the levels in baseline and tweakset (`--arm`), empty for tweak sets
    verdict, reason, notes: the word, the sentence that justifies it, further remarks
    primary_metric: the metric declared before the run, on which the verdict rests; the `metric` of
        an effect
    primary, second, others: effects in the primary metric, the other summary, and further requested
        metrics; absent if nothing could be compared
    pairs, blocks, failed: blocks complete in both arms, of those planned (runs, if several hold
        both arms); failed cells
    p_adjusted, adjustment, family: p after the adjustment, its rule, and the number of contrasts
    mde, margin: the smallest effect detected, after the adjustment, with 80 % probability; the
        equivalence margin
    observed, observed_baseline: one run against one: the ratio as a gain, without an interval, and
        the baseline's value
    untouched: neither arm changed the machine or ran a monitor (A/A)
    relative_to: the tweak set whose cells all values were divided by
    processes, carry_over: with `--design=switch`, the number of processes with alternated settings,
        else 0; the gain in the first half of the segments, in the second, and the p of their
        difference
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
    failed: int = 0
    primary: Effect | None = None
    second: Effect | None = None
    others: tuple[Effect, ...] = ()
    p_adjusted: float | None = None
    adjustment: str = "holm"
    family: int = 0
    mde: float | None = None
    observed: float | None = None
    observed_baseline: float | None = None
    untouched: bool = False
    notes: tuple[str, ...] = ()
    baseline_run: str = ""
    candidate_run: str = ""
    relative_to: str | None = None
    processes: int = 0
    carry_over: tuple[float, float, float] | None = None
    baseline_arms: tuple[str, ...] = ()
    guard: bool = False
    level_of: str = ""

    @property
    def outlasts(self) -> bool:
        """Return whether the state before a switch affects counted steps; never true in an A/A."""
        over = self.carry_over
        return over is not None and over[2] < ALPHA and not self.untouched
