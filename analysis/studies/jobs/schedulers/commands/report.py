"""Compare policies on real streams of jobs with identical arrivals, and play each stream again in simulation: does that wait as long?

Reads saved runs of streams of jobs. Streams are paired by their arrivals (kind, rate, seed, every job's planned submission and size);
engines, numbers of slots, machines and whatever else
was asked for are never mixed. The simulator is given when jobs came and how long each held its slot.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.jobs.schedulers.measured import Recorded

HELP = "policies on real streams of jobs, against each other and the simulator"
EXAMPLE = """\
example:
  python -m analysis schedule report .benchmarks/*/0001_scheduling.json

Exit code 0: analysed, whatever was found. 2: bad usage, or nothing can be compared.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of streams of jobs")
    parser.add_argument("--baseline", default="fifo", metavar="POLICY", help="with what (default: %(default)s)")


def run(asked: argparse.Namespace) -> int:
    """Print what the streams say. Raises: Refused."""
    from analysis.studies.jobs.schedulers import measured  # noqa: PLC0415  # numpy, scipy and simpy, which --help need not wait for

    refused: list[str] = []
    streams = _streams(asked.runs, refused)
    if not streams:
        raise Refused(refused[0] if refused else f"{', '.join(asked.runs)}: no run that tells of jobs.")
    found = measured.places(streams, asked.baseline, refused)
    for line in refused:
        print("refused:", line, file=sys.stderr)
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.schedulers import page  # noqa: PLC0415  # rich

    said = page.measured_json(found, refused) if asked.json else page.measured(found, color=wants_color(sys.stdout))
    print(said, end="")
    return 0


def _streams(names: list[str], refused: list[str]) -> list[Recorded]:
    from analysis.studies.jobs.schedulers.measured import recorded  # noqa: PLC0415  # numpy

    found = []
    for run in load_each(names, refused):
        try:
            found += recorded(run, refused)
        except Refused as error:
            refused.append(str(error))
    return found
