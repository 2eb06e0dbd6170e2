"""Find the batch, learning rate and optimiser that reach an accuracy soonest.

Jobs train a small CNN on handwritten digits until 95 % of those left out are read rightly, each
from weights of its own; a factorial of two batches, two rates and two optimisers. Hypotheses: a
larger batch makes steps cheaper and needs more epochs, so that it wins little; the optimiser
matters more than the batch, and the two rates change places between optimisers (an interaction).
`python -m analysis jobs hyper RUN` judges. Larger grids: `--vary batch=16,32,64,128 --vary
lr=0.002,0.005,0.01`.
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
