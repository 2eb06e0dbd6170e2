"""The metrics of a cell, one value each, computed from its steps without the warm-up.

Throughput, N / Σt, is the rate that users get; a mean of rates would be biased. The 10th percentile
of step time is the kernel's cost without interference.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .terms import Steps

# pytest-benchmark's names of statistics → the equivalent metric.
COLUMNS = {
    "min": "step_time_min_s",
    "median": "step_time_median_s",
    "mean": "step_time_mean_s",
    "ops": "throughput_samples_per_s",
}
# Times are saved to the microsecond or better: a larger difference is not rounding but another
# computation.
ROUNDING = 1e-4


def quantile(values: Sequence[float], q: float) -> float:
    """Return the q-quantile by linear interpolation (Hyndman & Fan type 7, numpy's default)."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def metrics_of(steps: Steps) -> dict[str, float]:
    """Summarise the measured steps of one cell.

    A metric whose column is missing is omitted, not 0; so is throughput if steps overlap.

    Raises: ArithmeticError, if the steps are too large or too small for finite metrics.
    """
    wall_s = steps.wall_s[steps.warmup :]
    total_s = math.fsum(wall_s)
    metrics = (
        {}
        if steps.overlap
        else {"throughput_samples_per_s": sum(steps.samples[steps.warmup :]) / total_s}
    )
    metrics |= {
        "step_time_p10_s": quantile(wall_s, 0.10),
        "step_time_median_s": statistics.median(wall_s),
        "step_time_mean_s": total_s / len(wall_s),
    }
    if steps.tokens is not None and any(steps.tokens[steps.warmup :]) and not steps.overlap:
        metrics["throughput_tokens_per_s"] = sum(steps.tokens[steps.warmup :]) / total_s
    if steps.rate_per_s is not None:
        metrics["rate_median_per_s"] = statistics.median(steps.rate_per_s[steps.warmup :])
    if steps.cpu_s is not None:
        metrics["cpu_s_per_step"] = math.fsum(steps.cpu_s[steps.warmup :]) / len(wall_s)
    if not all(math.isfinite(value) for value in metrics.values()):
        raise OverflowError("a metric is not finite")
    return metrics


def disagreements(saved: Mapping[str, float], computed: Mapping[str, float]) -> list[str]:
    return [
        f"saved {name} is {value:.6g}, but its steps give {computed[name]:.6g}; the steps are used."
        for name, value in saved.items()
        if name in computed
        and not math.isclose(value, computed[name], rel_tol=ROUNDING, abs_tol=1e-12)
    ]
