"""Evaluate scaling in simulation: replicas chosen for each job so that all take the target, against one number of replicas for all.

The law that chooses is fitted to a small profile with the noise of --noise, not given. Sizes have the mean 1 and --sizes-cv2; jobs come at
random (Poisson), so that the nodes are busy to --load under the way of scaling that asks most of them. A seed is one stream of jobs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.jobs.scaling.study import ScalingStudy

HELP = "replicas chosen for each job against one number for all, simulated"
EXAMPLE = """\
examples:
  python -m analysis scale simulate law.json --target-s 60
  python -m analysis scale simulate law.json --target-s 60 --nodes 64 --most 16 --load 0.5 --json

Exit code 0: simulated, whatever came of it. 2: bad usage, or a load under which no wait has a mean.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("law", metavar="LAW", type=Path, help="what `scale fit --json` wrote, or cost_s, serial, crosstalk, startup_s")
    parser.add_argument("--target-s", type=float, required=True, metavar="S", help="how long every job is to take")
    parser.add_argument("--nodes", type=int, default=1000, metavar="N", help="there are (default: %(default)s)")
    parser.add_argument("--most", type=int, default=64, metavar="N", help="replicas of one job (default: %(default)s)")
    parser.add_argument("--load", type=float, default=0.7, metavar="RHO", help="part of the nodes that is busy (default: %(default)s)")
    parser.add_argument("--sizes-cv2", type=float, default=1.0, metavar="X", help="of the sizes of jobs (default: %(default)s)")
    parser.add_argument("--noise", type=float, default=0.03, metavar="SD", help="sd of log(time / law's time) (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=5000, metavar="N", help="of each stream (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="streams (default: %(default)s)")


def run(asked: argparse.Namespace) -> int:
    """Print what came of it. Raises: Refused."""
    from analysis.studies.jobs.scaling import (
        page,  # numpy, scipy and simpy, which --help need not wait for
        study,  # numpy, scipy and simpy, which --help need not wait for
    )

    wanted = _wanted(asked)
    found = study.evaluate(wanted)
    print(page.study_json(wanted, found) if asked.json else page.study(wanted, found), end="")
    return 0


def _wanted(asked: argparse.Namespace) -> ScalingStudy:
    from analysis.studies.jobs.scaling.measured import law  # noqa: PLC0415  # as above
    from analysis.studies.jobs.scaling.study import ScalingStudy  # noqa: PLC0415  # as above

    if not (20 <= asked.jobs <= 10_000_000 and 1 <= asked.seeds <= 10_000 and 3 <= asked.most <= asked.nodes <= 10_000_000):
        raise Refused("--jobs is 20 or more, --seeds 1 or more, --most 3 or more and no more than --nodes.")
    if not (0 < asked.target_s < float("inf") and 0 <= asked.sizes_cv2 <= 1000 and 0 < asked.noise <= 1):
        raise Refused("--target-s is above 0, --sizes-cv2 from 0 to 1000, --noise above 0 and at most 1.")
    return ScalingStudy(
        law(asked.law), asked.target_s, asked.nodes, asked.most, asked.load, asked.sizes_cv2, asked.noise, asked.jobs, asked.seeds
    )
