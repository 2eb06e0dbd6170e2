"""Measure how format, readers, page cache and kernel settings affect training input.

Hypotheses: format and cache matter, and one depends on the other (what costs CPU hides the disk);
read-ahead matters with a cold cache and not with a warm one, which is its negative control.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

FORMATS, READERS, CACHES = ("raw", "npz", "hdf5", "png"), (0, 2), ("cold", "warm")
READING = tuple(
    case("io_train", format=f, read_threads=r, cache=c)
    for f, r, c in product(FORMATS, READERS, CACHES)
)
# Six checkpoints of 64 MiB in 48 steps; nothing but these goes to the disk.
WRITING = case(
    "io_train",
    format="raw",
    read_threads=0,
    cache="warm",
    steps_between_checkpoints=8,
    model_size_bytes=64 << 20,
)

STUDY = Study(
    name="io_patterns",
    question=(
        "How do format, reader processes, page cache and the kernel's I/O settings change the "
        "samples per second of a training job?"
    ),
    workloads=(*READING, WRITING),
    tweaks=(
        "block-readahead-128",
        "block-readahead-8192",
        "block-scheduler-none",
        "block-scheduler-mq-deadline",
        "writeback-eager",
        "writeback-lazy",
    ),
    # Over the whole epoch: what a steady rate leaves out, the start of the readers and their end,
    # is what a job waits for too.
    primary=Metric("throughput_samples_per_s", "higher"),
    blocks=5,
    margin=0.05,
    compares_workloads=True,
)


def bench_epoch(measured: Callable[[], Measured]) -> None:
    """Read a data set; all steps must be done, with data set and cache as requested."""
    run = measured()
    assert run.valid, run.reason
