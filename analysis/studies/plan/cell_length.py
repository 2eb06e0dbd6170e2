"""Longer cells or more of them: where the time of a run buys the most precision (Kalibera & Jones 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.levels import best_repetitions, levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Cell


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
    lengths = {len(one) for one in times.values()}
    if len(durations) < len(cells) or len(times) < len(cells) or len(lengths) != 1 or min(lengths) < 2:
        return None
    (steps,) = lengths
    step_s = float(np.mean(list(times.values())))
    overhead_s = math.fsum(durations) / len(durations) - steps * step_s
    variances = [
        found
        for arm in sorted({cell.tweakset for cell in cells} - {baseline})
        if (found := _paired_variances(times, baseline, arm)) is not None
    ]
    if overhead_s <= 0 or not variances:
        return None
    within, of_means = (math.fsum(level) / len(level) for level in zip(*variances, strict=True))
    between = max(0.0, of_means - within / steps)

    def cost(length: float) -> float:
        """Time needed for a given precision."""
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
