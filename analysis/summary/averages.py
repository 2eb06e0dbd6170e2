"""Averages over the cells of an arm: all work / all time, never a mean of rates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analysis.terms import Cell


def throughput_samples_per_s(cells: Sequence[Cell]) -> float | None:
    """Take all measured samples of some cells over all their time; None where there is none: the file has none, or the steps overlap.

    Where a file keeps no steps the cells are taken to have done equal work: then the rate over all of it is their harmonic mean.
    """
    steps = [cell.steps for cell in cells if cell.steps is not None]
    if any(one.overlap for one in steps):
        return None
    if steps and len(steps) == len(cells):
        return sum(sum(one.samples[one.warmup :]) for one in steps) / math.fsum(s for one in steps for s in one.wall_s[one.warmup :])
    rates = [cell.metrics["throughput_samples_per_s"] for cell in cells if "throughput_samples_per_s" in cell.metrics]
    return len(rates) / math.fsum(1 / rate for rate in rates) if rates else None


def step_time_mean_s(cells: Sequence[Cell]) -> float | None:
    """Take the time of all measured steps over their number; where a file keeps no steps, the mean of the cells' means."""
    steps = [cell.steps for cell in cells if cell.steps is not None]
    if steps and len(steps) == len(cells):
        times = [s for one in steps for s in one.wall_s[one.warmup :]]
        return math.fsum(times) / len(times)
    means = [cell.metrics["step_time_mean_s"] for cell in cells if "step_time_mean_s" in cell.metrics]
    return math.fsum(means) / len(means) if means else None


def time_weighted(cells: Sequence[Cell], value_of: Callable[[Cell], float | None]) -> float | None:
    """Average what each cell has over its measured time; cells without it are left out, None where all are."""
    known = [(value, seconds) for cell in cells if (value := value_of(cell)) is not None and (seconds := measured_s(cell)) is not None]
    return math.fsum(value * seconds for value, seconds in known) / math.fsum(seconds for _, seconds in known) if known else None


def measured_s(cell: Cell) -> float | None:
    """Answer the time of a cell's measured steps, in seconds; None where it is not known. Steps that overlap last no longer than all."""
    if cell.steps is None or cell.steps.overlap:
        return cell.window_s[1] - cell.window_s[0] if cell.steps is not None and cell.window_s is not None else None
    return math.fsum(cell.steps.wall_s[cell.steps.warmup :])
