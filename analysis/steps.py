"""Commands of `python -m analysis` whose steps are commands of their own: one file each in a package, found by its name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .render import add_options

if TYPE_CHECKING:
    import argparse

    from .__main__ import Command
    from .answer import Answer


class Steps:
    """The steps in a package (`analysis.studies.power.commands`); each file has what a file of `commands/` has."""

    def __init__(self, package: str) -> None:
        self._package = package
        folder = import_module(package).__path__[0]
        self.names = sorted(path.stem for path in Path(folder).glob("[!_]*.py"))

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Give each step a parser of its own."""
        parsers = parser.add_subparsers(required=True, metavar="STEP")
        for name in self.names:
            step = self._step(name)
            one = parsers.add_parser(
                name.replace("_", "-"),
                help=step.HELP,
                description=step.__doc__,
                epilog=step.EXAMPLE,
                formatter_class=parser.formatter_class,
            )
            step.arguments(one)
            if getattr(step, "ANSWERS", False):
                add_options(one)
            else:
                one.add_argument("--json", action="store_true", help="write JSON instead of text")
            one.set_defaults(step=name)

    def run(self, args: argparse.Namespace) -> Answer | int:
        """Do the step asked for. Raises: Refused."""
        return self._step(args.step).run(args)

    def _step(self, name: str) -> Command:
        return cast("Command", import_module(f"{self._package}.{name}"))
