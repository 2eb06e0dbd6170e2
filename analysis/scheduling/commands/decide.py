"""Tell a dispatcher which waiting job to start next: it writes lines of JSON to standard input and reads one answer to each.

First comes {"hello": 1, "policy": "sjf", "slots": {"any": 2}}, answered {"ready": true, …}; then, whenever jobs came or ended,
{"at_s": 1.25, "submitted": [{"job": 3, "predicted_s": 0.4}], "ended": [1]}, answered {"start": [{"job": 3, "slots": "any"}]}. A job may
also have `class`, `priority` (the lower first), `replicas` (started together), `due_s` and `tenant`; `predicted_s` may be by kind of slot.
{"away": {"any": 1}} says how many slots are lost until it is said anew.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

HELP = "tell a dispatcher what to start next, over lines of JSON"
EXAMPLE = """\
example:
  python -m analysis schedule decide < events.jsonl

Exit code 0: every line was answered. 2: a line could not be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing can be asked here: all is said in the first line."""
    del parser


def run(asked: argparse.Namespace) -> int:
    """Answer standard input until it ends."""
    del asked
    from analysis.scheduling.service import serve  # noqa: PLC0415  # --help need not wait for it

    return serve(sys.stdin, lambda said: print(json.dumps(said, allow_nan=False), flush=True))
