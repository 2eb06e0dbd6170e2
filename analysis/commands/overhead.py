"""Measure the cost of monitors and profilers: CPU seconds, wall time, and their own usage.

Each is compared with none, block by block. Reads runs of bench_monitoring_overhead. There is no
verdict for a workload whose two arms without a monitor differ, and "no effect" only if these two
agree closely enough.
"""

from __future__ import annotations

from dataclasses import replace

from analysis.answer import Answer, together
from analysis.load import load_each, read_each
from analysis.subcommands import option, signature
from control.called import JUDGE

ANSWERS = True
GROUP = "study"
HELP = "cost of monitors and profilers"
EXAMPLE = f"""\
example:
  {JUDGE} overhead .benchmarks/*/0001_monitors.json
  {JUDGE} overhead .benchmarks/*/0001_monitors.json --json

Exit code 0: analysed, whatever was found. 2: bad usage, or no usable input.
"""


@signature
def run(
    runs: list[str] = option("RUN", "saved runs of bench_monitoring_overhead", nargs="+"),
) -> Answer:
    from analysis.studies.monitors.answers import answer
    from analysis.studies.monitors.study import overheads

    refused: list[str] = []
    answers = [answer(*entry) for entry in read_each(load_each(runs, refused), overheads, refused)]
    return replace(
        together(answers), data={"runs": [answer.data for answer in answers]}, refused=refused
    )


arguments = run.arguments
