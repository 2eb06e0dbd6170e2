"""What streams of jobs say of themselves: rate, service times, variation, load, waits, with 95 % intervals.

Reads saved runs that tell of jobs, and CSV (job,submit_s,start_s,end_s; one without starts and ends is a trace of arrivals). Says whether
the data refuse Poisson arrivals and exponential service times, and holds Little's law against every run. Cells under equal conditions are
each other's replicates. What is wrong with a job's times is named.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.jobs.queues.fitting import Fit

HELP = "rate, service times, variation, load and waits of streams of jobs"
EXAMPLE = """\
examples:
  python -m analysis queue fit .benchmarks/*/0001_queueing.json
  python -m analysis queue fit jobs.csv --servers 2

Exit code 0: fitted. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs, and lists of jobs (.csv)")
    parser.add_argument("--servers", metavar="C", type=int, help="slots, where a list of jobs does not tell (column slots)")


def run(asked: argparse.Namespace) -> int:
    """Print the fits. Raises: Refused."""
    refused: list[str] = []
    found = fits(asked.runs, asked.servers, refused)
    for line in refused:
        print("refused:", line, file=sys.stderr)
    if asked.json:
        from analysis.studies.jobs.queues.page import fits_json  # noqa: PLC0415  # only for programs

        print(fits_json(found, refused), end="")
        return 0
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.queues import page  # noqa: PLC0415  # --json has no need of rich

    print(page.fits(found, color=wants_color(sys.stdout)), end="")
    return 0


def fits(names: list[str], servers: int | None, refused: list[str]) -> list[Fit]:
    """Fit every group; those that cannot be are refused, a line each. Raises: Refused, where none can."""
    from analysis.studies.jobs.queues.fitting import fit  # noqa: PLC0415  # scipy takes a second to import
    from analysis.studies.jobs.queues.reading import groups  # noqa: PLC0415  # as above

    found = []
    for group in groups(names, refused):
        try:
            found.append(fit(group, servers))
        except Refused as error:
            refused.append(str(error))
    if not found:
        raise Refused(refused[0])
    return found
