"""What lies inside runs, cell by cell and arm by arm, and how one run differs from another. It describes runs; it judges no tweak.

Where each arm was run once, its steps are all there is: their spread, their memory, whether the run settled. Where arms were repeated in
blocks, what steps would make one believe stands beside what blocks show.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.levels import between_f, design_effect, half_width, icc, levels, naive_alarms, naive_half_width, ratio_interval
from analysis.stats.ranks import mann_whitney, shift
from analysis.stats.within import (
    autocorrelation,
    batch_half_width,
    block_bootstrap,
    block_length,
    detectable_within,
    effective_size,
    friedman,
    halves,
    kolmogorov_smirnov,
    median_interval,
    omnibus,
    stalls,
    warmup_steps,
    welch,
)
from analysis.telemetry import Missing, series_of

from .sampled import sampled
from .words import Described, Inside, Repeated, TwoRuns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from analysis.stats.levels import Levels
    from analysis.stats.within import Rank
    from analysis.telemetry import Series
    from analysis.terms import Cell, Run

QUANTILES = (0.05, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99)
FEWEST_STEPS = 4  # of which two halves can be compared
LEVEL = 0.05


def describe(run: Run) -> list[Described]:
    """Describe every workload of a run."""
    try:
        series = series_of(run)
    except Missing:
        series = {}
    return [_workload(run, name, series) for name in run.workloads if any(cell.workload == name for cell in run.cells)]


def _workload(run: Run, name: str, series: Mapping[str, Series]) -> Described:
    order = {tweakset: at for at, tweakset in enumerate(dict.fromkeys([run.baseline, *run.tweaksets]))}
    mine = sorted((cell for cell in run.cells if cell.workload == name), key=lambda cell: (order[cell.tweakset], cell.block))
    told = [cell for cell in mine if cell.steps is not None and len(_times(cell)) >= FEWEST_STEPS]
    inside = {cell.id: _inside(cell, series.get(cell.id)) for cell in told}
    # With one cell an arm there is nothing above the steps, and cells can only be set against each other.
    once = len({cell.tweakset for cell in told}) == len(told)
    base = next((cell for cell in told if once and cell.tweakset == run.baseline), None)
    return Described(
        workload=name,
        baseline=run.baseline,
        cells=tuple(inside.values()),
        repeated=() if once else tuple(_repeated(told, inside, run.baseline)),
        pairs=tuple(_two_runs(cell, base) for cell in told if cell is not base) if base else (),
        friedman=None if once else _friedman(inside.values()),
        omnibus=omnibus([_times(cell) for cell in told]) if once and len(told) > 1 else None,
        undescribed=tuple(f"{cell.id}: {_why_not(cell)}" for cell in mine if cell.id not in inside),
    )


def _times(cell: Cell) -> np.ndarray:
    return np.array(cell.steps.wall_s[cell.steps.warmup :] if cell.steps else ())


def _why_not(cell: Cell) -> str:
    if cell.outcome != "measured":
        return f"{cell.outcome}: {cell.reason}"
    return "its file keeps no steps" if cell.steps is None else f"fewer than {FEWEST_STEPS} measured steps"


def _friedman(cells: Iterable[Inside]) -> Rank | None:
    """Rank the arms within blocks by their mean step time; None where a block lacks an arm."""
    means: dict[int, dict[str, float]] = {}
    for cell in cells:
        means.setdefault(cell.block, {})[cell.tweakset] = cell.mean_s
    arms = sorted({arm for block in means.values() for arm in block})
    return (
        friedman([[block[arm] for arm in arms] for block in means.values()])
        if all(len(one) == len(arms) for one in means.values())
        else None
    )


def _inside(cell: Cell, series: Series | None) -> Inside:
    x = _times(cell)
    samples = np.array(cell.steps.samples[cell.steps.warmup :] if cell.steps else ())
    own_rates = [rate for rate in cell.series.get("samples_per_s", ()) if rate is not None]
    whole = _of_steps(cell, x, samples, own_rates, series)
    found = [] if cell.steps and cell.steps.overlap else stalls(x)  # jobs in a queue wait behind each other
    left = np.ones(len(x), bool)
    for one in found:
        left[one.first - 1 : one.first - 1 + one.steps] = False
    if not found or left.sum() < FEWEST_STEPS:
        return whole
    return replace(whole, stalls=tuple(found), without=_of_steps(cell, x[left], samples[left], [], series))


def _of_steps(cell: Cell, x: np.ndarray, samples: np.ndarray, own_rates: Sequence[float], series: Series | None) -> Inside:
    low_s, high_s = median_interval(x)
    overlap = cell.steps is not None and cell.steps.overlap
    return Inside(
        cell=cell.id,
        tweakset=cell.tweakset,
        block=cell.block,
        steps=len(x),
        mean_s=float(x.mean()),
        mean_half_width_s=batch_half_width(x),
        median_s=float(np.median(x)),
        median_low_s=low_s,
        median_high_s=high_s,
        cv=float(x.std(ddof=1) / x.mean()),
        quantiles_s=_quantiles(x),
        throughput_samples_per_s=None if overlap else float(samples.sum() / x.sum()),
        mean_of_rates_per_s=None if overlap else float(np.mean(own_rates or samples / x)),
        lag_1=float(autocorrelation(x)[1]),
        effective_steps=effective_size(x),
        warmup_steps=warmup_steps(x),
        halves=halves(x),
        detectable=detectable_within(x),
        sampled=sampled(cell, series),
    )


def _quantiles(x: np.ndarray) -> dict[str, float]:
    return {f"p{q * 100:g}": float(value) for q, value in zip(QUANTILES, np.quantile(x, QUANTILES), strict=True)}


def _repeated(cells: Sequence[Cell], inside: Mapping[str, Inside], baseline: str) -> Iterator[Repeated]:
    """Take each arm's blocks apart that had equally many steps; one block has nothing to be taken apart."""
    arms: dict[str, list[Cell]] = {}
    for cell in cells:
        arms.setdefault(cell.tweakset, []).append(cell)
    whole = {arm: mine for arm, mine in arms.items() if len(mine) > 1 and len({inside[cell.id].steps for cell in mine}) == 1}
    found = {arm: levels(np.array([_times(cell) for cell in mine])) for arm, mine in whole.items()}
    for arm, mine in whole.items():
        unsettled = sum(inside[cell.id].halves.ks_p < LEVEL for cell in mine)
        yield _taken_apart(arm, found, np.array([_times(cell) for cell in mine]), baseline, unsettled)


def _taken_apart(arm: str, found: Mapping[str, Levels], times: np.ndarray, baseline: str, unsettled: int) -> Repeated:
    mine, shared = found[arm], icc(found[arm])
    blocks, steps = times.shape
    f, p = between_f(mine) or (None, None)
    return Repeated(
        tweakset=arm,
        blocks=blocks,
        steps=steps,
        mean_s=mine.mean,
        half_width_s=half_width(mine),
        naive_half_width_s=naive_half_width(times),
        icc=shared,
        design_effect=design_effect(steps, shared),
        naive_alarms=naive_alarms(steps, shared),
        between_f=f,
        between_p=p,
        ratio=ratio_interval(found[baseline], mine) if baseline in found and arm != baseline else None,
        unsettled=unsettled,
    )


def _two_runs(one: Cell, other: Cell) -> TwoRuns:
    x, y = _times(one), _times(other)
    low_s, high_s = block_bootstrap(x, y, block_length(min(len(x), len(y))))
    before = _quantiles(y)
    return TwoRuns(
        tweakset=one.tweakset,
        against=other.tweakset,
        welch=welch(x, y),
        bootstrap_low_s=low_s,
        bootstrap_high_s=high_s,
        shift=shift(x, y),
        ranks=mann_whitney(x, y),
        ks=kolmogorov_smirnov(x, y),
        quantile_changes={name: value / before[name] - 1 for name, value in _quantiles(x).items()},
    )
