"""The words of the read side: what a saved run holds and what is said about it.

Records without behaviour, which nobody writes to; every other file of `analysis` imports from here and this file imports from
none of them. `Cell` and `Comparison` come by ten thousands and have 30 fields: frozen, each would take four times as long to make.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from control import errors, words

Better = words.Better
Outcome = words.Outcome
Verdict = Literal["improved", "regressed", "equivalent", "inconclusive", "not comparable"]

STOCK, AGAIN = "stock", "stock-again"  # the machine as it was found, and once more

Refused = errors.Refused
Unreadable = errors.Unreadable
UnknownName = errors.UnknownName


class NotComparable(Exception):
    """Two arms must not be compared; the message is the reason, as it is printed under the table."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity; `unit` says of what a rate is so much per second, where its name does not: `B`, `requests`."""

    name: str
    better: Better
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """A question put before the run; `margin` is the equivalence margin as a fraction (0.03 is 3 %).

    `baseline` names the untouched arms that were declared to be the baseline together; empty where it is one.
    """

    name: str
    question: str
    margin: float
    blocks: int
    primary: Metric
    baseline: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """What was run. `primary`, where given, takes the place of the study's. `command` is that of `deeptweak run`, of its workload alone."""

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
class TweakSet:
    """A manifest that was measured, or a `monitor` in its place; with nothing at all it is the untouched machine.

    `level_of` is the column of which it is a level, where something else than a tweak set is compared (`arm_column`).
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
    """A cell's steps in the order of their ends, equally long columns; the first `warmup` are not measured. Jobs that wait `overlap`."""

    wall_s: tuple[float, ...]
    samples: tuple[int, ...]
    tokens: tuple[int, ...] | None
    cpu_s: tuple[float, ...] | None
    warmup: int
    overlap: bool = False
    rate_per_s: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What the kernel answered for one cell, by key: what was asked, found before, found in force, and found afterwards.

    `side_effects`: tunables that changed unasked, by path; `by_scripts` those of them that scripts wrote, None where that is not kept.
    `left_alone`: values of somebody else's, not put back, by path.
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

    `metrics` are there exactly when `outcome` is "measured", `reason` when it is not; `steps` and `applied` too, but for files of
    other tools that do not keep them. `telemetry` is column and statistic → value over the measured steps (`docs/reference/run.md`);
    `series` holds whole columns by name where the format keeps them in the run itself (see `telemetry.series_of`), None where a
    value is missing. `window_s` is when the first measured step began and the last ended, on the clock of the telemetry file.
    `contradictions` say where the file's metrics are not those of its steps. A process whose settings were alternated has `segments`,
    cells of tweak set and baseline, two a pair, whose `process` is its block; its steps and metrics are those under the tweak set.
    One that took turns with others of its block has `slices_s`, the times of its steps in each round, `slice_starts_s`, when each began, on
    the clock of `window_s`, and `others_cpu_s`, the CPU time that others used meanwhile, None where that was not seen.
    One that stands for several untouched cells of its block has them in `pooled`, and means of their metrics.
    `report` is what the workload told beside its steps: name → all of it, in order; `monitor` and `usage`, where monitors were measured,
    are what that cost and what the whole process used. `reading` is what the study of its report read in that, once.
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
class Factor:
    """One setting of a tweak set that a design varied. `levels` begin with None, the machine as it was found.

    `kind` is that of a setting, or script (a shellscript package as a whole, called `script:<package>`).
    """

    tweakset: str
    name: str
    kind: str
    levels: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """What a tweak set stands for in a design: a level for every factor of the tweak set that was taken apart."""

    tweakset: str
    levels: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Design:
    """How the cells were laid out: `order` lists cell ids as they ran, `kind` is the name of the design (`--design`).

    `points` are by tweak set, without stock, where every factor is as found. `notes` are what the design of a tweak set said of itself
    (generators, aliases). All are empty for a matrix. With a `budget_s` as many were measured as it had room for.
    """

    seed: int
    blocks: int
    steps: int | None
    order: tuple[str, ...]
    kind: str = "matrix"
    factors: tuple[Factor, ...] = ()
    points: Mapping[str, Point] = field(default_factory=dict)
    notes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    budget_s: float | None = None

    def blocks_of(self, study: str, workload: str, tweakset: str) -> int:
        """How many blocks an arm was to have: in a budget not every workload has the same number. All, for what `order` does not name."""
        head = f"{study}/{workload}-{tweakset}-b"
        numbers = [text.removeprefix(head) for text in self.order if text.startswith(head)] if self.budget_s else []
        own = max((int(number) for number in numbers if re.fullmatch("[1-9][0-9]{0,8}", number)), default=self.blocks)
        return min(own, self.blocks)


@dataclass(frozen=True, slots=True)
class Run:
    """One saved run. `origin` says where it came from; `warnings` what the reader noticed and could live with.

    `format` names the file of `formats/` that read it. `baseline` is the tweak set the others are compared with. `replicated` is
    false for formats of other tools that know no blocks: a run of theirs is one cell an arm and never carries a verdict alone.
    `commit` is the source revision that was measured, `+dirty` where it was edited, None where unknown. `place` says where cells ran if
    that was not the harness's own machine: target, nodes, and by whom and as what (`apply`, `workload_via`, `image`). `left_out` has a
    sentence for each benchmark of another tool's file that holds no usable times; the warnings have it too. `by_place` are the workloads
    that only their place in the file tells from others of their name: no other file's can be known to be the same.
    """

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
        """Whether settings were alternated inside processes."""
        return any(cell.segments for cell in self.cells)

    @property
    def is_monitored(self) -> bool:
        """Whether any cell has a monitor, or has none beside others that have."""
        return any(cell.monitor for cell in self.cells) or any(tweakset.monitor for tweakset in self.tweaksets.values())


@dataclass(frozen=True, slots=True)
class Effect:
    """How much better the candidate is than the baseline in one metric.

    metric: `name`, which way is `better` (`lower` or `higher`), and the `unit` of a rate that a program told, empty elsewhere
    design: `paired` by block, `switched` inside processes (pairs of segments, or processes), or `two-sample` (no common blocks)
    n_baseline, n_candidate: units (blocks, or runs) in each arm
    baseline: the baseline's geometric mean, in the metric's unit
    gain, low, high, low90, high90: above 0 is better, whichever way the metric runs (a step time that falls to 1/1.25 of itself
        is a gain of 0.25); 95 % interval, and the 90 % interval, which lies inside the margin where the verdict is `equivalent`
    log_sd, log_se, df: spread of the log ratio between pairs, or of log values between the units of an arm (pooled); standard error
        of the log gain; its degrees of freedom. Of runs at different times log_sd is the spread at which independent ones would
        leave as much open
    p, p_equivalent: two-sided, not adjusted; the larger of the two one-sided p-values against the margin (TOST)
    values_baseline, values_candidate: the values it was made of, one a unit, in the metric's unit
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
    """One tweak set against the baseline under one workload, and what may be said of it.

    study, workload, baseline, tweakset: what was compared
    baseline_run, candidate_run: where the arms came from
    baseline_arms: the untouched arms that are the baseline together, where there are several
    guard: whether this is the contrast between those arms, in no family and judged by its own p
    level_of: the column of which baseline and tweak set are levels (`--arm`), empty where they are tweak sets
    verdict, reason, notes: the word, the sentence that justifies it, what to know besides
    primary_metric: the metric declared before the run, on which the verdict stands; as `metric` of an effect
    primary, second, others: effects in the primary metric, in the other summary, in further metrics that were asked for;
        absent where nothing could be compared
    pairs, blocks, failed: blocks complete in both arms, of those planned (runs, where several hold both arms); cells that broke
    p_adjusted, adjustment, family: p after the adjustment, by which rule, for how many contrasts
    mde, margin: the smallest gain or loss that would have been called, after the adjustment, 4 times in 5; the equivalence margin
    observed, observed_baseline: one run against one: the ratio as a gain, without an interval, and the baseline's value
    untouched: neither arm changed the machine or ran a monitor (A/A)
    relative_to: the tweak set whose cells all values were divided by
    processes, carry_over: with `--design=switch`, in how many processes settings took turns, else 0; the gain in the first half of
        the segments, in the second, and the p of their difference
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
