"""Measure images per second, utilisation and power for partitions, batches and clocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.studies.power import points
from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

STUDY = Study(
    name="power_profile",
    question=(
        "How many images per second, at what power, does each partition, batch and clock (or "
        "throttle) yield?"
    ),
    workloads=tuple(case("power_profile", **point) for point in points.cpu()),
    tweaks=("stock",),
    primary=Metric("throughput_samples_per_s", "higher"),
    blocks=1,
    compares_workloads=True,
    copies=False,
)


def bench_point(measured: Callable[[], Measured]) -> None:
    """Measure a point; all of its steps must be measured and saved in one row."""
    run = measured()
    assert run.valid, run.reason
    (point,) = run.record["report"]["point"]
    assert point["outcome"] == "measured"
