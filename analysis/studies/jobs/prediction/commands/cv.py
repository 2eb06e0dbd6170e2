"""Held-out errors of models that predict times from factors, beside the mean of the training set; and what their intervals cover.

`ridge` regression, boosted `trees` and a Gaussian process (`gp`) see coded factors: parameters of variants, tweak sets, monitors, levels
of designs; classes, sizes and resources of jobs. White boxes stand beside where rows have replicas (`amdahl`, `usl`), `work`, or flop and
bytes (`roofline`). Groups are left out whole: configurations (what does it say of one that nobody measured?) and runs (blocks, streams:
what does it say of another day?). In CSV the columns `configuration` and `run` name them. Fewer than five groups are refused.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.studies.jobs.prediction import asked as common
from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.jobs.prediction.tables import By

HELP = "cross-validate by configuration and by run"
EXAMPLE = """\
examples:
  python -m analysis predict cv data/runs/io_patterns_*.json
  python -m analysis predict cv profile.csv --response cpu_s --by run --models ridge usl

Exit code 0: validated. 2: bad usage, too few groups, or nothing that varied.
"""
BOTH: tuple[By, ...] = ("configuration", "run")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    common.files(parser)
    parser.add_argument("--by", choices=BOTH, help="which groups are left out (both, one after the other)")
    parser.add_argument("--models", metavar="NAME", nargs="+", default=[], help="ridge, trees, gp, and white boxes by name (all there are)")
    parser.add_argument("--level", metavar="PERCENT", default="90%", help="what intervals promise to cover (90%%)")


def run(asked: argparse.Namespace) -> int:
    """Print the errors. Raises: Refused."""
    from analysis.studies.jobs.prediction.tables import TooFew  # noqa: PLC0415  # scikit-learn takes seconds to import, which --help need not wait for
    from analysis.studies.jobs.prediction.validation import validate  # noqa: PLC0415  # as above
    from analysis.wording import parse_percent  # noqa: PLC0415  # as above

    level = parse_percent(asked.level)
    table = common.table(asked)
    found, said = [], []
    for by in BOTH:
        if asked.by not in {None, by}:
            continue
        try:
            found.append(validate(table, by, asked.models, level))
        except TooFew as error:
            said.append(str(error))
    if not found:
        raise Refused(" ".join(said))
    if asked.json:
        from analysis.studies.jobs.prediction.page import validations_json  # noqa: PLC0415  # only for programs

        print(validations_json(table, found, said), end="")
        return 0
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.prediction import page  # noqa: PLC0415  # --json has no need of rich

    print(page.validations(table, found, said, color=wants_color(sys.stdout)), end="")
    return 0
