"""What monitors and profilers cost: CPU seconds, wall time, and what they take themselves, each against none, block by block.

Reads runs of bench_monitoring_overhead, and folders of logs of somebody's study (ex1_model_s.txt, ex1_topLog.txt, …). Nothing is said of a
workload whose two arms without a monitor differ, and "no effect" only where these two agree closely enough to tell.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.monitors.terms import Overhead
    from analysis.terms import Run

GROUP = "study"
HELP = "monitors and profilers: what watching costs"
EXAMPLE = """\
example:
  python -m analysis overhead .benchmarks/*/0001_monitors.json
  python -m analysis overhead .benchmarks/*/0001_monitors.json --json
  python -m analysis overhead MNIST/     logs that a study of others left, one run a condition

Exit code 0: analysed, whatever was found. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN|DIR", nargs="+", help="saved runs of bench_monitoring_overhead, folders of a study's logs")


def run(asked: argparse.Namespace) -> int:
    """Print what each run or folder says."""
    from analysis.studies.monitors import directory  # noqa: PLC0415  # numpy, which --help need not wait for

    folders = [Path(name) for name in asked.runs if directory.is_it(Path(name))]
    refused: list[str] = []
    found = _runs([name for name in asked.runs if Path(name) not in folders], refused)
    if not found and not folders:
        raise Refused(refused[0] if refused else f"{', '.join(asked.runs)}: no run that tells of monitors.")
    for line in refused:
        print("refused:", line, file=sys.stderr)
    if asked.json:
        from analysis.studies.monitors.as_json import as_json  # noqa: PLC0415  # only for programs

        print(as_json(found, [directory.document(folder) for folder in folders], refused), end="")
        return 0
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.monitors import page  # noqa: PLC0415  # --json has no need of rich

    color = wants_color(sys.stdout)
    said = [page.render(one, workloads, color=color) for one, workloads in found]
    said += ["".join(f"{line}\n" for line in directory.lines(folder, color=color)) for folder in folders]
    print("\n".join(said), end="")
    return 0


def _runs(names: list[str], refused: list[str]) -> list[tuple[Run, list[Overhead]]]:
    """Judge every run that tells of monitors; the others are refused, a line each."""
    from analysis.studies.monitors.study import overheads  # noqa: PLC0415  # scipy takes a second to import

    found = []
    for one in load_each(names, refused) if names else ():
        try:
            found.append((one, overheads(one)))
        except Refused as error:
            refused.append(str(error))
    return found
