"""Simulate a GPU for a run: it writes lines of JSON to standard input and reads one answer to each, at once, whatever time was to pass.

First comes {"hello": 1, "parameters", "network", "gpu", "gain_error", "partition_error", "noise_w", "lag_s", "seed", "oom_above_batch",
"refuse_clocks"}, answered by {"ready": true, "knobs"}; then {"apply": settings}, answered by {"applied", "refused"}, and {"run_s": time},
answered by {"samples", "images", "latency_ms", "sm_util_percent", "mem_util_percent", "oom"}. {"error"} says what is wrong, and ends it.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "simulate a GPU that differs from its model, over lines of JSON"
EXAMPLE = """\
example:
  python -m analysis power plant < asked.jsonl

Exit code 0: every line was answered. 2: a line could not be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing can be asked here: all is said in the first line."""
    del parser


def run(asked: argparse.Namespace) -> int:
    """Answer standard input until it ends."""
    del asked
    from analysis.power.control.plant_service import serve  # noqa: PLC0415  # numpy, which --help need not wait for

    return serve(sys.stdin, lambda said: print(json.dumps(said, allow_nan=False), flush=True))
