"""Jobs that wait for slots: fit a stream, predict its waits, hold predictions against what was measured. Each step is its own command."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import analysis.queueing.commands

if TYPE_CHECKING:
    import argparse

    from analysis.__main__ import Command

HELP = "streams of jobs: fit, predict, validate, closed systems"
EXAMPLE = """\
example:
  python -m analysis queue fit .benchmarks/*/0001_queueing.json
  python -m analysis queue predict --rate 6 --service 0.2 --servers 2
  python -m analysis queue validate --help
"""
COMMANDS = sorted(path.stem for path in Path(analysis.queueing.commands.__path__[0]).glob("[!_]*.py"))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Give each step a parser of its own."""
    parsers = parser.add_subparsers(required=True, metavar="STEP")
    for name in COMMANDS:
        step = _step(name)
        one = parsers.add_parser(
            name.replace("_", "-"), help=step.HELP, description=step.__doc__, epilog=step.EXAMPLE, formatter_class=parser.formatter_class
        )
        step.arguments(one)
        one.add_argument("--json", action="store_true", help="write JSON instead of text")
        one.set_defaults(step=name)


def run(asked: argparse.Namespace) -> int:
    """Do the step asked for. Raises: Refused."""
    return _step(asked.step).run(asked)


def _step(name: str) -> Command:
    return cast("Command", import_module(f"analysis.queueing.commands.{name}"))
