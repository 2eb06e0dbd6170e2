"""Measure images per second, utilisation and power for partitions, batches and clocks.

Each cell is one point of a grid: tenants that infer one network with their shares and batches, at a
clock or a throttle. The points are what a model is fitted to (`python -m analysis power traces`,
then `fit`); a point that fails (memory, a tenant's end, a refused clock) says so and is no zero. By
default the CPUs' small grid runs; `--profile-grid=pacing` is for a GPU that may only be read,
`partitions` and `sweep` are PctoDL's for one that may be set (`--allow-gpu-changes`), swept over
clocks by `--vary sm_mhz=210,360,…`, over networks (and, as `static`, the idle GPU) by `--vary
model=resnet50,static`. A run that was interrupted goes on with `--resume`. No setting of the kernel
is changed. Run alone: `pytest benchmarks/bench_power_profile.py`.
"""

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
