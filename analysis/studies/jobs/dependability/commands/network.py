"""Step time against loss of packets, held against what TCP can get through at that loss (Mathis), line by line.

A line is all that was asked for but the loss: delay, MTU, congestion control. Says where it is not that law that decides: arithmetic, the
line itself, timeouts.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

HELP = "step time against packet loss, held against Mathis's law"
EXAMPLE = """\
example:
  python -m analysis depend network .benchmarks/*/0001_network.json

Exit code 0: analysed, whatever was found. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of ddp_network")


def run(asked: argparse.Namespace) -> int:
    """Print what is found. Raises: Refused."""
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.dependability import network  # noqa: PLC0415  # numpy, which --help need not wait for
    from analysis.studies.jobs.dependability.page import (
        loss_json,  # rich
        loss_page,  # rich
    )

    refused: list[str] = []
    found = network.lines(network.trained(asked.runs, refused))
    if all(row.loss == 0 for line in found for row in line.losses):
        raise Refused(f"{', '.join(asked.runs)}: no cell lost packets; ddp_network has loss_percent as a parameter.")
    for line in refused:
        print("refused:", line, file=sys.stderr)
    print(loss_json(found, refused) if asked.json else loss_page(found, color=wants_color(sys.stdout)), end="")
    return 0
