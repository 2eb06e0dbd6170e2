"""Choose the replicas with which jobs of some sizes take nearest the time that all are to take, by a law that was fitted."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

HELP = "replicas for jobs of some sizes, so that all take equally long"
EXAMPLE = """\
example:
  python -m analysis scale choose law.json --target-s 60 --work 0.5,1,8 --most 64

Exit code 0: chosen; a size that no number of replicas fits is said. 2: bad usage.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("law", metavar="LAW", type=Path, help="what `scale fit --json` wrote, or cost_s, serial, crosstalk, startup_s")
    parser.add_argument("--target-s", type=float, required=True, metavar="S", help="how long every job is to take")
    parser.add_argument("--work", required=True, metavar="W,…", help="sizes, in the unit of the fit")
    parser.add_argument("--most", type=int, default=64, metavar="N", help="replicas, at most (default: %(default)s)")


def run(asked: argparse.Namespace) -> int:
    """Print a line for each size. Raises: Refused."""
    from analysis.studies.jobs.scaling import (
        measured,  # rich, which --help need not wait for
        page,  # rich, which --help need not wait for
    )
    from control.scaling import choose  # noqa: PLC0415  # numpy

    law = measured.law(asked.law)
    if not (0 < asked.target_s < float("inf") and 1 <= asked.most <= 1_000_000):
        raise Refused("--target-s is above 0, --most from 1 to 1000000.")
    found = [choose(law, work, asked.target_s, asked.most) for work in _sizes(asked.work)]
    print(page.choices_json(law, asked.target_s, found) if asked.json else page.choices(asked.target_s, found), end="")
    return 0


def _sizes(text: str) -> list[float]:
    try:
        sizes = [float(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or not all(one > 0 and isfinite(one) for one in sizes):
        raise Refused(f"--work {text}: sizes above 0 are expected, such as 0.5,1,8.")
    return sizes
