"""Replicas that were chosen for each job, so that all run equally long, against one number for all: on real jobs, the same for both.

Reads saved runs of streams of jobs, some with `target_s`. Says how many jobs ran for the target ±10 %, what they took of the nodes, how far
the law was off that chose, and what was measured to fit it. Streams are paired by their jobs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.jobs.scaling.measured import MeasuredStream

HELP = "replicas chosen for each job against one number for all, on real jobs"
EXAMPLE = """\
example:
  python -m analysis scale report .benchmarks/*/0001_scaling.json

Exit code 0: analysed, whatever was found. 2: bad usage, or nothing was chosen.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of streams of jobs")


def run(asked: argparse.Namespace) -> int:
    """Print what came of it. Raises: Refused."""
    from analysis.studies.jobs.scaling.measured import reports  # noqa: PLC0415  # numpy and scipy, which --help need not wait for

    refused: list[str] = []
    streams = _streams(asked.runs, refused)
    if not streams:
        raise Refused(refused[0] if refused else f"{', '.join(asked.runs)}: no run that tells of jobs.")
    found = reports(streams)
    for line in refused:
        print("refused:", line, file=sys.stderr)
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.scaling import page  # noqa: PLC0415  # rich

    print(page.reports_json(found, refused) if asked.json else page.reports(found, color=wants_color(sys.stdout)), end="")
    return 0


def _streams(names: list[str], refused: list[str]) -> list[MeasuredStream]:
    from analysis.load import load_each  # noqa: PLC0415  # as above
    from analysis.studies.jobs.profiles.one_machine import of_one_machine  # noqa: PLC0415  # as above
    from analysis.studies.jobs.scaling.measured import measured  # noqa: PLC0415  # as above

    found: list[MeasuredStream] = []
    for run in of_one_machine(load_each(names, refused), refused):
        try:
            found += measured(run, refused)
        except Refused as error:
            refused.append(str(error))
    return found
