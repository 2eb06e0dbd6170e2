"""Decide for a run what to set, iteration by iteration: it writes lines of JSON to standard input and reads one answer to each.

First comes {"hello": 1, "algorithm", "task": {"gpu", "model"}, "caps", "cap_unit", "iterations", "seed", "shadow", "parameters", "slo_ms",
"margin", "knobs"}, then {"observed": {…}} after each iteration. The answer has `settings`, `why` and `predicted`, or is one of
`unsupported`, `infeasible` (with `smallest_cap`) and `error`, each a sentence, after which nothing more comes.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "decide for a run what to set next, over lines of JSON"
EXAMPLE = """\
example:
  python -m analysis power decide < asked.jsonl

Exit code 0: every line was answered. 2: a line could not be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing can be asked here: all is said in the first line."""
    del parser


def run(asked: argparse.Namespace) -> int:
    """Answer standard input until it ends."""
    del asked
    from analysis.power.control.service import serve  # noqa: PLC0415  # --help need not wait for it

    return serve(sys.stdin, lambda said: print(json.dumps(said, allow_nan=False), flush=True))
