"""Measure what faults cost a stream of jobs, and what checkpoints, policies and limits save.

Each question has its own stream without the fault, on the same jobs: crashes at a mean of one a
second under checkpoints at several intervals (hypothesis: the best is near Young's √(2·20 ms·1 s) =
0.2 s); a node that is lost for a while; noisy neighbours and careless limits (CPU, quota, memory);
a flood of another tenant's jobs. `python -m analysis depend report RUN` judges. The sizes are for
two cores and a quarter of an hour per block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

# One customer, so that the crashes of the stream are all of the job that runs: their rate is one
# job's.
CHECKPOINTED = case("job_stream", arrivals="closed", classes="checkpointed", jobs=20, slots=1)
CRASHES = {"retries": 1000, "fault": "kill", "fault_rate_per_s": 1}
INTERVALS_S = (0, 0.05, 0.2, 0.8)
NODES = case("job_stream", arrivals="poisson", rate_per_s=10, jobs=250, slots=4, nodes=2, retries=3)
NEIGHBOURS = case(
    "job_stream", arrivals="poisson", rate_per_s=2, classes="neighbours", jobs=40, slots=1
)
AROUND = {"cpu_hog": 2, "memory_hog": 512, "io_hog": 64, "few_cores": 0.5, "little_memory": 32}
FLOODED = case("job_stream", arrivals="poisson", rate_per_s=6, jobs=200, slots=2)
FLOOD = {"fault": "flood", "fault_at_s": 10, "fault_for_s": 2, "fault_size": 60}
POLICIES = ("fifo", "fair_share")

STUDY = Study(
    name="cluster_faults",
    question="What do crashes, lost nodes, noisy neighbours, careless limits and a flood cost a "
    "stream of jobs, and what helps?",
    workloads=(
        CHECKPOINTED,
        *(case(CHECKPOINTED, checkpoint_s=interval, **CRASHES) for interval in INTERVALS_S),
        NODES,
        case(NODES, fault="node", fault_at_s=8, fault_for_s=6),
        NEIGHBOURS,
        *(case(NEIGHBOURS, fault=fault, fault_size=size) for fault, size in AROUND.items()),
        *(case(FLOODED, policy=policy, **fault) for policy in POLICIES for fault in ({}, FLOOD)),
    ),
    tweaks=("stock",),
    primary=Metric("step_time_mean_s", "lower"),
    blocks=5,
    margin=0.05,
    compares_workloads=True,
    copies=False,  # each stream is there without a fault too
)


def bench_job_stream(measured: Callable[[], Measured]) -> None:
    """Run jobs with a fault; each must end with a known outcome, even a failure."""
    run = measured()
    assert run.valid, run.reason
