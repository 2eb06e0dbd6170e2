"""Replicas of a job: laws of speed-up from measured times, and jobs of any size that take equally long. Each step is a command."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from analysis.answer import Answer, then
from analysis.subcommands import Steps, option, runs_of, step
from analysis.terms import Refused
from control.called import JUDGE

GROUP = "study"
HELP = "replicas for jobs: fit laws of speed-up, choose"
EXAMPLE = f"`{JUDGE} scale STEP --help` says the rest."


def _sizes(text: str) -> list[float]:
    try:
        sizes = [float(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or not all(size > 0 and isfinite(size) for size in sizes):
        raise Refused(f"--work {text}: sizes above 0 are expected, such as 0.5,1,8.")
    return sizes


@step(
    "laws of speed-up, fitted to measured times",
    f"""\
examples:
  {JUDGE} scale fit profile.csv
  {JUDGE} scale fit .benchmarks/*/0001_scaling.json --json > law.json
""",
)
def fit(
    runs: list[str] = option("RUN|CSV", "saved runs of streams of jobs, or CSV: replicas, work, time_s", nargs="+"),
) -> Answer:
    """Fit Amdahl's law and Gunther's to measured times: what a unit of work costs, what no replica shortens, what they cost each other.

    Reads saved runs of streams of jobs (those that were done, with their size), and CSV with the columns replicas, time_s and, where sizes
    differ, work. Jobs of stock-again count too, as for `predict`. The better law, by AICc, comes first. The error is
    that of jobs whose number of replicas and size were left out of the fit.
    """
    from analysis.studies.jobs.scaling import fitted

    return then(fitted(runs), "scale fit", *runs, "--json")


@step(
    "replicas for jobs of some sizes, so that all take equally long",
    f"""\
example:
  {JUDGE} scale choose law.json --target-s 60 --work 0.5,1,8 --most 64
""",
)
def choose(
    law: Path = option("LAW", "what `scale fit --json` wrote, or cost_s, serial, crosstalk, startup_s", type=Path),
    *,
    target_s: float = option("S", "how long every job is to take", type=float, required=True),
    work: list[float] = option("W,…", "sizes, in the unit of the fit", type=_sizes, required=True),
    most: int = option("N", "replicas, at most (default: %(default)s)", type=int, default=64),
) -> Answer:
    """Choose the replicas with which jobs of some sizes take nearest the time that all are to take, by a law that was fitted."""
    from analysis.studies.jobs.scaling import choices
    from analysis.studies.jobs.scaling import law as read_law

    fitted = read_law(law)
    if not (0 < target_s < float("inf") and 1 <= most <= 1_000_000):
        raise Refused("--target-s is above 0, --most from 1 to 1000000.")
    return choices(fitted, target_s, most, work)


@step(
    "replicas chosen for each job against one number for all, on real jobs",
    f"""\
example:
  {JUDGE} scale report .benchmarks/*/0001_scaling.json
""",
)
def report(
    runs: list[str] = runs_of("saved runs of streams of jobs"),
) -> Answer:
    """Replicas that were chosen for each job, so that all run equally long, against one number for all: on real jobs, the same for both.

    Reads saved runs of streams of jobs, some with `target_s`. Says how many jobs ran for the target ±10 %, what they took of the nodes, how
    far the law was off that chose, and what was measured to fit it. Streams are paired by their jobs.
    """
    from analysis.studies.jobs.scaling import measured, reported

    refused: list[str] = []
    return then(reported(measured(runs, refused), refused), "report", *runs)


_STEPS = Steps(__name__)
arguments, run = _STEPS.arguments, _STEPS.run
