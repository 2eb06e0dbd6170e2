"""Checkpoint intervals in simulation, against Daly's: jobs with an end, a time to restart, failures that come in bunches.

Every interval meets the same failures. Without --intervals those around Daly's are played.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

HELP = "checkpoint intervals simulated, against Daly's"
EXAMPLE = """\
examples:
  python -m analysis depend simulate --cost-s 300 --mtbf-s 86400 --work-s 8640000
  python -m analysis depend simulate --cost-s 300 --mtbf-s 86400 --work-s 8640000 --shape 0.7 --intervals-s 3600,7200

Exit code 0: simulated, whatever came of it. 2: bad usage, or what would take too long to play.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("--cost-s", metavar="S", type=float, required=True, help="what a checkpoint takes")
    parser.add_argument("--mtbf-s", metavar="S", type=float, required=True, help="mean time between failures of a running job")
    parser.add_argument("--work-s", metavar="S", type=float, required=True, help="of one job, without failures and checkpoints")
    parser.add_argument("--restart-s", metavar="S", type=float, default=0.0, help="from a failure to the next attempt (default: 0)")
    parser.add_argument("--shape", metavar="K", type=float, default=1.0, help="of Weibull's law; below 1 failures come in bunches (1)")
    parser.add_argument("--intervals-s", metavar="S,…", help="to play (default: a quarter of Daly's to four times it)")
    parser.add_argument("--seeds", metavar="N", type=int, default=100, help="jobs (default: %(default)s)")


def run(asked: argparse.Namespace) -> int:
    """Print what came of it. Raises: Refused."""
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.dependability import (
        intervals,  # numpy and simpy, which --help need not wait for
        page,  # numpy and simpy, which --help need not wait for
    )

    times = (asked.cost_s, asked.mtbf_s, asked.work_s, asked.restart_s)
    wanted = intervals.CheckpointPlan(*times, asked.shape, asked.seeds, _intervals(asked.intervals_s))
    advice, found = intervals.simulate(wanted)
    if asked.json:
        print(page.simulated_json(wanted, advice, found), end="")
    else:
        print(page.simulated_page(wanted, advice, found, color=wants_color(sys.stdout)), end="")
    return 0


def _intervals(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise Refused(f"--intervals-s {text}: write seconds, such as 3600,7200.") from None
