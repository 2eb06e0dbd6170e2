"""Commands of `python -m analysis` whose steps are commands of their own: a file each in a package, or a `Step` each in one module."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .render import add_options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from .__main__ import Command
    from .answer import Answer

    Run = Callable[[argparse.Namespace], Answer | int]


@dataclass(frozen=True, slots=True)
class Step:
    """A step that is no file of its own: what `arguments` adds, what `run` does, whose docstring is the description."""

    run: Run
    arguments: Callable[[argparse.ArgumentParser], None]
    HELP: str
    EXAMPLE: str
    ANSWERS: bool = True


def step(arguments: Callable[[argparse.ArgumentParser], None], help_: str, example: str) -> Callable[[Run], Step]:
    """Make a step of a function; it goes by the function's name."""
    return lambda run: Step(run, arguments, help_, example)


def takes_runs(what: str) -> Callable[[argparse.ArgumentParser], None]:
    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("runs", metavar="RUN", nargs="+", help=what)

    return add


class Steps:
    """Those of a module of `commands/`, or the files of a package (`analysis.studies.power.commands`), each like such a module."""

    def __init__(self, name: str) -> None:
        self._module = import_module(name)
        self._steps: dict[str, Step] = {each.run.__name__: each for each in vars(self._module).values() if isinstance(each, Step)}
        folders = [] if self._steps else list(self._module.__path__)
        self.names = sorted(self._steps) or sorted(path.stem for folder in folders for path in Path(folder).glob("[!_]*.py"))

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parsers = parser.add_subparsers(required=True, metavar="STEP")
        for name in self.names:
            step = self._step(name)
            one = parsers.add_parser(
                name.replace("_", "-"),
                help=step.HELP,
                description=inspect.getdoc(step.run) if isinstance(step, Step) else step.__doc__,
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
        return self._step(args.step).run(args)

    def _step(self, name: str) -> Command | Step:
        return self._steps.get(name) or cast("Command", import_module(f"{self._module.__name__}.{name}"))
