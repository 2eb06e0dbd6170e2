"""How often to write a checkpoint: by Young, by Daly, exactly, and where runs tried several intervals, by what was measured.

With runs, cost and mean time between failures are those measured, unless they are given. The MTBF is that of one job while it runs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.jobs.dependability.checkpoints import CheckpointTrial
    from analysis.studies.jobs.dependability.intervals import Advice

HELP = "the interval between checkpoints: Young, Daly, and measured"
EXAMPLE = """\
examples:
  python -m analysis depend checkpoint --cost-s 300 --mtbf-s 86400
  python -m analysis depend checkpoint .benchmarks/*/0001_faults.json

Exit code 0: worked out. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="*", help="saved runs in which several checkpoint_s met one fault")
    parser.add_argument("--cost-s", metavar="S", type=float, help="what a checkpoint takes")
    parser.add_argument("--mtbf-s", metavar="S", type=float, help="mean time between failures of a running job")


def run(asked: argparse.Namespace) -> int:
    """Print the intervals. Raises: Refused."""
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.dependability import (
        intervals,  # rich, which --help need not wait for
        page,  # rich, which --help need not wait for
    )

    given = asked.cost_s is not None and asked.mtbf_s is not None
    if not asked.runs and not given:
        raise Refused("give --cost-s and --mtbf-s, or runs in which they were measured.")
    refused: list[str] = []
    trials = _trials(asked, refused) if asked.runs else []
    advice = intervals.advise(asked.cost_s, asked.mtbf_s) if given else None
    for line in refused:
        print("refused:", line, file=sys.stderr)
    if asked.json:
        print(page.advice_json(advice, trials, refused), end="")
    else:
        print(page.advice_page(advice, trials, color=wants_color(sys.stdout)), end="")
    return 0


def _trials(asked: argparse.Namespace, refused: list[str]) -> list[tuple[CheckpointTrial, Advice | None]]:
    from analysis.studies.jobs.dependability import (
        checkpoints,  # numpy
        records,  # numpy
    )

    found = checkpoints.trials(records.streams(asked.runs, refused))
    if not found:
        raise Refused(f"{', '.join(asked.runs)}: no fault met more than one checkpoint_s; `job_stream` has both as parameters.")
    return [(one, _advice(asked, one)) for one in found]


def _advice(asked: argparse.Namespace, trial: CheckpointTrial) -> Advice | None:
    from analysis.studies.jobs.dependability.intervals import advise  # noqa: PLC0415  # as above

    cost_s = asked.cost_s if asked.cost_s is not None else trial.cost_s
    mtbf_s = asked.mtbf_s if asked.mtbf_s is not None else trial.mtbf_s and trial.mtbf_s.value
    return advise(cost_s, mtbf_s, trial.restart_s or 0.0) if cost_s and mtbf_s else None
