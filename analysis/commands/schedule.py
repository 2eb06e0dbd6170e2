"""Which waiting job is next: policies compared on identical arrivals. Each step is a command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.steps import Steps, step
from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer

GROUP = "study"
HELP = "policies for waiting jobs: simulate, report"
EXAMPLE = """\
example:
  python -m analysis schedule simulate --slots 2 --load 0.8
  python -m analysis schedule simulate --help
"""

SLOTS = re.compile(r"(?:([A-Za-z_][\w.-]*)=)?(\d{1,6})", re.ASCII)
MOST_JOBS = 10_000_000


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of streams of jobs")
    parser.add_argument("--baseline", default="fifo", metavar="POLICY", help="with what (default: %(default)s)")


@step(
    _add_report,
    "policies on real streams of jobs, against each other and the simulator",
    """\
example:
  python -m analysis schedule report .benchmarks/*/0001_scheduling.json

Exit code 0: analysed, whatever was found. 2: bad usage, or nothing can be compared.
""",
)
def report(args: argparse.Namespace) -> Answer:
    """Compare policies on real streams of jobs with identical arrivals, and play each stream again in simulation: does that wait as long?

    Reads saved runs of streams of jobs. Streams are paired by their arrivals (kind, rate, seed, every job's planned submission and size);
    engines, numbers of slots, machines and whatever else was asked for are never mixed. The simulator is given when jobs came and how long
    each held its slot.
    """
    from analysis.load import load_each
    from analysis.studies.jobs.policies import measured, played_streams
    from analysis.studies.jobs.policies import places as places_of
    from analysis.studies.jobs.records import streams as streams_of

    refused: list[str] = []
    streams = []
    for run in load_each(args.runs, refused):
        try:
            streams += played_streams(run, streams_of(run, refused), refused)
        except Refused as error:
            refused.append(str(error))
    if not streams:
        raise Refused(refused[0] if refused else f"{', '.join(args.runs)}: no run that tells of jobs.")
    return measured(places_of(streams, args.baseline, refused), refused)


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--slots", required=True, metavar="N|KIND=N,…", help="how many jobs can run at once, by kind of slot")
    parser.add_argument("--load", type=float, default=0.8, metavar="RHO", help="part of the slots that is busy (default: %(default)s)")
    parser.add_argument("--policies", metavar="NAME,…", help="what to compare (default: all there are)")
    parser.add_argument("--baseline", default="fifo", metavar="NAME", help="with what (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=5000, metavar="N", help="of each stream (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="streams (default: %(default)s)")
    parser.add_argument(
        "--classes",
        metavar="FILE",
        type=Path,
        help="classes of jobs, YAML: name, probability, mean_s (a number, or by kind of slot), cv2, … (default: one, exponential of 1 s)",
    )
    parser.add_argument("--arrivals-cv2", type=float, default=1.0, metavar="X", help="of the gaps; 1 is Poisson (default: %(default)s)")
    parser.add_argument("--prediction-error", type=float, default=0.0, metavar="SD", help="sd of log(predicted/true) (default: 0)")


@step(
    _add_simulate,
    "policies compared on identical arrivals, simulated",
    """\
examples:
  python -m analysis schedule simulate --slots 2 --load 0.8
  python -m analysis schedule simulate --slots 1000 --jobs 100000 --seeds 2 --policies fifo,sjf
  python -m analysis schedule simulate --slots gpu=4,cpu=12 --classes classes.yaml --json

Exit code 0: simulated, whatever came of it. 2: bad usage, or a load under which no wait has a mean.
""",
)
def simulate(args: argparse.Namespace) -> Answer:
    """Compare policies in simulation, each on the same jobs: waits, slowdown, fairness, promises kept, against a baseline.

    Slots are busy to --load if each class of jobs runs where it should. A policy knows predicted times, off by --prediction-error;
    how long a job really takes it learns when that ends. Nothing is interrupted. A seed is one stream of jobs, its first tenth left out.
    """
    from analysis.studies.jobs.policies import PolicyStudy, simulated
    from analysis.studies.jobs.simulation import JobClass, JobSource, read_classes
    from control.scheduling import policies

    slots = slots_of(args.slots)
    if not 20 <= args.jobs <= MOST_JOBS or not 1 <= args.seeds <= 10_000:
        raise Refused(f"--jobs is from 20 to {MOST_JOBS}, --seeds from 1 to 10000.")
    if not (0 <= args.arrivals_cv2 <= 1000 and 0 <= args.prediction_error <= 10):
        raise Refused("--arrivals-cv2 is from 0 to 1000, --prediction-error from 0 to 10.")
    classes = read_classes(args.classes, tuple(slots)) if args.classes else (JobClass("job", 1.0, dict.fromkeys(slots, 1.0)),)
    source = JobSource(classes, slots, args.load, args.arrivals_cv2, args.prediction_error)
    names = policies.names() if args.policies is None else tuple(dict.fromkeys(args.policies.split(",")))
    return simulated(PolicyStudy(source, names, args.baseline, args.jobs, args.seeds))


def slots_of(text: str) -> dict[str, int]:
    """Read `4` or `gpu=4,cpu=12`. Raises: Refused."""
    parts = [SLOTS.fullmatch(part.strip()) for part in text.split(",")]
    slots = {part[1] or "any": int(part[2]) for part in parts if part is not None}
    if None in parts or len(slots) < len(parts) or min(slots.values()) < 1:
        raise Refused(f"--slots {text}: write a number such as 4, or kinds such as gpu=4,cpu=12, each once and with one slot or more.")
    return slots


_STEPS = Steps(__name__)
arguments, run = _STEPS.arguments, _STEPS.run
