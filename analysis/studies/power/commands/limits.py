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

    from analysis.studies.power.limits import Judged

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


def run(asked: argparse.Namespace) -> int:
    """Print what the search answers for each job. Raises: Refused."""
    from analysis.studies.power.limits import judge_all, read  # noqa: PLC0415  # scipy, as above

    if not 0 < asked.cap < float("inf"):
        raise Refused(f"--cap {asked.cap:g}: it is a number of watts above 0.")
    found = judge_all(read(asked.table), asked.cap, asked.network)
    if asked.json:
        from analysis.plain import printable_json  # noqa: PLC0415  # only for programs

        print(printable_json([_document(one) for one in found]), end="")
    else:
        print("\n".join(_line(one) for one in found))
    return 0


def _line(one: Judged) -> str:
    from analysis.plain import one_line  # noqa: PLC0415  # as above

    name = one_line(" ".join(one.job))
    if one.answer is None or one.slower is None:
        return f"{name}: nothing within {one.cap_w:g} W was found in {one.measured} of {one.points} points"
    at = f"batch {one.answer.at.batch} at a limit of {one.answer.at.limit_w:g} W"
    said = f"{1.0 / one.answer.speed:.4g} s an epoch at {one.answer.power_w:.1f} W"
    return f"{name}: {at}: {said}; {one.measured} of {one.points} points measured, {100.0 * one.slower:.2f} % slower than the best of all"


def _document(one: Judged) -> dict[str, object]:
    return {
        "dataset": one.job[0],
        "network": one.job[1],
        "optimizer": one.job[2],
        "cap_w": one.cap_w,
        "batch": one.answer and one.answer.at.batch,
        "limit_w": one.answer and one.answer.at.limit_w,
        "epoch_s": one.answer and 1.0 / one.answer.speed,
        "power_mean_w": one.answer and one.answer.power_w,
        "slower_than_best": one.slower,
        "measured": one.measured,
        "points": one.points,
    }
