"""From a pilot to a plan: the number of blocks needed to find an effect, and the time.

The unit is the block, as in every verdict: the scatter of its log ratio determines the number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from analysis.checks import different_data
from analysis.compare import ONE_RUN, compare, without_guards
from analysis.stats.power import FEWEST, blocks_needed, pair_spread, spread_interval
from analysis.terms import Cell, Comparison, Metric, Refused, Run
from control.t_test import ALPHA, POWER, detectable_gain

DAY_S = 86_400  # machines are rarely exclusive, or stable, for longer


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal: a gain (a fraction) and power; `blocks` to report the detectable effect for."""

    gain: float
    power: float = POWER
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """The needs of one workload.

    `log_sd`: spread of the log ratio of an arm and the `baseline` in a block, over all arms, with
    `df` degrees of freedom; `aa_log_sd`: of pairs that changed nothing, the machine's own noise,
    None without such a pair. `alpha` is the level of the hardest of `family` contrasts (Holm's
    first step). `blocks_low` and `blocks_high` bound `blocks` by the uncertainty of the spread (95
    %); None is beyond 100,000. `mde`: smallest gain found with the goal's power in `mde_blocks`.
    `block_s`: time of this workload's cells in one block.
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

    @property
    def total_s(self) -> float | None:
        """Return the time of all blocks; infinite for more than 100,000."""
        return self.block_s and self.block_s * (self.blocks or math.inf)


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """The needs of a run for its goal; `unplanned`: workloads without a plan, with reasons."""

    goal: Goal
    needs: tuple[Need, ...]
    unplanned: tuple[tuple[str, str], ...]

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
        """Return whether the goal is within reach in a day, as far as block times are recorded."""
        return self.blocks is not None and (self.total_s or 0.0) <= DAY_S

    @property
    def seen_in_a_day(self) -> float | None:
        """Return the smallest gain detectable in a day; None below 3 blocks or without times."""
        blocks = int(DAY_S / self.block_s) if self.block_s else 0
        if blocks < FEWEST:
            return None
        return max(
            detectable_gain(need.log_sd, blocks, need.alpha, self.goal.power) for need in self.needs
        )


def plan(pilot: Run, goal: Goal) -> SamplePlan:
    """Plan a run from a pilot with the same workloads, tweak sets and machine.

    Raises: Refused, if the pilot has no contrast with replicates: its noise is then unknown.
    """
    if pilot.is_switched:
        raise Refused(
            f"{pilot.origin}: nothing to plan from: settings were alternated inside processes, so "
            "the variation between processes is unknown. Use a pilot with whole runs "
            "(--design=matrix); this run's detectable effect is in the MDE column of `compare`."
        )
    places: dict[tuple[str, str], list[Comparison]] = {}
    for one in compare(pilot):
        places.setdefault((one.study, one.workload), []).append(one)
    needs, unplanned = [], []
    for (_, workload), own in places.items():
        usable = [one for one in own if one.primary is not None]
        if usable:
            needs.append(_need(pilot, usable, goal))
        else:
            unplanned.append((workload, own[0].reason))
    if not needs:
        reason = "only its baseline was measured"
        if not pilot.replicated:
            reason = ONE_RUN
        elif unplanned:
            reason = ": ".join(unplanned[0]).rstrip(".")
        few = len({cell.block for cell in pilot.cells if cell.outcome == "measured"}) < FEWEST
        more = f" A pilot needs {FEWEST} blocks or more (`--blocks={FEWEST}`)." if few else ""
        raise Refused(f"{pilot.origin}: nothing to plan from: {reason}.{more}")
    return SamplePlan(goal, tuple(needs), tuple(unplanned))


def _need(pilot: Run, usable: Sequence[Comparison], goal: Goal) -> Need:
    first = without_guards(usable)[0]
    stocks = first.baseline_arms or (first.baseline,)
    cells = _cells(pilot, first, stocks[0], {*stocks, *(one.tweakset for one in usable)})
    metric = first.primary_metric
    logs = [(cell.block, cell.tweakset, math.log(cell.metrics[metric.name])) for cell in cells]
    log_sd, df = pair_spread(logs)
    log_sd *= math.sqrt((1 + 1 / len(stocks)) / 2)  # 1/k of one arm's variance
    untouched = [one.primary.log_sd**2 for one in usable if one.untouched and one.primary]
    alpha = ALPHA / first.family
    blocks, fewest, most = (
        blocks_needed(spread, goal.gain, alpha, goal.power)
        for spread in (log_sd, *spread_interval(log_sd, df))
    )
    pilot_blocks = len({cell.block for cell in cells})
    mde_blocks = goal.blocks or pilot_blocks
    return Need(
        study=first.study,
        workload=first.workload,
        baseline=first.baseline,
        metric=metric,
        arms=len({cell.tweakset for cell in cells}),
        pilot_blocks=pilot_blocks,
        log_sd=log_sd,
        df=df,
        aa_log_sd=math.sqrt(fmean(untouched)) if untouched else None,
        family=first.family,
        alpha=alpha,
        blocks=blocks,
        blocks_low=fewest,
        blocks_high=most,
        mde_blocks=mde_blocks,
        mde=detectable_gain(log_sd, mde_blocks, alpha, goal.power),
        block_s=_block_s(cells),
    )


def _cells(pilot: Run, contrast: Comparison, stock: str, arms: set[str]) -> list[Cell]:
    own = [
        cell
        for cell in pilot.cells
        if (cell.study, cell.workload) == (contrast.study, contrast.workload)
        and cell.tweakset in arms
        and cell.outcome == "measured"
    ]
    base = {cell.block: cell for cell in own if cell.tweakset == stock}
    return [
        cell
        for cell in own
        if cell.metrics.get(contrast.primary_metric.name, 0.0) > 0
        and different_data(base.get(cell.block, cell), cell) is None
    ]


def _block_s(cells: Sequence[Cell]) -> float | None:
    by_arm: dict[str, list[float]] = {}
    for cell in cells:
        if cell.duration_s is None:
            return None
        by_arm.setdefault(cell.tweakset, []).append(cell.duration_s)
    return math.fsum(map(fmean, by_arm.values()))
