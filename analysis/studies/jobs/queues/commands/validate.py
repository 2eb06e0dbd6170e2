"""Measured waits against what the models predict from rate and service times of the same runs: how far off, with a 95 % interval.

The interval is from runs where there are three or more, else from busy cycles or batches of jobs, and it says which. With --rate and
--service the prediction is of what was planned. Little's law is held against every run.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from analysis.terms import Refused

if TYPE_CHECKING:
    import argparse

    from analysis.studies.jobs.queues.formulas import Inputs
    from analysis.studies.jobs.queues.validation import WaitValidation

HELP = "measured waits against predicted ones, Little's law on every run"
EXAMPLE = """\
examples:
  python -m analysis queue validate .benchmarks/*/0001_queueing.json
  python -m analysis queue validate .benchmarks/*/0001_queueing.json --rate 6 --service 0.2
  python -m analysis queue validate jobs.csv --servers 2 --margin 20%

Exit code 0: judged, whatever was found. 2: bad usage, or nothing can be used.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be asked."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="saved runs, and lists of jobs (.csv)")
    parser.add_argument("--servers", metavar="C", type=int, help="slots, where a list of jobs does not tell (column slots)")
    parser.add_argument("--margin", metavar="PERCENT", default="10%", help="how far off a model may be (10%%)")
    parser.add_argument("--rate", metavar="PER_S", type=float, help="jobs a second, as planned")
    parser.add_argument("--service", metavar="S", type=float, help="mean service time in seconds, as planned; exponential")


def run(asked: argparse.Namespace) -> int:
    """Print the verdicts. Raises: Refused."""
    refused: list[str] = []
    found = _validated(asked, refused)
    for line in refused:
        print("refused:", line, file=sys.stderr)
    if asked.json:
        from analysis.studies.jobs.queues.page import validations_json  # noqa: PLC0415  # only for programs

        print(validations_json(found, refused), end="")
        return 0
    from analysis.render.text import wants_color  # noqa: PLC0415  # as above
    from analysis.studies.jobs.queues import page  # noqa: PLC0415  # --json has no need of rich

    print(page.validations(found, color=wants_color(sys.stdout)), end="")
    return 0


def _validated(asked: argparse.Namespace, refused: list[str]) -> list[WaitValidation]:
    from analysis.studies.jobs.queues.fitting import fit  # noqa: PLC0415  # scipy takes a second to import
    from analysis.studies.jobs.queues.reading import groups  # noqa: PLC0415  # as above
    from analysis.studies.jobs.queues.validation import validate  # noqa: PLC0415  # as above
    from analysis.wording import parse_percent  # noqa: PLC0415  # as above

    margin = parse_percent(asked.margin)
    if (asked.rate is None) != (asked.service is None):
        raise Refused("--rate and --service are planned together; give both or neither.")
    found = []
    for group in groups(asked.runs, refused):
        try:
            one = fit(group, asked.servers)
            found.append(validate(one, group, margin, _planned(asked, one.servers)))
        except Refused as error:
            refused.append(str(error))
    if not found:
        raise Refused(refused[0])
    return found


def _planned(asked: argparse.Namespace, servers: int | None) -> Inputs | None:
    from analysis.studies.jobs.queues.formulas import Inputs  # noqa: PLC0415  # as above

    if asked.rate is None or servers is None:
        return None
    return Inputs(asked.rate, asked.service, servers)
