"""Tell whoever starts jobs how many replicas each gets, so that all take a target: it writes lines of JSON, and reads an answer to each.

First comes {"hello": 1, "target_s": 2, "most": 8, "classes": {"train": [{"replicas": 1, "work": 500, "time_s": 3.1}, …]}}: jobs that were
measured for it, to which the better of Amdahl's law and Gunther's is fitted. It is answered {"ready": true, "laws": …}; then {"jobs":
[{"class": "train", "work": 700}]}, answered {"choices": [{"replicas": 3, "predicted_s": 2.04, "within": true}]}.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "tell whoever starts jobs how many replicas each gets, over lines of JSON"
EXAMPLE = """\
example:
  python -m analysis scale decide < jobs.jsonl

Exit code 0: every line was answered. 2: a line could not be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing can be asked here: all is said in the first line."""
    del parser


def run(asked: argparse.Namespace) -> int:
    """Answer standard input until it ends."""
    del asked
    from analysis.scaling.deciding import serve  # noqa: PLC0415  # --help need not wait for numpy and scipy

    return serve(sys.stdin, lambda said: print(json.dumps(said, allow_nan=False), flush=True))
