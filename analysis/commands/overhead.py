"""What monitors and profilers cost: CPU seconds, wall time, and what they take themselves, each against none, block by block.

Reads runs of bench_monitoring_overhead. Nothing is said of a workload whose two arms without a monitor differ, and "no effect" only where
these two agree closely enough to tell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.answer import Answer, together
from analysis.load import load_each
from analysis.subcommands import option, signature
from analysis.terms import Refused, Run
from control.called import JUDGE

if TYPE_CHECKING:
    from analysis.studies.monitors.terms import Overhead

ANSWERS = True
GROUP = "study"
HELP = "monitors and profilers: what watching costs"
EXAMPLE = f"""\
example:
  {JUDGE} overhead .benchmarks/*/0001_monitors.json
  {JUDGE} overhead .benchmarks/*/0001_monitors.json --json

Exit code 0: analysed, whatever was found. 2: bad usage, or nothing can be used.
"""


@signature
def run(
    runs: list[str] = option("RUN", "saved runs of bench_monitoring_overhead", nargs="+"),
) -> Answer:
    from analysis.studies.monitors.answers import answer

    refused: list[str] = []
    answers = [answer(*entry) for entry in _runs(runs, refused)]
    if not answers:
        raise Refused(refused[0] if refused else f"{', '.join(runs)}: no run that tells of monitors.")
    return replace(together(answers), data={"runs": [answer.data for answer in answers]}, refused=refused)


arguments = run.arguments


def _runs(names: list[str], refused: list[str]) -> list[tuple[Run, list[Overhead]]]:
    from analysis.studies.monitors.study import overheads

    result = []
    for one in load_each(names, refused):
        try:
            result.append((one, overheads(one)))
        except Refused as error:
            refused.append(str(error))
    return result
