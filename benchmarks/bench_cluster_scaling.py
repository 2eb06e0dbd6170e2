"""Can replicas be chosen so that jobs of any size take the same time, and what does that cost against one number for all?

Training jobs whose sizes differ by a factor of four, a quarter of a CPU for each replica, are to run for 1.5 s ±10 % each. In one arm a few
jobs are measured first, a law of speed-up is fitted to them, and each job gets the replicas that it says; the others have two, four and
eight for all. Hypothesis: more jobs take the target where replicas are chosen, at fewer node-seconds than with as many as the largest job
needs; what remains are jobs for which no whole number fits, and noise. `python -m analysis scale report RUN` judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study

if TYPE_CHECKING:
    from collections.abc import Callable

    from fixtures.plugin import Measured

JOBS = "job_stream:arrivals=poisson:rate_per_s=0.6:classes=scaling:jobs=20:slots=8"
TARGET_S = 1.5
STATIC = (2, 4, 8)

STUDY = Study(
    name="cluster_scaling",
    question="Do replicas that are chosen for each job make jobs of any size take the same time, and at which cost?",
    workloads=(f"{JOBS}:target_s={TARGET_S:g}", *(f"{JOBS}:replicas={replicas}" for replicas in STATIC)),
    tweaks=("stock",),
    primary=Metric("step_time_mean_s", "lower"),
    blocks=5,
    margin=0.05,
    compares_workloads=True,
    copies=False,  # a copy has the same jobs, and ways of scaling are what is compared
)


def bench_job_stream(measured: Callable[[], Measured]) -> None:
    """Every job ended; where replicas were chosen, it is told by which law."""
    run = measured()
    assert run.valid, run.reason
    report = run.record["report"]
    assert len(report.get("scale", [])) == ("target_s" in run.record["workload"])
