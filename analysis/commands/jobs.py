"""Analyse jobs as workloads: response time per system, and hyper-parameters."""

from __future__ import annotations

from analysis.answer import Answer, then
from analysis.subcommands import Subcommands, runs_of, step

GROUP = "study"
HELP = "jobs by class and system: profile, hyper-parameters"


@step(
    "response time of jobs by class and system; the best system",
    ".benchmarks/*/0001_profile.json",
)
def profile(
    runs: list[str] = runs_of("saved runs of streams of jobs"),
) -> Answer:
    """Break down response times of jobs by class and system; find each class's fastest system.

    Reads saved runs of streams of jobs; cells with equal workload and tweak set are one system, and
    blocks of a run its replicates. Response time is divided into waiting for a slot, start-up,
    computing, held back by the CPU limit, and neither (other processes, disks, other replicas).
    """
    from analysis.studies.jobs.profile import answer
    from analysis.studies.jobs.records import streams_of

    refused: list[str] = []
    return then(answer(streams_of(runs, refused), refused), "report", *runs)


@step(
    "time to reach an accuracy, by hyper-parameters: points, the best, effects",
    ".benchmarks/*/0001_hyper.json",
)
def hyper(
    runs: list[str] = runs_of("saved runs of streams of jobs that learn"),
) -> Answer:
    """Report how soon jobs reach their accuracy, by hyper-parameters: points, best, effects.

    Reads saved runs of streams of `train` jobs with an `accuracy` and varied parameters (--vary
    batch=16,64). A point whose jobs do not all reach the accuracy has no mean time and never wins.
    Effects and their analysis of variance are computed on ratios.
    """
    from analysis.studies.jobs.hyper import answer
    from analysis.studies.jobs.records import streams_of

    refused: list[str] = []
    return then(answer(streams_of(runs, refused), refused), "report", *runs)


EXAMPLE, arguments, run = Subcommands(__name__).page
