"""The original's curves for throughput and power: images per percent of memory utilisation, and what the clock makes of both."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from control.power.models.curves import PowerCurve, ThroughputCurve, static_w

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from control.power.terms import Floats

    from .material import Point

BUCKETS = (8, 16, 32, 64, 128)
NEAR, FEWEST = (0.8, 1.2), 5
GAMMA_T, GAMMA_P = (0.1, 2.0), (1.0, 5.0)


def slopes_by_batch(batch: Floats, mem_percent: Floats, throughput: Floats) -> dict[int, float]:
    """Images/s per percent of memory utilisation: through the origin, of each bucket of mean batch with five rows or more."""
    found = {}
    for bucket in BUCKETS:
        there = (batch >= NEAR[0] * bucket) & (batch <= NEAR[1] * bucket)
        if there.sum() >= FEWEST:
            found[bucket] = float(mem_percent[there] @ throughput[there] / (mem_percent[there] @ mem_percent[there]))
    return found


def kappa_line(slopes: Mapping[int, float]) -> tuple[float, float]:
    """κ_a and κ_b of κ = κ_a·ln b + κ_b; with fewer than two buckets the slope itself."""
    if len(slopes) < 2:
        return 0.0, next(iter(slopes.values()), float("nan"))
    kappa_a, kappa_b = np.polyfit(np.log(list(slopes)), list(slopes.values()), 1)
    return float(kappa_a), float(kappa_b)


def throughput_curve(series: Iterable[Sequence[Point]], kappa: tuple[float, float], low: float, high: float) -> ThroughputCurve:
    """The exponent, the median over partitions, and the start, the lowest throughput of all; each partition's points run over the clock."""
    series = list(series)
    start = min(point.throughput_images_per_s for points in series for point in points)
    gammas = []
    for points in series:
        top = max(points, key=lambda point: point.clock).throughput_images_per_s
        slope = _slope(
            np.array([_position(point.clock, low, high) for point in points]),
            np.array([(point.throughput_images_per_s - start) / (top - start) if top > start else 0.0 for point in points]),
        )
        if slope is not None:
            gammas.append(float(np.clip(slope, *GAMMA_T)))
    return ThroughputCurve(*kappa, float(np.median(gammas)) if gammas else float("nan"), start, low, high)


def power_curve(series: Iterable[Sequence[Point]], static: Sequence[tuple[float, float]], low: float, high: float) -> PowerCurve:
    """The cubic of static power, and exponent and base of dynamic power, from its median over partitions at each clock."""
    clocks, watts = np.array(static, dtype=np.float64).T
    cubic = np.polyfit(clocks / high, watts, 3) / high ** np.array([3.0, 2.0, 1.0, 0.0])
    idle = (float(cubic[0]), float(cubic[1]), float(cubic[2]), float(cubic[3]))
    still = PowerCurve(idle, 0.0, 1.0, low, high)
    at_clock: dict[float, list[float]] = defaultdict(list)
    for points in series:
        for point in points:
            if point.power is not None:
                at_clock[round(point.clock)].append(point.power - float(static_w(still, np.array(point.clock))))
    ordered = sorted(at_clock)
    median = np.array([np.median(at_clock[clock]) for clock in ordered])
    base, top = float(median[0]), float(median[-1])
    position = np.array([_position(clock, low, high) for clock in ordered])
    slope = _slope(position, (median - base) / (top - base)) if top > base else None
    return PowerCurve(idle, base, float("nan") if slope is None else float(np.clip(slope, *GAMMA_P)), low, high)


def _position(clock: float, low: float, high: float) -> float:
    return (clock - low) / (high - low)


def _slope(x: Floats, y: Floats) -> float | None:
    """Slope through the origin of ln y over ln x, of the points between start and top; None where there is none."""
    between = (x > 0.0) & (x < 1.0) & (y > 0.0)
    if not between.any():
        return None
    log_x, log_y = np.log(x[between]), np.log(y[between])
    return float(log_x @ log_y / (log_x @ log_x))
