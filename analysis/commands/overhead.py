"""What monitors and profilers cost: CPU seconds, wall time, and what they take themselves, each against none, block by block.

Reads runs of bench_monitoring_overhead, and folders of logs of somebody's study (ex1_model_s.txt, ex1_topLog.txt, …). Nothing is said of a
workload whose two arms without a monitor differ, and "no effect" only where these two agree closely enough to tell.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
  {JUDGE} overhead MNIST/     logs that a study of others left, one run a condition

Exit code 0: analysed, whatever was found. 2: bad usage, or nothing can be used.
"""


@signature
def run(
    runs: list[str] = option("RUN|DIR", "saved runs of bench_monitoring_overhead, folders of a study's logs", nargs="+"),
) -> Answer:
    from analysis.studies.monitors import folder, folder_answer
    from analysis.studies.monitors.answers import answer

    folders = [Path(name) for name in runs if folder.is_it(Path(name))]
    refused: list[str] = []
    answers = [answer(*entry) for entry in _runs([name for name in runs if Path(name) not in folders], refused)]
    others = [folder_answer.answer(folder.read(path)) for path in folders]
    if not answers and not others:
        raise Refused(refused[0] if refused else f"{', '.join(runs)}: no run that tells of monitors.")
    data = {"runs": [answer.data for answer in answers], "folders": [answer.data for answer in others]}
    return replace(together([*answers, *others]), data=data, refused=refused)


arguments = run.arguments


def _runs(names: list[str], refused: list[str]) -> list[tuple[Run, list[Overhead]]]:
    from analysis.studies.monitors.study import overheads

    result = []
    for one in load_each(names, refused) if names else ():
        try:
            result.append((one, overheads(one)))
        except Refused as error:
            refused.append(str(error))
    return result
