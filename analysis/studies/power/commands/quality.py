"""Whether traces or parameters can be trusted.

Found are rows stored as zeros, copies of another network, values on the bounds of their fit, curves that fall with the clock,
and impossible values. A finding marked ! refuses: `fit` builds nothing on it. The others are notes to read an answer with.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analysis.answer import Answer

ANSWERS = True
HELP = "what is wrong with traces or parameters"
EXAMPLE = """\
examples:
  python -m analysis power quality traces.csv sweep.csv      files of traces, looked at together
  python -m analysis power quality parameters/               a folder of parameters

Exit code 0: nothing that refuses. 1: something does. 2: bad usage, or nothing can be read.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("paths", metavar="PATH", type=Path, nargs="+", help="files of traces (.csv), folders or files of parameters")


def run(args: argparse.Namespace) -> Answer:
    """Say what was found. Raises: Refused."""
    from analysis.answer import of_parts
    from analysis.studies.power.quality import document, looked_at, parts

    looked = looked_at(args.paths)
    return replace(of_parts(document(looked), parts(looked)), exit_code=int(any(finding.refuses for finding in looked.findings)))
