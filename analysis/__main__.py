"""`python -m analysis`: what saved runs say, on a terminal or as JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from .checks import warnings_of
from .compare import compare
from .load import load
from .terms import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Comparison, Run

USAGE_ERROR = 2
COMPARE_EXAMPLE = """\
example:
  pytest benchmarks/ --benchmark-save=exp1
  python -m analysis compare .benchmarks/*/0001_exp1.json
  python -m analysis compare .benchmarks/*/0001_exp1.json --baseline thp-never --json

Exit code 0: compared, whatever was found. 2: bad usage, or the file cannot be used.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code."""
    parser = argparse.ArgumentParser(prog="python -m analysis", description="What saved runs say.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "compare",
        help="tweak sets of one saved run against its baseline",
        description="Compare the tweak sets of one saved run with its baseline: effect, 95 %% interval, verdict.",
        epilog=COMPARE_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("run", metavar="RUN.json", help="a file saved by `pytest benchmarks/ --benchmark-save=NAME`")
    command.add_argument("--baseline", default="stock", metavar="TWEAKSET", help="compare with this tweak set (default: %(default)s)")
    command.add_argument("--json", action="store_true", help="write JSON instead of a table")
    asked = parser.parse_args(arguments)
    # A terminal that cannot show a character gets a question mark in its place, not a traceback.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        run = load(asked.run)
        comparisons = compare(run, asked.baseline)
        print(as_json(comparisons, run) if asked.json else _table(comparisons, run), end="", flush=True)
    except Refused as error:
        return _refused(str(error))
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        # What the reader let through and arithmetic choked on: the file's fault to the user, and named for whoever mends the reader.
        return _refused(f"{asked.run}: cannot be compared ({type(error).__name__}: {error}); the file is damaged or was edited.")
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep the interpreter from complaining again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _refused(what: str) -> int:
    print("error:", " ".join(what.splitlines()), file=sys.stderr)
    return USAGE_ERROR


def _table(comparisons: Sequence[Comparison], run: Run) -> str:
    from .table import render_table, wants_color  # noqa: PLC0415  # --json has no need of rich

    return render_table(comparisons, run, color=wants_color(sys.stdout))


def as_json(comparisons: Sequence[Comparison], run: Run) -> str:
    """Write comparisons for programs: gains are fractions, above 0 is better (see `terms.Effect`)."""
    said = {
        "run_id": run.run_id,
        "origin": run.origin,
        "warnings": warnings_of(run, comparisons),
        "comparisons": [asdict(one) for one in comparisons],
    }
    return json.dumps(said, indent=2, allow_nan=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
