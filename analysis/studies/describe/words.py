"""The words of a description: one cell inside, an arm over its blocks, two runs side by side. Shares and changes are fractions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.stats.levels import Ratio
    from analysis.stats.ranks import RankTest, Shift
    from analysis.stats.within import Distance, Halves, Omnibus, Rank, Stall, Welch

    from .sampled import Sampled


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
