"""Predict points: `--at` says the factors of one, a CSV of `--points` those of many; every extrapolation is named.

A factor that is not said has its commonest value among the rows that agree with the rest. Intervals are for a group that was never
measured: the next configuration, or where there are fewer than five of these, the next run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.studies.jobs.prediction import asked as common
from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

HELP = "predict points, with intervals, extrapolations named"
EXAMPLE = """\
examples:
  python -m analysis predict show data/runs/io_patterns_*.json --at cache=warm format=png
  python -m analysis predict show profile.csv --model gp --points wanted.csv --level 80%

Exit code 0: predicted. 2: bad usage, or nothing that varied.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    common.files(parser)
    parser.add_argument(
        "--model", metavar="NAME", default="ridge", help="ridge (default), trees, gp, or a white box: amdahl, usl, work, roofline"
    )
    parser.add_argument(
        "--at", metavar="FACTOR=VALUE", nargs="+", action="append", default=[], help="one point; may be given several times"
    )
    parser.add_argument("--points", metavar="CSV", type=Path, help="many points: a column a factor")
    parser.add_argument("--level", metavar="PERCENT", default="90%", help="what intervals promise to cover (90%%)")


def run(asked: argparse.Namespace) -> int:
    """Print the predictions. Raises: Refused."""
    from analysis.studies.jobs.prediction.predictions import (
        ModelChoice,  # as above
        by_of,  # scikit-learn takes seconds to import
        filled,  # scikit-learn takes seconds to import
        parsed,  # scikit-learn takes seconds to import
        predicted,  # scikit-learn takes seconds to import
    )
    from analysis.studies.jobs.prediction.reading import read_csv  # noqa: PLC0415  # as above
    from analysis.wording import parse_percent  # noqa: PLC0415  # as above

    level = parse_percent(asked.level)
    wanted = [*map(parsed, asked.at), *(read_csv(asked.points)[1] if asked.points else [])]
    if not wanted:
        raise Refused("which points? --at says the factors of one (--at cache=warm), --points a CSV of many.")
    table = common.table(asked)
    how = ModelChoice(asked.model, by_of(table), level)
    found = predicted(table, how, [filled(table, one) for one in wanted])
    if asked.json:
        from analysis.studies.jobs.prediction import page  # noqa: PLC0415  # only for programs

        print(page.predictions_json(table, how, found), end="")
        return 0
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.prediction import page  # noqa: PLC0415  # --json has no need of rich

    print(page.predictions(table, how, found, color=wants_color(sys.stdout)), end="")
    return 0
