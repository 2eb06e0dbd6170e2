"""Turn saved profiles into files of traces, which `quality` and `fit` read and others' tools too: a CSV a network, in a folder a back-end.

A point that failed is a row that says so (oom, failed, refused) and has no numbers; what was skipped was never tried and is in no file.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.power.traces import PartitionRow

HELP = "saved profiles → files of traces (CSV)"
EXAMPLE = """\
example:
  python -m analysis power traces .benchmarks/*/0001_profile.json -o traces/
  python -m analysis power fit traces/cpu --gpu cpu -o parameters/

Files of these names in the folder are replaced.
Exit code 0: written. 2: bad usage, or no run is a profile.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs of bench_power_profile; those of one device belong together")
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="folder to write_files to")


def run(args: argparse.Namespace) -> int:
    """Write the files and name them."""
    from analysis.studies.power.traces import rows_of, write_files

    refused: list[str] = []
    rows: list[PartitionRow] = []
    for one in load_each(args.runs, refused):
        try:
            rows += rows_of(one, refused)
        except Refused as error:
            refused.append(str(error))
    if not rows:
        raise Refused(refused[0] if refused else f"{', '.join(args.runs)}: no run is a profile.")
    for line in refused:
        print("refused:", line, file=sys.stderr)
    made = write_files(rows, args.output)
    if args.json:
        from analysis.plain import printable_json

        files = [{"path": str(path), "rows": len(part), "outcomes": Counter(row.outcome for row in part)} for path, part in made.items()]
        print(printable_json({"files": files, "refused": refused}), end="")
        return 0
    for path, part in made.items():
        counts = ", ".join(f"{count} {word}" for word, count in Counter(row.outcome for row in part).items())
        print(f"{path}: {len(part)} rows: {counts}")
    return 0
