"""What algorithms make of a power cap: throughput, how far the cap is held, energy and latency, each against a baseline, block by block.

Reads runs of bench_power_cap. Back-ends are never mixed; without a sensor nothing is said of a cap; what a plant gave is called simulated.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.power.reporting.terms import Side
    from analysis.terms import Run

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


def run(asked: argparse.Namespace) -> int:
    """Print what each run says."""
    refused: list[str] = []
    found = _runs(asked.runs, asked.baseline, refused)
    if not found:
        raise Refused(refused[0] if refused else f"{', '.join(asked.runs)}: no run that tells of a cap.")
    for line in refused:
        print("refused:", line, file=sys.stderr)
    if asked.json:
        from analysis.studies.power.reporting.as_json import as_json  # noqa: PLC0415  # only for programs

        print(as_json(found, refused), end="")
        return 0
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.power.reporting import page  # noqa: PLC0415  # --json has no need of rich

    color = wants_color(sys.stdout)
    print("\n".join(page.render(one, sides, color=color) for one, sides in found), end="")
    return 0


def _runs(names: list[str], baseline: str | None, refused: list[str]) -> list[tuple[Run, list[Side]]]:
    """Judge every run that tells of a cap; the others are refused, a line each."""
    from analysis.studies.power.reporting.study import sides  # noqa: PLC0415  # scipy takes a second to import

    found = []
    for one in load_each(names, refused):
        try:
            found.append((one, sides(one, refused, baseline)))
        except Refused as error:
            refused.append(str(error))
    return found
