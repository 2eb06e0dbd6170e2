"""Measure what monitors and profilers cost the workload that they watch.

Hypothesis: what samples once a second from another process costs nothing that shows; what runs in
Python's own interpreter costs, the more the oftener; what traces every call costs most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study

if TYPE_CHECKING:
    from fixtures.plugin import Measured

STUDY = Study(
    name="monitoring_overhead",
    question="How much CPU and wall time do monitors and profilers add to preprocessing and "
    "training, and how much do they use themselves?",
    # An interpreter that never waits, a light training and a heavy one.
    workloads=("python_loop", "cnn_train", "resnet_train"),
    tweaks=(),
    primary=Metric("cpu_s_per_step", "lower"),
    blocks=20,
    margin=0.01,
    monitors=(
        "placebo",
        "sampler:hz=1",
        "sampler",
        "sampler:hz=100",
        "psutil_thread:interval_s=1",
        "psutil_thread",
        "psutil_thread:interval_s=0.01",
        "nvidia_smi",
        "dcgmi",
        "py_spy",
        "perf_stat",
        "perf_record",
        "cprofile",
        "torch_profiler",
        "nsys",
        "ncu",
    ),
)


def bench_monitor(measured: Callable[[], Measured]) -> None:
    """Run under a monitor, which must be active throughout and gone at the end."""
    run = measured()
    assert run.valid, run.reason
