"""Show the answer of a saved run's study, or verdicts if it belongs to none.

A saved run without a command does the same.
"""

from __future__ import annotations

from analysis.answer import Answer
from analysis.arms import read_arm
from analysis.subcommands import option, signature
from analysis.terms import Refused
from control.called import JUDGE

ANSWERS = True
GROUP = "run"
HELP = "the answer of a saved run, for any study"
EXAMPLE = f"""\
example:
  {JUDGE} show .benchmarks/*/0001_exp1.json
  {JUDGE} .benchmarks/*/0001_exp1.json        the same

Exit code 0: shown, whatever was found. 2: bad usage, or the file cannot be used.
"""


@signature
def run(
    run: str = option("RUN", "a saved run"),
) -> Answer:
    from analysis.ending import answer_of_run

    refused: list[str] = []
    arm = read_arm(run, refused)
    if len(arm.runs) != 1:
        raise Refused(
            f"{run}: has {len(arm.runs)} runs; name one, or use `history` or `compare` for several."
        )
    return answer_of_run(arm.runs[0], brief=False, refused=refused, source=run)


arguments = run.arguments
