"""Measure where jobs spend their time, and which system runs which kind of job fastest.

Hypotheses: below the number of its threads a job is held back by its CPU limit, and more threads
than CPUs cost more than they give; memory of this size limits nothing; two replicas of a small net
spend what they gain on their gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

JOBS = case("job_stream", arrivals="closed", classes="profile", jobs=12, slots=1)
SYSTEMS: tuple[dict[str, float], ...] = (
    {"cores": 0.5},
    {"cores": 1},
    {"cores": 2},
    {"cores": 2, "memory_mib": 512},
    {"cores": 1, "replicas": 2, "slots": 2},
)

STUDY = Study(
    name="cluster_profile",
    question="Where do training and inference jobs spend their time under CPU and memory limits "
    "and with replicas, and what is best?",
    workloads=tuple(case(JOBS, **system) for system in SYSTEMS),
    tweaks=("stock",),
    primary=Metric("step_time_mean_s", "lower"),
    blocks=5,
    margin=0.05,
    compares_workloads=True,
    copies=False,  # a copy has the same jobs, and systems are what is compared
)


def bench_job_stream(measured: Callable[[], Measured]) -> None:
    """Run jobs on systems; all jobs must end and report their usage."""
    run = measured()
    assert run.valid, run.reason
    assert all(
        job["cpu_s"] is not None for job in run.record["report"]["job"] if job["outcome"] == "done"
    )
