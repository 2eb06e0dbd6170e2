"""Measure whether kernel or process settings change the speed of AI training on this machine.

Hypothesis under test, one per tweak set and workload: it makes no difference beyond ±3 %.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study

if TYPE_CHECKING:
    from fixtures.plugin import Measured

STUDY = Study(
    name="kernel_tweaks",
    question="Do kernel or process settings change the speed of AI training on this machine?",
    workloads=("lora_finetune", "cnn_train", "ddp_train", "checkpoint_train"),
    tweaks=(
        "thp-always",
        "thp-never",
        "malloc-hugepages",
        "malloc-keep-memory",
        "memory-overcommit",
        "scheduler-throughput",
        "tcp-buffers",
        "tcp-cubic",
        "writeback-eager",
        "writeback-lazy",
        "block-readahead",
        "block-scheduler-none",
        "deeptweak-exp2-sysctl",
        "deeptweak-exp3-sysctl",
    ),
    primary=Metric("step_time_p10_s", "lower"),
    blocks=8,
    margin=0.03,
    design="turns",
    budget_s=600.0,
)


def bench_step_time(measured: Callable[[], Measured]) -> None:
    """Train a model; all steps must be done, with tweak set and samples as requested."""
    run = measured()
    assert run.valid, run.reason
