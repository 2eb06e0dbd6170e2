"""Where the time of jobs goes, class by class and system by system, and which system runs each class soonest.

Reads saved runs of streams of jobs; cells of equal workload and tweak set are one system, and blocks of a run its replicates. Response time
is divided into waiting for a slot, start-up, computing, held back by the CPU limit, and neither (other processes, disks, other replicas).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "where the time of jobs goes, by class and system; the best system"
EXAMPLE = """\
example:
  python -m analysis jobs profile .benchmarks/*/0001_profile.json

Exit code 0: profiled, whatever was found. 2: bad usage, or no job that was done.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of streams of jobs")


def run(asked: argparse.Namespace) -> int:
    """Print the profile. Raises: Refused."""
    from analysis.studies.jobs.profiles.profile import profile  # noqa: PLC0415  # scipy, which --help need not wait for
    from analysis.studies.jobs.profiles.reading import streams  # noqa: PLC0415  # as above

    refused: list[str] = []
    rows, best = profile(streams(asked.runs, refused))
    for line in refused:
        print("refused:", line, file=sys.stderr)
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.profiles import page  # noqa: PLC0415  # rich

    said = page.profile_json(rows, best, refused) if asked.json else page.profile(rows, best, color=wants_color(sys.stdout))
    print(said, end="")
    return 0
