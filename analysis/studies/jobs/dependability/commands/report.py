"""What each fault cost: recovery, lost work, goodput and slowdown against the same jobs without it, block by block.

Hogs and floods have a verdict on isolation; poisoned clients what accuracy they cost. Streams of one block met the same jobs; those
without a fault are what the others are held against.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "recovery, lost work, goodput, slowdown, isolation, accuracy"
EXAMPLE = """\
examples:
  python -m analysis depend report .benchmarks/*/0001_faults.json
  python -m analysis depend report .benchmarks/*/0001_faults.json --margin 20% --json

Exit code 0: judged, whatever was found. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of streams of jobs")
    parser.add_argument("--margin", metavar="PERCENT", default="10%", help="how much slower is still isolated (10%%)")


def run(asked: argparse.Namespace) -> int:
    """Print the verdicts. Raises: Refused."""
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.dependability import (
        records,  # numpy, which --help need not wait for
        study,  # numpy, which --help need not wait for
    )
    from analysis.studies.jobs.dependability.page import (
        report,  # rich
        report_json,  # rich
    )
    from analysis.wording import parse_percent  # noqa: PLC0415  # as above

    margin = parse_percent(asked.margin)
    refused: list[str] = []
    streams = records.streams(asked.runs, refused)
    arms, spared, poisonings = study.arms(streams, margin), study.spared(streams), study.poisonings(streams)
    for line in refused:
        print("refused:", line, file=sys.stderr)
    found = (arms, spared, poisonings, margin)
    said = report_json(*found, refused) if asked.json else report(*found, color=wants_color(sys.stdout))
    print(said, end="")
    return 0
