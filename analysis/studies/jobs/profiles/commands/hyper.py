"""How soon jobs that learn reach their accuracy, by hyper-parameters: every point of the grid, the best one, and effects.

Reads saved runs of streams of `train` jobs with an `accuracy`, over which some parameters were varied (--vary batch=16,64). A point whose
jobs do not all reach the accuracy has no mean time to it, and never wins. Effects and their analysis of variance are of ratios.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "time to an accuracy by hyper-parameters: points, the best, effects"
EXAMPLE = """\
example:
  python -m analysis jobs hyper .benchmarks/*/0001_hyper.json

Exit code 0: analysed, whatever was found. 2: bad usage, or no job that learns.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of streams of jobs that learn")


def run(asked: argparse.Namespace) -> int:
    """Print what was learned of learning. Raises: Refused."""
    from analysis.studies.jobs.profiles.hyper import hyper  # noqa: PLC0415  # statsmodels, which --help need not wait for
    from analysis.studies.jobs.profiles.reading import streams  # noqa: PLC0415  # as above

    refused: list[str] = []
    found = hyper(streams(asked.runs, refused))
    for line in refused:
        print("refused:", line, file=sys.stderr)
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.profiles import page  # noqa: PLC0415  # rich

    print(page.hyper_json(found, refused) if asked.json else page.hyper(found, color=wants_color(sys.stdout)), end="")
    return 0
