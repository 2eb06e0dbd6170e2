"""Fit one model to all rows: which factors it leans on, and how far it may be trusted where nobody measured.

The error is that of groups left out, as `predict cv` has it: by configuration where there are five or more, else by run.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.studies.jobs.prediction import asked as common

if TYPE_CHECKING:
    import argparse

HELP = "what a model leans on, and how far it may be trusted"
EXAMPLE = """\
examples:
  python -m analysis predict fit data/runs/io_patterns_*.json --model trees
  python -m analysis predict fit profile.csv --response energy_j

Exit code 0: fitted. 2: bad usage, too few groups, or nothing that varied.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    common.files(parser)
    parser.add_argument(
        "--model", metavar="NAME", default="ridge", help="ridge (default), trees, gp, or a white box: amdahl, usl, work, roofline"
    )


def run(asked: argparse.Namespace) -> int:
    """Print what was fitted. Raises: Refused."""
    from analysis.studies.jobs.prediction.predictions import (
        by_of,  # scikit-learn takes seconds to import
        leans_on,  # scikit-learn takes seconds to import
    )
    from analysis.studies.jobs.prediction.validation import validate  # noqa: PLC0415  # as above

    table = common.table(asked)
    found = validate(table, by_of(table), [asked.model])
    leans = leans_on(table, asked.model)
    if asked.json:
        from analysis.studies.jobs.prediction.page import fitted_json  # noqa: PLC0415  # only for programs

        print(fitted_json(table, asked.model, leans, found), end="")
        return 0
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.prediction import page  # noqa: PLC0415  # --json has no need of rich

    print(page.fitted(table, asked.model, leans, found, color=wants_color(sys.stdout)), end="")
    return 0
