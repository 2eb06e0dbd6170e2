"""The fastest batch and power limit under a cap on mean power, looked for in a table of jobs as if each point had to be measured first.

Reads tables of the form of Zeus' (dataset, network, batch_size, optimizer, power_limit, time_per_epoch, average_power). Said is what the
search answers, how many points it needed, and how much slower that is than the best of all.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer
    from analysis.studies.power.limits import JudgedJob

ANSWERS = True
HELP = "the fastest batch and power limit under a cap, from few points"
EXAMPLE = """\
example:
  python -m analysis power limits zeus_power_limit_v100.csv --cap 150
  python -m analysis power limits zeus_power_limit_v100.csv --cap 150 --network resnet50

Exit code 0: answered, also that nothing is within the cap. 2: bad usage, or no such job.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("table", metavar="CSV", type=Path, help="a table of jobs, each at several batches and limits")
    parser.add_argument("--cap", metavar="W", type=float, required=True, help="the cap on mean power, W")
    parser.add_argument("--network", metavar="NAME", help="jobs of this one alone (default: all)")


def run(args: argparse.Namespace) -> Answer:
    """Say what the search answers for each job. Raises: Refused."""
    from analysis.answer import of_parts
    from analysis.studies.power.limits import judge_all, read

    if not 0 < args.cap < float("inf"):
        raise Refused(f"--cap {args.cap:g}: it is a number of watts above 0.")
    result = judge_all(read(args.table), args.cap, args.network)
    return of_parts({"jobs": [_document(judged) for judged in result]}, map(_line, result))


def _line(judged: JudgedJob) -> str:
    name = " ".join(judged.job)
    if judged.answer is None or judged.slower is None:
        return f"{name}: nothing within {judged.cap_w:g} W was found in {judged.measured} of {judged.points} points"
    at = f"batch {judged.answer.at.batch} at a limit of {judged.answer.at.limit_w:g} W"
    text = f"{1.0 / judged.answer.speed:.4g} s an epoch at {judged.answer.power_w:.1f} W"
    return (
        f"{name}: {at}: {text}; {judged.measured} of {judged.points} points measured, {100.0 * judged.slower:.2f} "
        "% slower than the best of all"
    )


def _document(judged: JudgedJob) -> dict[str, object]:
    return {
        "dataset": judged.job[0],
        "network": judged.job[1],
        "optimizer": judged.job[2],
        "cap_w": judged.cap_w,
        "batch": judged.answer and judged.answer.at.batch,
        "limit_w": judged.answer and judged.answer.at.limit_w,
        "epoch_s": judged.answer and 1.0 / judged.answer.speed,
        "power_mean_w": judged.answer and judged.answer.power_w,
        "slower_than_best": judged.slower,
        "measured": judged.measured,
        "points": judged.points,
    }
