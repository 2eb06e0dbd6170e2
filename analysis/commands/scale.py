"""Choose replicas for jobs: fit laws of speed-up, and make jobs of any size equally long."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from analysis.answer import Answer, then
from analysis.subcommands import Subcommands, option, runs_of, step
from analysis.terms import Refused

GROUP = "study"
HELP = "replicas for jobs: fit laws of speed-up, choose"


def _sizes(text: str) -> list[float]:
    try:
        sizes = [float(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or not all(size > 0 and isfinite(size) for size in sizes):
        raise Refused(f"--work {text}: sizes must be above 0, such as 0.5,1,8.")
    return sizes


@step(
    "laws of speed-up, fitted to measured times",
    "profile.csv",
    ".benchmarks/*/0001_scaling.json --json > law.json",
)
def fit(
    runs: list[str] = option(
        "RUN|CSV", "saved runs of streams of jobs, or CSV: replicas, work, time_s", nargs="+"
    ),
) -> Answer:
    """Fit Amdahl's and Gunther's laws to measured times: cost per work, serial part, crosstalk.

    Reads saved runs of streams of jobs (finished jobs with a size), and CSV with the columns
    replicas, time_s and, for different sizes, work. Jobs of stock-again count too, as for
    `predict`. The better law, by AICc, comes first. The error is that of jobs whose number of
    replicas and size were held out.
    """
    from analysis.studies.jobs.scaling import fitted

    return then(fitted(runs), "scale fit", *runs, "--json")


@step(
    "replicas for jobs of different sizes, so that all take equally long",
    "law.json --target-s 60 --work 0.5,1,8 --most 64",
)
def choose(
    law: Path = option(
        "LAW", "output of `scale fit --json`, or cost_s, serial, crosstalk, startup_s", type=Path
    ),
    *,
    target_s: float = option("S", "target time of every job", type=float, required=True),
    work: list[float] = option("W,…", "sizes, in the fit's unit", type=_sizes, required=True),
    most: int = option(
        "N", "largest number of replicas (default: %(default)s)", type=int, default=64
    ),
) -> Answer:
    """Choose the replicas with which jobs of given sizes come nearest to a target time."""
    from analysis.studies.jobs.scaling import choices
    from analysis.studies.jobs.scaling import law as read_law

    fitted = read_law(law)
    if not (0 < target_s < float("inf") and 1 <= most <= 1_000_000):
        raise Refused("--target-s must be above 0, and --most from 1 to 1000000.")
    return choices(fitted, target_s, most, work)


@step(
    "replicas chosen per job compared with one number for all, on real jobs",
    ".benchmarks/*/0001_scaling.json",
)
def report(
    runs: list[str] = runs_of("saved runs of streams of jobs"),
) -> Answer:
    """Compare replicas chosen per job, for equal run times, with one number for all, on equal jobs.

    Reads saved runs of streams of jobs, some with `target_s`. Reports how many jobs met the target
    ±10 %, their share of the nodes, the error of the law, and the cost of the measurements that it
    was fitted to. Streams are paired by their jobs.
    """
    from analysis.studies.jobs.scaling import measured, reported

    refused: list[str] = []
    return then(reported(measured(runs, refused), refused), "report", *runs)


EXAMPLE, arguments, run = Subcommands(__name__).page
