"""Which waiting job is next: policies compared on identical arrivals, and at work for a dispatcher. Each step is a command."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import analysis.scheduling.commands

if TYPE_CHECKING:
    import argparse

    from analysis.__main__ import Command

HELP = "policies for waiting jobs: simulate, report, decide"
EXAMPLE = """\
example:
  python -m analysis schedule simulate --slots 2 --load 0.8
  python -m analysis schedule simulate --help
"""
COMMANDS = sorted(path.stem for path in Path(analysis.scheduling.commands.__path__[0]).glob("[!_]*.py"))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Give each step a parser of its own."""
    parsers = parser.add_subparsers(required=True, metavar="STEP")
    for name in COMMANDS:
        step = _step(name)
        one = parsers.add_parser(
            name, help=step.HELP, description=step.__doc__, epilog=step.EXAMPLE, formatter_class=parser.formatter_class
        )
        step.arguments(one)
        one.add_argument("--json", action="store_true", help="write JSON instead of text")
        one.set_defaults(step=name)


def run(asked: argparse.Namespace) -> int:
    """Do the step asked for. Raises: Refused."""
    return _step(asked.step).run(asked)


def _step(name: str) -> Command:
    return cast("Command", import_module(f"analysis.scheduling.commands.{name}"))
