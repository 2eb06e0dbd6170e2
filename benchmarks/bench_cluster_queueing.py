"""Measure how long jobs wait, and whether queueing models predict it.

Hypotheses: at random arrivals the mean wait is Erlang's; clockwork waits less and bursts wait more
than that, by the models of G/G/c; Little's law holds to the last digit in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from fixtures.terms import Case, Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

WORK_S, JOBS = 0.1, 300
SLOTS, LOADS, MIDDLE = (1, 2), (0.3, 0.6, 0.8), 0.6
OTHERS = ("deterministic", "mmpp")


def _stream(arrivals: str, slots: int, load: float) -> Case:
    return case(
        "job_stream",
        arrivals=arrivals,
        rate_per_s=round(load * slots / WORK_S, 6),
        jobs=JOBS,
        work=WORK_S,
        slots=slots,
    )


STUDY = Study(
    name="cluster_queueing",
    question="How long do jobs wait for a slot, and do queueing models predict it?",
    workloads=(
        *(_stream("poisson", slots, load) for slots, load in product(SLOTS, LOADS)),
        *(_stream(arrivals, slots, MIDDLE) for arrivals, slots in product(OTHERS, SLOTS)),
    ),
    tweaks=("stock",),
    primary=Metric("step_time_mean_s", "lower"),
    blocks=5,
    margin=0.05,
    compares_workloads=True,
    copies=False,  # each block draws its own stream: its replicates are what a copy would be
)


def bench_job_stream(measured: Callable[[], Measured]) -> None:
    """Run a stream; all jobs must be submitted, and their ends reported."""
    run = measured()
    assert run.valid, run.reason
