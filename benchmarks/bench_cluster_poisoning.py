"""Measure the accuracy that label-flipping clients cost, and what robust servers keep.

Hypotheses: the mean loses accuracy; the median of each weight, and the mean without its extremes,
lose less of it and cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

CLASSES = ("federated", "federated_poisoned", "federated_median", "federated_trimmed")

STUDY = Study(
    name="cluster_poisoning",
    question="How much accuracy does a federated model lose to poisoned clients, and how much does "
    "a robust server keep?",
    workloads=tuple(
        case("job_stream", arrivals="closed", classes=classes, jobs=12, slots=1)
        for classes in CLASSES
    ),
    tweaks=("stock",),
    primary=Metric("step_time_mean_s", "lower"),
    blocks=5,
    margin=0.05,
    compares_workloads=True,
    # what is compared is what was learned, and that is the same to the last digit in a copy
    copies=False,
)


def bench_job_stream(measured: Callable[[], Measured]) -> None:
    """Run federated jobs; each must complete."""
    run = measured()
    assert run.valid, run.reason
