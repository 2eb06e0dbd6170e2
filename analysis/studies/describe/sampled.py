"""What was sampled beside a cell, in the few numbers that describe it: energy a sample, GPU use, warming up, and how far training got.

Each is None where its column was not measured.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from analysis.summary import energy_j_per_sample, power_w

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.telemetry import Series
    from analysis.terms import Cell

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
    """Sum up what was sampled beside a measured cell: from its summary, and from its samples where they are at hand."""
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
    """Average each number over the cells that have it."""
    columns = {field.name: [value for one in cells if (value := getattr(one, field.name)) is not None] for field in fields(Sampled)}
    return Sampled(**{name: sum(values) / len(values) for name, values in columns.items() if values})


def _measured(series: Series, quantity: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Times since the first measured step and readings, shape (times,) and (GPUs, times); only times at which every GPU answered."""
    found = [values for name, values in series.columns.items() if re.fullmatch(rf"gpu\d+_{quantity}", name)]
    if not found:
        return None
    time_s, readings = np.array(series.time_s), np.array(found, float)  # None becomes NaN
    kept = ~np.isnan(readings).any(axis=0)
    start_s = series.time_s[0] if series.measured_from_s is None else series.measured_from_s
    kept &= time_s >= start_s
    if series.measured_to_s is not None:
        kept &= time_s <= series.measured_to_s
    return (time_s[kept] - start_s, readings[:, kept]) if kept.any() else None


def _full_share(series: Series) -> float | None:
    found = _measured(series, "util_percent")
    return None if found is None else float((found[1] >= FULL_PERCENT).mean())


def _warming(series: Series) -> tuple[float | None, float | None]:
    found = _measured(series, "temperature_c")
    if found is None:
        return None, None
    time_s, hottest = found[0], found[1].max(axis=0)
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
