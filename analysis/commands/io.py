"""Report the input of training runs: accelerator utilisation, throughput, and their validity.

Reads runs of bench_io_patterns and result folders of DLIO, and states for each figure whether it
includes the first step.
"""

from __future__ import annotations

from pathlib import Path

from analysis.answer import Answer
from analysis.subcommands import option, signature
from control.called import JUDGE

ANSWERS = True
GROUP = "study"
HELP = "input of training runs: utilisation, throughput, DLIO results"
EXAMPLE = f"""\
example:
  {JUDGE} io .benchmarks/*/0001_io.json
  {JUDGE} io results/              all DLIO result folders in it
  {JUDGE} io results/ --plot io/   also draw pictures; `report` and `plot` draw a saved run's too

Exit code 0: analysed. 2: bad usage, or no usable input.
"""


@signature
def run(
    runs: list[str] = option(
        "RUN|DIR", "saved runs, DLIO result folders or folders of them", nargs="+"
    ),
    *,
    plot: Path | None = option("DIR", "draw all pictures of input into this folder", type=Path),
) -> Answer:
    from analysis.studies.io.answers import answer_of

    return answer_of(runs, plot=plot)


arguments = run.arguments
