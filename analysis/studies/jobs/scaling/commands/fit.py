"""Fit Amdahl's law and Gunther's to measured times: what one unit of work costs, which part no replica shortens, what they cost each other.

Reads saved runs of streams of jobs (those that were done, with their size), and CSV with the columns replicas, time_s and, where sizes
differ, work. The better law, by AICc, comes first. The error is that of jobs whose number of replicas and size were left out of the fit.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "laws of speed-up, fitted to measured times"
EXAMPLE = """\
examples:
  python -m analysis scale fit profile.csv
  python -m analysis scale fit .benchmarks/*/0001_scaling.json --json > law.json

Exit code 0: fitted. 2: bad usage, or nothing that tells how time falls with replicas.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN|CSV", nargs="+", help="saved runs of streams of jobs, or CSV: replicas, work, time_s")


def run(asked: argparse.Namespace) -> int:
    """Print the laws. Raises: Refused."""
    from analysis.studies.jobs.scaling import (
        measured,  # numpy and scipy, which --help need not wait for
        page,  # numpy and scipy, which --help need not wait for
    )
    from control import scaling  # noqa: PLC0415  # as above

    points, left_out = measured.points(asked.runs)
    for line in left_out:
        print("left out:", line, file=sys.stderr)
    found = [replace(one, held_out=scaling.held_out(points, one)) for one in scaling.fits(points)]
    print(page.fits_json(found) if asked.json else page.fits(found), end="")
    return 0
