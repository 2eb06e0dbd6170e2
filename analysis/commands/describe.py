"""What is inside runs: steps, whether they settled, energy, GPU use, noise of blocks and of steps.

It describes runs; a verdict on a tweak is `compare`'s business.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from analysis.studies.describe.words import Described
    from analysis.terms import Run

HELP = "what is inside runs: steps, stationarity, energy, noise"
EXAMPLE = """\
example:
  python -m analysis describe .benchmarks/*/0001_exp1.json
  python -m analysis describe data/one_node_one_gpu --json       a DeepTweak directory

Exit code 0: described. 2: bad usage, or no file can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs, quoted globs, folders of them, DeepTweak directories")


def run(asked: argparse.Namespace) -> int:
    """Print the descriptions, one run after the other."""
    from analysis.studies.describe.describe import describe  # noqa: PLC0415  # scipy takes a second to import

    refused: list[str] = []
    found: list[tuple[Run, list[Described]]] = []
    for one in load_each(asked.runs, refused):
        try:
            found.append((one, describe(one)))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # What the reader let through and arithmetic choked on: the file's fault to the user, and named for whoever mends the reader.
            refused.append(f"{one.origin}: cannot be described ({type(error).__name__}: {error}); the file is damaged or was edited.")
    if not found:
        raise Refused(refused[0])
    for line in refused:
        print("refused:", line, file=sys.stderr)
    print(as_json(found, refused) if asked.json else _text(found), end="")
    return 0


def _text(found: Sequence[tuple[Run, Sequence[Described]]]) -> str:
    from analysis.render.text import wants_color  # noqa: PLC0415
    from analysis.studies.describe.page import render_description  # noqa: PLC0415  # --json has no need of rich

    return "\n".join(render_description(one, workloads, color=wants_color(sys.stdout)) for one, workloads in found)


def as_json(found: Sequence[tuple[Run, Sequence[Described]]], refused: Sequence[str]) -> str:
    """Write descriptions for programs: the fields are those of `describing/words.py` and `sampled.Sampled`, units in their names."""
    said: list[Mapping[str, object]] = [
        {
            "run_id": one.run_id,
            "origin": one.origin,
            "warnings": list(one.warnings),
            "workloads": [asdict(workload) for workload in workloads],
        }
        for one, workloads in found
    ]
    return json.dumps({"runs": said, "refused": list(refused)}, indent=2, allow_nan=False) + "\n"
