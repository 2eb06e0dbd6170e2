"""What a training's input did: accelerator utilisation and throughput, and whether they may be believed.

Reads runs of bench_io_patterns and result folders of DLIO, and says of each figure whether its first step is in it.
"""

from __future__ import annotations

from pathlib import Path

from analysis.answer import Answer
from analysis.subcommands import option, signature
from control.called import JUDGE

ANSWERS = True
GROUP = "study"
HELP = "input of a training: utilisation, throughput, DLIO results"
EXAMPLE = f"""\
example:
  {JUDGE} io .benchmarks/*/0001_io.json
  {JUDGE} io results/              DLIO's result folders in it
  {JUDGE} io results/ --plot io/   pictures too; those of a saved run are in its report and in `plot` as well

Exit code 0: analysed. 2: bad usage, or nothing can be used.
"""


@signature
def run(
    runs: list[str] = option("RUN|DIR", "saved runs, DLIO result folders or folders of them", nargs="+"),
    *,
    plot: Path | None = option("DIR", "draw every picture of input into this folder", type=Path),
) -> Answer:
    from analysis.studies.io.answers import answer_of

    return answer_of(runs, plot=plot)


arguments = run.arguments
