"""Compare a GPU's utilisation metrics on kernels of known size.

Hypotheses: utilisation and GRACT are near 100 % however small it is; SMACT is min(blocks, SMs) /
SMs times the share of time in which the kernel ran (duty), so that it tells one block from a full
GPU; SMOCC is never above SMACT, nor SMACT above GRACT.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

BLOCKS = (1, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
THREADS = (1, 8, 32, 128, 256, 512, 1024)
# Streaming multiprocessors: A100 108, H100 SXM and H200 132. One block more than there are is one
# that waits, or shares.
SMS = (108, 132)
AROUND = tuple(count + step for count in SMS for step in (-1, 0, 1))
SIZES = sorted({*product(BLOCKS, THREADS), *product(AROUND, (32, 1024))})

STUDY = Study(
    name="gpu_metrics",
    question=(
        "What do a GPU's utilisation, GRACT, SMACT and SMOCC show for a kernel with known blocks "
        "and threads?"
    ),
    workloads=tuple(case("gpu_grid", blocks=blocks, threads=threads) for blocks, threads in SIZES),
    tweaks=("stock",),
    primary=Metric("step_time_median_s", "lower"),
    blocks=3,
    compares_workloads=True,
)


def bench_grid(measured: Callable[[], Measured]) -> None:
    """Run a kernel of this size; all sampled metrics must have values or a reason."""
    run = measured()
    assert run.valid, run.reason
    report = run.record["report"]
    assert len(report["gpu_metrics"]) == len(report["samples"]) == 1
