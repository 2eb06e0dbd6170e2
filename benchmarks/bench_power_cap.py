"""Compare power-capping algorithms by inference throughput and by how well they keep the cap.

Hypotheses: a model of the device finds better settings than a search that knows none; a controller
with a dead band below the cap gives up little throughput and violates less than one that steps
around the cap for ever; the driver's power limit alone keeps to the cap and loses throughput.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

# A fixed cap, and one that falls twice.
TASKS = (6, 29)
ALGORITHMS = ("powercap", "directcap", "batchdvfs", "morak", "pctodl", "steady")

STUDY = Study(
    name="power_cap",
    question="Which algorithm gets the most inference out of a device under a power cap, and how "
    "well does it keep the cap?",
    workloads=tuple(
        case("capped_inference", task=task, algorithm=algorithm)
        for task, algorithm in product(TASKS, ALGORITHMS)
    ),
    tweaks=("stock",),
    primary=Metric("throughput_samples_per_s", "higher"),
    blocks=5,
    margin=0.02,
    compares_workloads=True,
    # of a plant that is drawn anew in each block a copy is the same to the last digit; devices have
    # them
    copies=False,
)


def bench_capped_inference(measured: Callable[[], Measured]) -> None:
    """Run under a cap; every window must be measured and followed by a decision."""
    run = measured()
    assert run.valid, run.reason
