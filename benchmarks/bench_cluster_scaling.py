"""Compare replicas chosen so that all jobs take the same time with one number for all jobs.

Hypothesis: more jobs take the target where replicas are chosen, at fewer node-seconds than with as
many as the largest job needs; noise and jobs for which no whole number fits remain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

JOBS = case("job_stream", arrivals="poisson", rate_per_s=1.5, classes="scalable", jobs=30, slots=8)
TARGET_S = 0.5
STATIC = (2, 4, 8)

STUDY = Study(
    name="cluster_scaling",
    question="Do replicas that are chosen per job make jobs of any size take the same time, "
    "and at what cost?",
    workloads=(
        case(JOBS, target_s=TARGET_S),
        *(case(JOBS, replicas=replicas) for replicas in STATIC),
    ),
    tweaks=("stock",),
    primary=Metric("step_time_mean_s", "lower"),
    blocks=5,
    margin=0.05,
    compares_workloads=True,
    copies=False,  # a copy has the same jobs, and ways of scaling are what is compared
)


def bench_job_stream(measured: Callable[[], Measured]) -> None:
    """Run jobs with chosen replicas; all must end, and report any law that was used."""
    run = measured()
    assert run.valid, run.reason
    report = run.record["report"]
    assert len(report.get("scale", [])) == ("target_s" in run.record["workload"])
