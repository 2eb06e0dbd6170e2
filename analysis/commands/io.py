"""What a training's input did: accelerator utilisation and throughput, and whether they may be believed.

Reads runs of bench_io_patterns and result folders of DLIO, and says of each figure whether its first step is in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.wording import whole

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer

ANSWERS = True
GROUP = "study"
HELP = "input of a training: utilisation, throughput, DLIO results"
EXAMPLE = """\
example:
  python -m analysis io .benchmarks/*/0001_io.json
  python -m analysis io results/              DLIO's result folders in it, and a published table
  python -m analysis io results/ --plot io/   pictures too; those of a saved run are in its report and in `plot` as well
  python -m analysis io results/ --mlperf     what they lack to be a submission to MLPerf Storage

Exit code 0: analysed. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN|DIR", nargs="+", help="saved runs, DLIO result folders or folders of them, published tables")
    parser.add_argument("--mlperf", action="store_true", help="say what each setting lacks to be a submission to MLPerf Storage v2.0")
    parser.add_argument("--plot", metavar="DIR", type=Path, help="draw every picture of input into this folder")
    parser.add_argument("--exclude-start", metavar="N", type=whole(), help="steps left out of steady figures at an epoch's start")
    parser.add_argument("--exclude-end", metavar="N", type=whole(), help="the same at its end; otherwise as each run says (1 and 0)")


def run(args: argparse.Namespace) -> Answer:
    from analysis.studies.io.sources import answer_of

    return answer_of(args.runs, (args.exclude_start, args.exclude_end), rules=args.mlperf, plot=args.plot)
