"""How many blocks a run needs to find an effect, and how long it takes, by the noise of a pilot run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.files import damaged
from analysis.load import load
from analysis.terms import Refused
from analysis.wording import parse_percent

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer

ANSWERS = True
GROUP = "design"
HELP = "blocks and time needed to find an effect, by a pilot's noise"
EXAMPLE = """\
example:
  pytest benchmarks/ --blocks=4 --benchmark-save=pilot
  python -m analysis plan --effect 3% .benchmarks/*/0001_pilot.json
  python -m analysis plan --effect 3% pilot.json --power 0.9 --looks 4
  python -m analysis plan --effect 3% pilot.json --blocks 20     what 20 blocks would see

Exit code 0: planned. 2: bad usage, the file cannot be used, or it holds no replicates to plan from.
"""

LEAST_EFFECT = 0.0001


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pilot", metavar="PILOT.json", help="a saved run of the same workloads and tweak sets on the same machine")
    parser.add_argument("--effect", required=True, metavar="PERCENT", help="smallest change of speed that matters, such as 3%%")
    parser.add_argument("--power", type=float, default=0.8, metavar="SHARE", help="how often it shall be found (default: %(default)s)")
    parser.add_argument("--blocks", type=int, metavar="N", help="what so many blocks would see (default: as many as the pilot has)")
    parser.add_argument("--looks", type=int, metavar="K", help="bounds for looking K times and stopping early")


def run(args: argparse.Namespace) -> Answer:
    from analysis.studies.plan.answer import answer
    from analysis.studies.plan.plan import Goal, looks_of, plan

    if not 0.5 <= args.power <= 0.999:
        raise Refused(f"--power {args.power}: how often the effect shall be found, from 0.5 to 0.999.")
    if args.blocks is not None and args.blocks < 3:
        raise Refused(f"--blocks {args.blocks}: fewer than 3 are never compared.")
    pilot = load(args.pilot)
    goal = Goal(_effect(args.effect), args.power, args.blocks)
    with damaged(args.pilot, "planned from"):
        result = plan(pilot, goal)
    looks = None
    if args.looks is not None:
        if result.blocks is None:
            raise Refused(f"{args.pilot}: no number of blocks finds {args.effect}, so there is nothing to look at.")
        looks = looks_of(args.looks, result.blocks, min(need.alpha for need in result.needs), args.power)
    return answer(result, looks, pilot)


def _effect(text: str) -> float:
    share = parse_percent(text)
    if share < LEAST_EFFECT:
        raise Refused(f"--effect {text}: less than 0.01 %, which no machine holds still enough to show; name a larger one.")
    return share
