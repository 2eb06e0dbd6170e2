"""Compare policies in simulation, each on the same jobs: waits, slowdown, fairness, promises kept, against a baseline.

Slots are busy to --load if each class of jobs runs where it should. A policy knows predicted times, off by --prediction-error;
how long a job really takes it learns when that ends. Nothing is interrupted. A seed is one stream of jobs, its first tenth left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.jobs.schedulers.comparison import PolicyStudy

HELP = "policies compared on identical arrivals, simulated"
EXAMPLE = """\
examples:
  python -m analysis schedule simulate --slots 2 --load 0.8
  python -m analysis schedule simulate --slots 1000 --jobs 100000 --seeds 2 --policies fifo,sjf
  python -m analysis schedule simulate --slots gpu=4,cpu=12 --classes classes.yaml --json

Exit code 0: simulated, whatever came of it. 2: bad usage, or a load under which no wait has a mean.
"""
SLOTS = re.compile(r"(?:([A-Za-z_][\w.-]*)=)?(\d{1,6})", re.ASCII)
MOST_JOBS = 10_000_000


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
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


def run(asked: argparse.Namespace) -> int:
    """Print what came of it. Raises: Refused."""
    from analysis.studies.jobs.schedulers import comparison  # noqa: PLC0415  # numpy, scipy and simpy, which --help need not wait for

    wanted = _wanted(asked)
    found = comparison.arms(wanted)
    if asked.json:
        from analysis.studies.jobs.schedulers.page import simulated_json  # noqa: PLC0415  # only for programs

        print(simulated_json(wanted, found), end="")
        return 0
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.schedulers.page import simulated  # noqa: PLC0415  # --json has no need of rich

    print(simulated(wanted, found, color=wants_color(sys.stdout)), end="")
    return 0


def _wanted(asked: argparse.Namespace) -> PolicyStudy:
    from analysis.studies.jobs.schedulers.comparison import PolicyStudy  # noqa: PLC0415  # scipy and simpy
    from analysis.studies.jobs.simulation.stream import (
        JobClass,  # as above
        JobSource,  # numpy
        read_classes,  # as above
    )
    from control.scheduling import policies  # noqa: PLC0415  # with what follows

    slots = slots_of(asked.slots)
    if not 20 <= asked.jobs <= MOST_JOBS or not 1 <= asked.seeds <= 10_000:
        raise Refused(f"--jobs is from 20 to {MOST_JOBS}, --seeds from 1 to 10000.")
    if not (0 <= asked.arrivals_cv2 <= 1000 and 0 <= asked.prediction_error <= 10):
        raise Refused("--arrivals-cv2 is from 0 to 1000, --prediction-error from 0 to 10.")
    classes = read_classes(asked.classes, tuple(slots)) if asked.classes else (JobClass("job", 1.0, dict.fromkeys(slots, 1.0)),)
    source = JobSource(classes, slots, asked.load, asked.arrivals_cv2, asked.prediction_error)
    names = policies.names() if asked.policies is None else tuple(dict.fromkeys(asked.policies.split(",")))
    return PolicyStudy(source, names, asked.baseline, asked.jobs, asked.seeds)


def slots_of(text: str) -> dict[str, int]:
    """Read `4` or `gpu=4,cpu=12`. Raises: Refused."""
    parts = [SLOTS.fullmatch(part.strip()) for part in text.split(",")]
    slots = {part[1] or "any": int(part[2]) for part in parts if part is not None}
    if None in parts or len(slots) < len(parts) or min(slots.values()) < 1:
        raise Refused(f"--slots {text}: write a number such as 4, or kinds such as gpu=4,cpu=12, each once and with one slot or more.")
    return slots
