"""Find the batch, learning rate and optimiser that reach an accuracy soonest.

Hypotheses: a larger batch makes steps cheaper and needs more epochs, so that it wins little; the
optimiser matters more than the batch, and the two rates change places between optimisers (an
interaction).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

JOBS = case("job_stream", arrivals="closed", classes="hyper", jobs=4, slots=1)
BATCHES, RATES, OPTIMISERS = (16, 64), (0.005, 0.02), ("momentum", "adam")

STUDY = Study(
    name="cluster_hyper",
    question="Which batch, learning rate and optimiser reach an accuracy of 95 % soonest?",
    workloads=tuple(
        case(JOBS, batch=batch, lr=lr, optimiser=how)
        for batch, lr, how in product(BATCHES, RATES, OPTIMISERS)
    ),
    tweaks=("stock",),
    primary=Metric("step_time_mean_s", "lower"),
    blocks=5,
    margin=0.05,
    compares_workloads=True,
    copies=False,  # a copy learns the same from the same weights
)


def bench_job_stream(measured: Callable[[], Measured]) -> None:
    """Train with each configuration; every job must end and report its accuracy."""
    run = measured()
    assert run.valid, run.reason
    assert all(
        "accuracy" in (job["result"] or {})
        for job in run.record["report"]["job"]
        if job["outcome"] == "done"
    )
