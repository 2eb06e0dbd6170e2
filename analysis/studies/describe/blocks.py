"""The part of a description where arms were repeated in blocks: noise between blocks against noise of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from analysis.printing import columns, measures, tiny, unit_of
from analysis.wording import probability, unsigned

from .once import RATES, beside, rates
from .sampled import averaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from .words import Described, Inside, Repeated

LEGEND = (
    ("±", "95 % interval of the arm's mean step time, from its blocks."),
    ("steps ±", "the same with steps taken for replicates: too narrow where cells differ, too wide where steps differ by design."),
    ("ICC", "share of the variance that steps of one cell have in common; it makes the variance of a mean so many times larger."),
    ("alarms", "how often a 5 % test over steps would call two equal arms different."),
    ("F p", "p of 'cells of this arm do not differ beyond their steps'."),
    ("ratio", "mean step time over the baseline's, not paired by block (Kalibera & Jones 2013); below 1 is faster."),
    RATES,
    ("lag-1", "correlation of neighbouring steps; 'worth' is what they amount to as independent ones (middle cell)."),
    ("unsettled", "cells whose first half differs from their second (KS p < 0.05); one in twenty does by chance."),
)


def parts(one: Described) -> Iterator[RenderableType]:
    """Write one workload with several cells an arm."""
    scale, unit = unit_of(arm.mean_s for arm in one.repeated)
    blocks, steps = _span(arm.blocks for arm in one.repeated), _span(arm.steps for arm in one.repeated)
    mine = {arm.tweakset: [cell for cell in one.cells if cell.tweakset == arm.tweakset] for arm in one.repeated}
    yield Text(f"{one.workload}: {blocks} blocks of {steps} steps, mean step time, {unit}", "bold")
    yield columns(
        ["\ntweak set", "mean\n[95 %]", "steps\n±", "\nICC", "variance\ntimes", "\nalarms", "\nF p", f"ratio to {one.baseline}\n[95 %]"],
        ([arm.tweakset, *_levels(arm, scale)] for arm in one.repeated),
    )
    yield Text("")
    yield columns(
        ["\ntweak set", "\nsamples/s", "mean of\nrates", "\nlag-1", "steps\nworth", "warm-up\nsteps", "\nunsettled"],
        ([arm.tweakset, *_habits(mine[arm.tweakset], arm)] for arm in one.repeated),
    )
    if one.friedman is not None:
        tested = f"χ² {one.friedman.chi2:.1f}, p {probability(one.friedman.p)}"
        over = f"{one.friedman.blocks} blocks × {one.friedman.arms} arms"
        yield Text("")
        yield Text(f"Do the arms differ at all, by their ranks of mean step time within blocks? Friedman over {over}: {tested}.")
    yield from beside([(name, averaged([cell.sampled for cell in cells])) for name, cells in mine.items()])


def _span(counts: Iterable[int]) -> str:
    ordered = sorted(set(counts))
    return str(ordered[0]) if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _levels(arm: Repeated, scale: float) -> list[str]:
    mean, half, naive = measures(arm.mean_s * scale, arm.half_width_s * scale, arm.naive_half_width_s * scale)
    return [
        f"{mean} ± {half}",
        f"± {naive}",
        f"{arm.icc:.2f}",
        f"{arm.design_effect:.1f}",
        unsigned(arm.naive_alarms),
        "" if arm.between_p is None else tiny(arm.between_p),
        "" if arm.ratio is None else f"{arm.ratio.ratio:.3f} [{arm.ratio.low:.3f}, {arm.ratio.high:.3f}]",
    ]


def _habits(cells: Sequence[Inside], arm: Repeated) -> list[str]:
    """An arm's cells by their middle one; its throughput over all of them."""
    return [
        *rates(cells),
        f"{_middle(cell.lag_1 for cell in cells):.2f}",
        f"{_middle(cell.effective_steps for cell in cells):.0f} of {arm.steps}",
        f"{_middle(cell.warmup_steps for cell in cells):.0f}",
        f"{arm.unsettled} of {arm.blocks}",
    ]


def _middle(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
