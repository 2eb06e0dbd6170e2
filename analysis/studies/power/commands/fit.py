"""Fit models to traces, one a network and memory clock, and say how wrong they are on rows they were not shown.

Traces are CSV files: anchors (many partitions at one clock), clock series, idle rows of `static`, in one file or several. What is written
is a folder of JSON files that `predict` and `partition` take. Rows that failed are left out, and said.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer

ANSWERS = True
HELP = "traces → parameters, with errors on held-out rows"
EXAMPLE = """\
examples:
  python -m analysis power fit anchors.csv sweep.csv static.csv --gpu 3080Ti -o parameters/
  python -m analysis power fit traces/ --gpu A100 -o parameters/ --as original    the original's formulas and boosted trees

Exit code 0: fitted, and its findings said. 2: bad usage, or nothing can be fitted.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("traces", metavar="CSV|DIR", nargs="+", type=Path, help="files of traces, or folders of them")
    parser.add_argument(
        "--gpu", metavar="NAME", required=True, help="what they were measured on: a name of data/power/gpus.yaml, or another"
    )
    parser.add_argument("-o", "--output", metavar="DIR", required=True, type=Path, help="where to write parameters")
    parser.add_argument("--network", metavar="NAME", help="fit this one alone (default: all there are)")
    parser.add_argument("--as", dest="kind", choices=("own", "original"), default="own", help="which model (default: own)")


def run(args: argparse.Namespace) -> Answer:
    """Fit, write, and say what is to be known of each fit. Raises: Refused."""
    from analysis.answer import of_parts
    from analysis.studies.power import fit

    fitted = fit.fit(args.traces, args.gpu, args.output, kind=args.kind, network=args.network)
    parts = (part for one in fitted for part in ("", *fit.parts(one)))
    return of_parts({"fits": [fit.document(one) for one in fitted]}, parts)
