"""From a pilot to a plan: how many blocks a run needs to find an effect, how long that takes, and where its time is best spent.

The unit is the block, as in every verdict: its log ratio of two arms scatters by so much, and that alone says how many are needed.
Longer cells or more of them is weighed as Kalibera & Jones (2013) do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.checks import different_data
from analysis.compare import compare
from analysis.stats.power import (
    FEWEST,
    blocks_factor,
    blocks_needed,
    expected_share,
    naive_type_i,
    obrien_fleming,
    pair_spread,
    pocock,
    spending,
    spread_interval,
)
from analysis.stats.within import best_repetitions, levels
from analysis.switched import is_switched
from analysis.terms import Cell, Comparison, Metric, Refused, Run
from analysis.verdict import ONE_RUN, without_guards
from control.t_test import ALPHA, POWER, detectable_gain

DAY_S = 86_400  # nobody has a machine to himself for longer, and no machine stays the same for longer


@dataclass(frozen=True, slots=True)
class Goal:
    """What the run to come shall find: a gain (a fraction) with this power. `blocks` are those whose detectable effect is asked for."""

    gain: float
    power: float = POWER
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """What one workload needs.

    `log_sd`: spread of the log ratio of an arm and the `baseline` in a block, over all arms, of `df` degrees
    of freedom; `aa_log_sd`: of pairs that changed nothing, the machine's own noise, None without such a pair.
    `alpha` is what the hardest of `family` contrasts is held to (Holm's first step). `blocks_low` and
    `blocks_high` bound `blocks` as far as the spread is known (95 %); None is beyond 100,000.
    `mde`: smallest gain found with the goal's power with `mde_blocks`. `block_s`: time of this workload's cells in one block.
    """

    study: str
    workload: str
    baseline: str
    metric: Metric
    arms: int
    pilot_blocks: int
    log_sd: float
    df: int
    aa_log_sd: float | None
    family: int
    alpha: float
    blocks: int | None
    blocks_low: int | None
    blocks_high: int | None
    mde_blocks: int
    mde: float
    block_s: float | None
    cell_length: CellLength | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run needs to reach its goal. `unplanned` says of workloads why nothing can be planned for them."""

    goal: Goal
    needs: tuple[Need, ...]
    unplanned: tuple[str, ...]

    @property
    def blocks(self) -> int | None:
        blocks = [need.blocks for need in self.needs]
        return None if None in blocks else max(filter(None, blocks))

    @property
    def block_s(self) -> float | None:
        times = [need.block_s for need in self.needs]
        return None if None in times else math.fsum(filter(None, times))

    @property
    def total_s(self) -> float | None:
        return None if self.blocks is None or self.block_s is None else self.blocks * self.block_s

    @property
    def days(self) -> float | None:
        return None if self.total_s is None else self.total_s / DAY_S

    @property
    def on_this_machine(self) -> bool:
        """Whether the goal is one for this machine: within a day, as far as the pilot says how long blocks take."""
        return self.blocks is not None and (self.total_s or 0.0) <= DAY_S

    @property
    def seen_in_a_day(self) -> float | None:
        """The smallest gain that a day of blocks sees under every workload; None of fewer than 3, or where their time is not known."""
        blocks = int(DAY_S / self.block_s) if self.block_s else 0
        gains = [detectable_gain(need.log_sd, blocks, need.alpha, self.goal.power) for need in self.needs] if blocks >= FEWEST else []
        return max(gains, default=None)


def plan(pilot: Run, goal: Goal) -> Plan:
    """Plan a run from a pilot of the same workloads, tweak sets and machine.

    Raises: Refused, where the pilot holds no contrast with replicates: the noise between runs is then not known.
    """
    if is_switched(pilot):
        raise Refused(
            f"{pilot.origin}: nothing to plan from: its settings were alternated inside processes, and how far two processes differ is not "
            "known. A pilot is of whole runs (--design=matrix); what this one could have seen is in the MDE column of `compare`."
        )
    comparisons = compare(pilot)
    needs, unplanned = [], []
    for study, workload in dict.fromkeys((comparison.study, comparison.workload) for comparison in comparisons):
        own = [comparison for comparison in comparisons if (comparison.study, comparison.workload) == (study, workload)]
        usable = [comparison for comparison in own if comparison.primary is not None]
        if usable:
            needs.append(_need(pilot, usable, goal))
        else:
            unplanned.append(f"{workload}: {own[0].reason}")
    if not needs:
        reason = ONE_RUN if not pilot.replicated else unplanned[0].rstrip(".") if unplanned else "nothing beside its baseline was measured"
        raise Refused(f"{pilot.origin}: nothing to plan from: {reason}. A pilot needs 3 blocks or more (`--blocks=3`).")
    return Plan(goal, tuple(needs), tuple(unplanned))


def _need(pilot: Run, usable: Sequence[Comparison], goal: Goal) -> Need:
    first = without_guards(usable)[0]
    stocks = first.baseline_arms or (first.baseline,)
    cells = _cells(pilot, first, stocks[0], {*stocks, *(comparison.tweakset for comparison in usable)})
    log_sd, df = pair_spread([(cell.block, cell.tweakset, math.log(cell.metrics[first.primary_metric.name])) for cell in cells])
    log_sd *= math.sqrt((1 + 1 / len(stocks)) / 2)  # the mean of k arms varies by a k-th of one's
    untouched = [comparison.primary for comparison in usable if comparison.untouched and comparison.primary]
    alpha = ALPHA / first.family
    low, high = spread_interval(log_sd, df)
    pilot_blocks = len({cell.block for cell in cells})
    mde_blocks = goal.blocks or pilot_blocks
    return Need(
        study=first.study,
        workload=first.workload,
        baseline=first.baseline,
        metric=first.primary_metric,
        arms=len({cell.tweakset for cell in cells}),
        pilot_blocks=pilot_blocks,
        log_sd=log_sd,
        df=df,
        aa_log_sd=math.sqrt(sum(effect.log_sd**2 for effect in untouched) / len(untouched)) if untouched else None,
        family=first.family,
        alpha=alpha,
        blocks=blocks_needed(log_sd, goal.gain, alpha, goal.power),
        blocks_low=blocks_needed(low, goal.gain, alpha, goal.power),
        blocks_high=blocks_needed(high, goal.gain, alpha, goal.power),
        mde_blocks=mde_blocks,
        mde=detectable_gain(log_sd, mde_blocks, alpha, goal.power),
        block_s=_block_s(cells),
        cell_length=cell_length(cells, stocks[0]),
    )


def _cells(pilot: Run, contrast: Comparison, stock: str, arms: set[str]) -> list[Cell]:
    own = [
        cell
        for cell in pilot.cells
        if (cell.study, cell.workload) == (contrast.study, contrast.workload) and cell.tweakset in arms and cell.outcome == "measured"
    ]
    base = {cell.block: cell for cell in own if cell.tweakset == stock}
    return [
        cell
        for cell in own
        if cell.metrics.get(contrast.primary_metric.name, 0.0) > 0 and different_data(base.get(cell.block, cell), cell) is None
    ]


def _block_s(cells: Sequence[Cell]) -> float | None:
    """Seconds that one cell of each arm takes together, on average."""
    by_arm: dict[str, list[float]] = {}
    for cell in cells:
        if cell.duration_s is None:
            return None
        by_arm.setdefault(cell.tweakset, []).append(cell.duration_s)
    return math.fsum(math.fsum(times) / len(times) for times in by_arm.values())


@dataclass(frozen=True, slots=True)
class CellLength:
    """Steps a cell against more cells, for the difference of mean step times.

    `steps` are measured now, each takes `step_s`; everything else of a cell takes `overhead_s`. `best_steps` give the narrowest
    interval for a given time; None where blocks add no noise of their own, so that no cell is too long. `saved` is the share of the
    time they save at equal precision. `between_share` is the share of a block's variance that no number of steps reduces.
    """

    steps: int
    step_s: float
    overhead_s: float
    best_steps: int | None
    saved: float
    between_share: float


def cell_length(cells: Sequence[Cell], baseline: str) -> CellLength | None:
    """Weigh the noise between blocks against that of steps, and the cost of a cell against that of a step.

    Steps are paired: a block's arms work on the same samples, so only what differs between them step by step is noise. None where
    cells keep no steps or no duration, have not equally many steps, or fewer than two blocks.
    """
    times = {(cell.tweakset, cell.block): np.array(cell.steps.wall_s[cell.steps.warmup :]) for cell in cells if cell.steps is not None}
    durations = [cell.duration_s for cell in cells if cell.duration_s is not None]
    lengths = {len(time) for time in times.values()}
    if len(durations) < len(cells) or len(times) < len(cells) or len(lengths) != 1 or min(lengths) < 2:
        return None
    (steps,) = lengths
    step_s = float(np.mean(list(times.values())))
    overhead_s = math.fsum(durations) / len(durations) - steps * step_s
    variances = [
        result
        for arm in sorted({cell.tweakset for cell in cells} - {baseline})
        if (result := _paired_variances(times, baseline, arm)) is not None
    ]
    if overhead_s <= 0 or not variances:
        return None
    within, of_means = (math.fsum(level) / len(level) for level in zip(*variances, strict=True))
    between = max(0.0, of_means - within / steps)

    def cost(length: float) -> float:
        return (overhead_s / length + step_s) * (between * length + within) if math.isfinite(length) else step_s * within

    (best,) = best_repetitions((within, between), (step_s, overhead_s))
    return CellLength(
        steps=steps,
        step_s=step_s,
        overhead_s=overhead_s,
        best_steps=math.ceil(best) if math.isfinite(best) else None,
        saved=1 - cost(best) / cost(steps),
        between_share=between / of_means,
    )


def _paired_variances(times: dict[tuple[str, int], np.ndarray], baseline: str, arm: str) -> tuple[float, ...] | None:
    """S_1² and S_2² of one arm's steps minus the baseline's, as shares of the baseline's mean step; None of fewer than two blocks."""
    both = sorted(block for name, block in times if name == arm and (baseline, block) in times)
    if len(both) < 2:
        return None
    base = np.array([times[baseline, block] for block in both])
    return levels((np.array([times[arm, block] for block in both]) - base) / base.mean()).s2


RULES = {"O'Brien-Fleming": obrien_fleming, "Lan-DeMets": spending, "Pocock": pocock}


@dataclass(frozen=True, slots=True)
class PlanRule:
    """One way to divide the level among the looks.

    At each look, after so many `blocks`, a difference is called where the unadjusted paired p of its contrast is below `p` (|z| above
    `z`); the run may stop once all are called. `expected_blocks` are run on average for a contrast with the effect planned for.
    """

    name: str
    blocks: tuple[int, ...]
    z: tuple[float, ...]
    p: tuple[float, ...]
    expected_blocks: float


@dataclass(frozen=True, slots=True)
class Looks:
    """A plan to look several times. `naive` is how often equals are called different at 5 % when each look is taken for the only one."""

    looks: int
    alpha: float
    naive: float
    rules: tuple[PlanRule, ...]


def looks_of(looks: int, blocks: int, alpha: float, power: float) -> Looks:
    """Plan equally spaced looks for one contrast held to `alpha`; one look at the end would need so many `blocks`.

    Bounds are those of z, applied to the p-value of each look's t-test: with 3 blocks a look and more that keeps the level.

    Raises: Refused, where the first look would come before 3 blocks.
    """
    if looks < 2:
        raise Refused(f"--looks {looks}: one look at the end is what a run without it has; give 2 or more.")
    if blocks < FEWEST * looks:
        raise Refused(
            f"--looks {looks}: with {FEWEST} blocks between looks at most {blocks // FEWEST} fit into the {blocks} blocks needed."
        )
    rules = []
    for name, bounds_of in RULES.items():
        bounds = bounds_of(looks, alpha)
        last = math.ceil(blocks * blocks_factor(bounds, alpha, power))
        at = tuple(math.ceil(last * look / looks) for look in range(1, looks + 1))
        p = tuple(math.erfc(z / math.sqrt(2)) for z in bounds)
        rules.append(PlanRule(name, at, tuple(bounds), p, last * expected_share(bounds, alpha, power)))
    return Looks(looks, alpha, naive_type_i(looks, ALPHA), tuple(rules))
