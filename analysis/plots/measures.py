"""What a metric is called on an axis, in which unit, and which way it is better."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from analysis.plain import one_line
from analysis.wording import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Metric

NAMES = {
    "throughput_samples_per_s": ("throughput", "samples/s"),
    "throughput_tokens_per_s": ("token throughput", "tokens/s"),
    "step_time_p10_s": ("10th percentile of step time", "s"),
    "step_time_q1_s": ("lower quartile of step time", "s"),
    "step_time_round_adjusted_s": ("step time, cleared of its round", "s"),
    "step_time_median_s": ("median step time", "s"),
    "step_time_mean_s": ("mean step time", "s"),
    "cpu_s_per_step": ("processor time a step", "s"),
    "au_whole_percent": ("utilisation over the whole epoch", "%"),
    "au_steady_percent": ("utilisation without the first step", "%"),
    "samples_per_s_whole": ("throughput over the whole epoch", "samples/s"),
    "mb_per_s_read": ("really read", "MiB/s"),
}
# Seconds are shown so that the numbers on an axis are neither long nor all noughts.
UNITS_OF_TIME = ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (float("inf"), 1.0, "s"))


class Measure(NamedTuple):
    """How a metric is written: values are multiplied by `scale` to be in `unit`."""

    name: str
    unit: str
    scale: float

    @property
    def label(self) -> str:
        """What stands on an axis."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def value(self, number: float) -> str:
        """Write one value with its unit, to four digits."""
        return f"{digits(number * self.scale)} {self.unit}".strip()


def measure_of(name: str, values: Sequence[float]) -> Measure:
    """Choose name and unit for values of a metric; one that is not known keeps its own name, which carries its unit."""
    called, unit = NAMES.get(name, (one_line(name, 60), ""))
    if unit != "s":
        return Measure(called, unit, 1.0)
    scale, unit = time_unit(values)
    return Measure(called, unit, scale)


def minus(text: str) -> str:
    """Write a minus sign where a hyphen stands for one, as the axes do."""
    return text.replace("-", "\N{MINUS SIGN}")


def time_unit(values: Sequence[float]) -> tuple[float, str]:
    """Choose the unit for times in seconds: the factor to it and its name."""
    largest = max(map(abs, values), default=1.0)
    return next((scale, unit) for limit, scale, unit in UNITS_OF_TIME if largest < limit)


def direction(metric: Metric) -> str:
    """Say which way a metric is better."""
    return f"{metric.better} is better"
