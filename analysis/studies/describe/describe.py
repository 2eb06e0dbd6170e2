"""What lies inside runs, cell by cell and arm by arm, and how one run differs from another. It describes runs; it judges no tweak.

Where each arm was run once, its steps are all there is: their spread, their memory, whether the run settled. Where arms were repeated in
blocks, what steps would make one believe stands beside what blocks show. Shares and changes are fractions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from analysis.stats.ranks import RankTest, Shift, mann_whitney, shift
from analysis.stats.within import (
    Distance,
    Halves,
    Levels,
    Omnibus,
    Rank,
    Ratio,
    Stall,
    Welch,
    autocorrelation,
    batch_half_width,
    between_f,
    block_bootstrap,
    block_length,
    design_effect,
    detectable_within,
    effective_size,
    friedman,
    half_width,
    halves,
    icc,
    kolmogorov_smirnov,
    levels,
    median_interval,
    naive_alarms,
    naive_half_width,
    omnibus,
    ratio_interval,
    stalls,
    warmup_steps,
    welch,
)
from analysis.summary import energy_j_per_sample, power_w
from analysis.telemetry import Missing, Series, series_of
from analysis.terms import Cell, Run


@dataclass(frozen=True, slots=True)
class Inside:
    """One cell's measured steps. Intervals are of this one run: they do not say how another of the same would turn out.

    `mean_half_width_s`: half the 95 % interval from 20 batch means, None of a run shorter than 40 steps. `mean_of_rates_per_s`, the mean of
    samples per second over steps, overstates the throughput and is shown to be recognised elsewhere; steps that overlap have neither.
    `lag_1` is the correlation of neighbouring steps, `effective_steps` what the steps are worth as independent ones, `warmup_steps` what
    should be left out at the start (MSER-5). `halves` are p-values of first against second half. `detectable`: smallest difference of two
    such runs' means that their steps could show, a fraction. `stalls` are where it stood still, `without` the same run less these steps.
    """

    cell: str
    tweakset: str
    block: int
    steps: int
    mean_s: float
    mean_half_width_s: float | None
    median_s: float
    median_low_s: float
    median_high_s: float
    cv: float
    quantiles_s: Mapping[str, float]
    throughput_samples_per_s: float | None
    mean_of_rates_per_s: float | None
    lag_1: float
    effective_steps: float
    warmup_steps: int
    halves: Halves
    detectable: float
    sampled: Sampled
    stalls: tuple[Stall, ...] = ()
    without: Inside | None = None


@dataclass(frozen=True, slots=True)
class Repeated:
    """An arm over its blocks. `mean_s` ± `half_width_s` is about the arm; ± `naive_half_width_s` takes steps for replicates.

    `icc` is the share of variance that steps of one cell have in common, `design_effect` how many times that inflates the variance of a
    mean, `naive_alarms` how often a 5 % test over steps would call two equal arms different. `between_f`, `between_p`: do cells
    differ beyond their steps? `ratio`: mean step time over the baseline's, unpaired (Kalibera & Jones), with its 95 % interval.
    `unsettled` counts cells whose halves differ (KS p < 0.05); of equals one in twenty does.
    """

    tweakset: str
    blocks: int
    steps: int
    mean_s: float
    half_width_s: float
    naive_half_width_s: float
    icc: float
    design_effect: float
    naive_alarms: float
    between_f: float | None
    between_p: float | None
    ratio: Ratio | None
    unsettled: int


@dataclass(frozen=True, slots=True)
class TwoRuns:
    """How the steps of one run differ from another's, in seconds, first minus second: about these two runs, not about what was set.

    `bootstrap_low_s` and `_high_s`: 95 % interval of the difference of means by blocks of neighbouring steps. `quantile_changes`: change of
    each quantile, a fraction.
    """

    tweakset: str
    against: str
    welch: Welch
    bootstrap_low_s: float
    bootstrap_high_s: float
    shift: Shift
    ranks: RankTest
    ks: Distance
    quantile_changes: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Described:
    """One workload of a run, the baseline's cells first.

    `repeated` is there where arms were run in several blocks of equally many steps, `pairs` where each was run once, each against the
    baseline; `omnibus` is over all of those, `friedman` over the arms of complete blocks. `undescribed` says why cells are missing.
    """

    workload: str
    baseline: str
    cells: tuple[Inside, ...]
    repeated: tuple[Repeated, ...]
    pairs: tuple[TwoRuns, ...]
    omnibus: Omnibus | None
    friedman: Rank | None
    undescribed: tuple[str, ...]


QUANTILES = (0.05, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99)
FEWEST_STEPS = 4  # of which two halves can be compared
LEVEL = 0.05


def describe(run: Run) -> list[Described]:
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
    means: dict[int, dict[str, float]] = {}
    for cell in cells:
        means.setdefault(cell.block, {})[cell.tweakset] = cell.mean_s
    arms = sorted({arm for block in means.values() for arm in block})
    return (
        friedman([[block[arm] for arm in arms] for block in means.values()])
        if all(len(record) == len(arms) for record in means.values())
        else None
    )


def _inside(cell: Cell, series: Series | None) -> Inside:
    x = _times(cell)
    samples = np.array(cell.steps.samples[cell.steps.warmup :] if cell.steps else ())
    own_rates = [rate for rate in cell.series.get("samples_per_s", ()) if rate is not None]
    whole = _of_steps(cell, x, samples, own_rates, series)
    result = [] if cell.steps and cell.steps.overlap else stalls(x)  # jobs in a queue wait behind each other
    left = np.ones(len(x), bool)
    for stall in result:
        left[stall.first - 1 : stall.first - 1 + stall.steps] = False
    if not result or left.sum() < FEWEST_STEPS:
        return whole
    return replace(whole, stalls=tuple(result), without=_of_steps(cell, x[left], samples[left], [], series))


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
    arms: dict[str, list[Cell]] = {}
    for cell in cells:
        arms.setdefault(cell.tweakset, []).append(cell)
    whole = {arm: mine for arm, mine in arms.items() if len(mine) > 1 and len({inside[cell.id].steps for cell in mine}) == 1}
    result = {arm: levels(np.array([_times(cell) for cell in mine])) for arm, mine in whole.items()}
    for arm, mine in whole.items():
        unsettled = sum(inside[cell.id].halves.ks_p < LEVEL for cell in mine)
        yield _taken_apart(arm, result, np.array([_times(cell) for cell in mine]), baseline, unsettled)


def _taken_apart(arm: str, result: Mapping[str, Levels], times: np.ndarray, baseline: str, unsettled: int) -> Repeated:
    mine, shared = result[arm], icc(result[arm])
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
        ratio=ratio_interval(result[baseline], mine) if baseline in result and arm != baseline else None,
        unsettled=unsettled,
    )


def _two_runs(cell: Cell, other: Cell) -> TwoRuns:
    x, y = _times(cell), _times(other)
    low_s, high_s = block_bootstrap(x, y, block_length(min(len(x), len(y))))
    before = _quantiles(y)
    return TwoRuns(
        tweakset=cell.tweakset,
        against=other.tweakset,
        welch=welch(x, y),
        bootstrap_low_s=low_s,
        bootstrap_high_s=high_s,
        shift=shift(x, y),
        ranks=mann_whitney(x, y),
        ks=kolmogorov_smirnov(x, y),
        quantile_changes={name: value / before[name] - 1 for name, value in _quantiles(x).items()},
    )


FULL_PERCENT = 100.0
WARM_C = 1.0  # as near as this to where the temperature ends up
FEWEST_LOGGED = 3
STRAIGHT = 1e-3  # relative: how far a learning rate may lie off the line


@dataclass(frozen=True, slots=True)
class Sampled:
    """Over the measured steps; of several GPUs energy and power are summed, use is averaged, the hottest counts.

    `gpu_full_share`: share of readings at 100 %. `gpu_warm_c`: the temperature it settles at (median of the second half), first come
    within 1 °C of after `gpu_warmup_s`. `scheduled_steps`: where a learning rate that falls in a straight line would reach 0: the
    length training was planned for.
    """

    energy_j_per_sample: float | None = None
    gpu_power_mean_w: float | None = None
    gpu_util_mean_percent: float | None = None
    gpu_full_share: float | None = None
    gpu_warm_c: float | None = None
    gpu_warmup_s: float | None = None
    scheduled_steps: float | None = None


def sampled(cell: Cell, series: Series | None) -> Sampled:
    use = [value for name, value in cell.telemetry.items() if re.fullmatch(r"gpu\d+_util_percent_mean", name)]
    full_share, warm_c, warmup_s = (None, None, None) if series is None else (_full_share(series), *_warming(series))
    return Sampled(
        energy_j_per_sample=energy_j_per_sample([cell]),
        gpu_power_mean_w=power_w(cell),
        gpu_util_mean_percent=sum(use) / len(use) if use else None,
        gpu_full_share=full_share,
        gpu_warm_c=warm_c,
        gpu_warmup_s=warmup_s,
        scheduled_steps=None if series is None else scheduled_steps(series.columns.get("learning_rate", ())),
    )


def averaged(cells: Sequence[Sampled]) -> Sampled:
    columns = {field.name: [value for cell in cells if (value := getattr(cell, field.name)) is not None] for field in fields(Sampled)}
    return Sampled(**{name: sum(values) / len(values) for name, values in columns.items() if values})


def _measured(series: Series, quantity: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Times since the first measured step and readings, shape (times,) and (GPUs, times); only times at which every GPU answered."""
    result = [values for name, values in series.columns.items() if re.fullmatch(rf"gpu\d+_{quantity}", name)]
    if not result:
        return None
    time_s, readings = np.array(series.time_s), np.array(result, float)  # None becomes NaN
    kept = ~np.isnan(readings).any(axis=0)
    start_s = series.time_s[0] if series.measured_from_s is None else series.measured_from_s
    kept &= time_s >= start_s
    if series.measured_to_s is not None:
        kept &= time_s <= series.measured_to_s
    return (time_s[kept] - start_s, readings[:, kept]) if kept.any() else None


def _full_share(series: Series) -> float | None:
    result = _measured(series, "util_percent")
    return None if result is None else float((result[1] >= FULL_PERCENT).mean())


def _warming(series: Series) -> tuple[float | None, float | None]:
    result = _measured(series, "temperature_c")
    if result is None:
        return None, None
    time_s, hottest = result[0], result[1].max(axis=0)
    warm = float(np.median(hottest[len(hottest) // 2 :]))
    return warm, float(time_s[np.argmax(np.abs(hottest - warm) <= WARM_C)])


def scheduled_steps(learning_rate: Sequence[float | None]) -> float | None:
    """Where a learning rate logged now and then comes to 0, in steps; None where it does not fall in a straight line.

    A value logged after step s is carried from row s (counted from 0) until the next one. Any two make a line; a third must lie on it.
    """
    logged = [(row, rate) for row, rate in enumerate(learning_rate) if rate is not None and (row == 0 or learning_rate[row - 1] != rate)]
    if len(logged) < FEWEST_LOGGED:
        return None
    (first, high), (last, low) = logged[0], logged[-1]
    slope = (low - high) / (last - first)
    on_line = all(abs(rate - high - slope * (row - first)) <= STRAIGHT * high for row, rate in logged)
    return first - high / slope if slope < 0 and on_line else None
