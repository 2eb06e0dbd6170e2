"""Compare policies for waiting jobs on identical arrivals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer, then
from analysis.subcommands import Subcommands, option, runs_of, step
from analysis.terms import Refused
from analysis.wording import whole

if TYPE_CHECKING:
    from analysis.studies.jobs.policies import PlayedStream
    from analysis.terms import Run

GROUP = "study"
HELP = "policies for waiting jobs: simulate, report"

MOST_JOBS = 10_000_000
CLASSES = (
    "classes of jobs, YAML: name, probability, mean_s, cv2, … (default: one, exponential of 1 s)"
)


@step(
    "policies on real streams of jobs, against each other and the simulator",
    ".benchmarks/*/0001_scheduling.json",
)
def report(
    runs: list[str] = runs_of("saved runs of streams of jobs"),
    *,
    baseline: str = option(
        "POLICY", "policy to compare with (default: %(default)s)", default="fifo"
    ),
) -> Answer:
    """Compare policies on real streams of jobs with identical arrivals, and with their simulation.

    Reads saved runs of streams of jobs. Streams are paired by their arrivals (kind, rate, seed,
    every job's planned submission and size); engines, numbers of slots, machines and other
    parameters are never mixed. The simulator replays each stream from its arrivals and times in a
    slot, to compare the waits.
    """
    from analysis.load import load_each, read_each
    from analysis.studies.jobs.policies import measured, places, played_streams
    from analysis.studies.jobs.records import in_order, streams

    refused: list[str] = []

    def read(run: Run) -> list[PlayedStream]:
        return played_streams(run, in_order(streams(run, refused), refused), refused)

    played = read_each(load_each(runs, refused), read, refused)
    answer = measured(
        places([stream for _, of_run in played for stream in of_run], baseline, refused), refused
    )
    return then(answer, "report", *runs)


@step(
    "policies compared on identical arrivals, simulated",
    "--slots 2 --load 0.8",
)
def simulate(
    *,
    slots: int = option("N", "number of slots", type=whole(1, 1_000_000), required=True),
    load: float = option(
        "RHO", "share of the slots that are busy (default: %(default)s)", type=float, default=0.8
    ),
    policies: str | None = option("NAME,…", "policies to compare (default: all)"),
    baseline: str = option("NAME", "policy to compare with (default: %(default)s)", default="fifo"),
    jobs: int = option("N", "jobs per stream (default: %(default)s)", type=int, default=5000),
    seeds: int = option("N", "number of streams (default: %(default)s)", type=int, default=20),
    classes: Path | None = option("FILE", CLASSES, type=Path),
    arrivals_cv2: float = option(
        "X",
        "variance of gaps over their mean squared; 1 is Poisson (default: %(default)s)",
        type=float,
        default=1.0,
    ),
    prediction_error: float = option(
        "SD", "sd of log(predicted/true) (default: 0)", type=float, default=0.0
    ),
) -> Answer:
    """Compare policies in simulation on the same jobs: waits, slowdown, fairness, promises kept.

    A policy knows predicted times, which are off by --prediction-error. Jobs are not interrupted. A
    seed is one stream of jobs; the first tenth is not counted.
    """
    from analysis.studies.jobs.policies import simulated
    from analysis.studies.jobs.simulation import ClassModel, JobSource, read_classes
    from control.scheduling import policies as known_policies

    if not 20 <= jobs <= MOST_JOBS or not 1 <= seeds <= 10_000:
        raise Refused(f"--jobs must be from 20 to {MOST_JOBS}, and --seeds from 1 to 10000.")
    if not (0 <= arrivals_cv2 <= 1000 and 0 <= prediction_error <= 10):
        raise Refused("--arrivals-cv2 must be from 0 to 1000, and --prediction-error from 0 to 10.")
    job_classes = read_classes(classes) if classes else (ClassModel("job", 1.0, 1.0),)
    source = JobSource(job_classes, slots, load, arrivals_cv2, prediction_error)
    error = 0.0 if prediction_error else 0.5  # next: wrong predictions, or perfect ones
    names = (
        known_policies.names() if policies is None else tuple(dict.fromkeys(policies.split(",")))
    )
    options = ["--slots", str(slots), f"--load={load:g}"]
    options += [f"--classes={classes}"] if classes else []
    return then(
        simulated(source, names, baseline, jobs, seeds),
        "schedule simulate",
        *options,
        f"--prediction-error={error:g}",
    )


EXAMPLE, arguments, run = Subcommands(__name__).page
