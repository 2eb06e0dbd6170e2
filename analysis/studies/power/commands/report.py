"""What algorithms make of a power cap: throughput, how far the cap is held, energy and latency, each against a baseline, block by block.

Reads runs of bench_power_cap. Back-ends are never mixed; without a sensor nothing is said of a cap; what a plant gave is called simulated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.answer import together
from analysis.load import load_each
from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer
    from analysis.studies.power.report_terms import PowerSide
    from analysis.terms import Run

ANSWERS = True
HELP = "what algorithms make of a cap: throughput, violations, energy, latency"
EXAMPLE = """\
example:
  python -m analysis power report .benchmarks/*/0001_cap.json
  python -m analysis power report .benchmarks/*/0001_cap.json --baseline steady
  python -m analysis plot .benchmarks/*/0001_cap.json     controllers' traces, fronts, predictions

Exit code 0: analysed, whatever was found. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of bench_power_cap")
    parser.add_argument(
        "--baseline", metavar="ALGORITHM", help="what the others are held against (powercap, or the first that has figures)"
    )


def run(args: argparse.Namespace) -> Answer:
    """Say what each run shows."""
    from analysis.studies.power.cells import RULE
    from analysis.studies.power.report import answer

    refused: list[str] = []
    result = [answer(*entry) for entry in _runs(args.runs, args.baseline, refused)]
    if not result:
        raise Refused(refused[0] if refused else f"{', '.join(args.runs)}: no run that tells of a cap.")
    return replace(together(result), data={"steady": RULE, "runs": [answer.data for answer in result]}, refused=refused)


def _runs(names: list[str], baseline: str | None, refused: list[str]) -> list[tuple[Run, list[PowerSide]]]:
    """Judge every run that tells of a cap; the others are refused, a line each."""
    from analysis.studies.power.study import sides

    result = []
    for one in load_each(names, refused):
        try:
            result.append((one, sides(one, refused, baseline)))
        except Refused as error:
            refused.append(str(error))
    return result
