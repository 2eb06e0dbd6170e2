"""Compare scheduling policies on identical jobs.

Hypotheses: the shortest job first waits less in the mean than the first come first, and its longest
wait is longer; least slack keeps more promises; fair share is fairest by Jain's index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

POLICIES = ("fifo", "priority", "sjf", "least_slack", "fair_share")
SLOTS, LOAD, MEAN_S, JOBS = 2, 0.8, 0.2, 300

STUDY = Study(
    name="cluster_scheduling",
    question="Which scheduling policy serves jobs best, on identical arrivals?",
    workloads=tuple(
        case(
            "job_stream",
            rate_per_s=LOAD * SLOTS / MEAN_S,
            classes="tenants",
            jobs=JOBS,
            slots=SLOTS,
            policy=policy,
        )
        for policy in POLICIES
    ),
    tweaks=("stock",),
    primary=Metric("step_time_mean_s", "lower"),
    blocks=6,
    margin=0.05,
    compares_workloads=True,
    copies=False,  # what a policy is compared with is another on the same jobs
)


def bench_job_stream(measured: Callable[[], Measured]) -> None:
    """Run a stream under a policy; all jobs must be submitted, and their ends reported."""
    run = measured()
    assert run.valid, run.reason
