"""Commands made from function signatures, and commands with several such steps."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from control.called import JUDGE

from .render import add_options
from .wording import suggestion

if TYPE_CHECKING:
    from .__main__ import CommandModule
    from .answer import Answer

EXIT_CODES = "Exit code 0: answered, whatever was found. 2: bad usage or no usable input."


class Parser(argparse.ArgumentParser):
    """A parser that suggests the option, step or choice nearest to an unknown one."""

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"(?:unrecognized arguments:|invalid choice:) '?([^\s'=]+)", message)
        steps = [
            step
            for action in self._actions
            if isinstance(action.choices, dict)
            for step in action.choices.values()
        ]
        actions = [action for part in (self, *steps) for action in part._actions]  # noqa: SLF001
        known = [
            name
            for action in actions
            for name in (*action.option_strings, *map(str, action.choices or ()))
        ]
        super().error(f"{message}.{suggestion(unknown[1], known)}" if unknown else message)


class Option(NamedTuple):
    metavar: str
    help: str
    names: tuple[str, ...]
    settings: Mapping[str, Any]


def option(metavar: str, text: str, *names: str, **settings: Any) -> Any:
    """Declare a parameter as read from the command line: the result is its default.

    `settings` are those of argparse's `add_argument`. A keyword-only parameter is an option named
    after it with dashes, unless `names` are given; others are positional. Without a metavar, the
    option is a flag.
    """
    return Option(metavar, text, names, settings)


def runs_of(text: str) -> Any:
    return option("RUN", text, nargs="+")


def picture_file(text: str) -> Path:
    path = Path(text)
    if path.suffix not in {".png", ".svg", ".pdf"}:
        raise argparse.ArgumentTypeError(f"{text!r} must end in .png, .svg or .pdf")
    return path


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A command made from a function: its name is the command's, its docstring the description.

    A parameter that is not an `option` receives all parsed arguments.
    """

    function: Callable[..., Answer | int]
    HELP: str = ""
    examples: tuple[str, ...] = ()
    ANSWERS: bool = True

    def __call__(self, args: argparse.Namespace) -> Answer | int:
        parameters = inspect.signature(self.function).parameters.items()
        return self.function(
            **{
                name: getattr(args, name) if isinstance(each.default, Option) else args
                for name, each in parameters
            }
        )

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        for name, parameter in inspect.signature(self.function).parameters.items():
            if not isinstance(parameter.default, Option):
                continue
            metavar, text, names, settings = parameter.default
            if parameter.kind is parameter.KEYWORD_ONLY:
                names, settings = (
                    names or (f"--{name.replace('_', '-')}",),
                    {"dest": name, **settings},
                )
            shown: dict[str, Any] = (
                {"metavar": metavar}
                if metavar
                else {}
                if "choices" in settings
                else {"action": "store_true"}
            )
            parser.add_argument(*(names or (name,)), **shown, **settings, help=text)


def signature(function: Callable[..., Answer | int]) -> Subcommand:
    """Make the `run` of a module in `commands/` from a function; the module provides the rest."""
    return Subcommand(function)


def step(text: str, *examples: str) -> Callable[[Callable[..., Answer | int]], Subcommand]:
    """Make a step from a function: its line in the list, and arguments as examples in its help."""
    return lambda function: Subcommand(function, text, examples)


def add_parser(parser: argparse.ArgumentParser, command: CommandModule | Subcommand) -> None:
    command.arguments(parser)
    if getattr(command, "ANSWERS", False):
        add_options(parser)
    else:
        parser.add_argument("--json", action="store_true", help="write JSON instead of text")


class Subcommands:
    """The steps of a command: the `Subcommand` objects in its module in `commands/`."""

    def __init__(self, name: str) -> None:
        self.command = f"{JUDGE} {name.rpartition('.')[2]}"
        self._steps = {
            name: each
            for name, each in sorted(vars(import_module(name)).items())
            if isinstance(each, Subcommand)
        }

    @property
    def page(self) -> tuple[str, Callable[..., None], Callable[..., Answer | int]]:
        """Return what a module in `commands/` needs: `EXAMPLE`, `arguments` and `run`."""
        return f"`{self.command} STEP --help` describes a step.", self.arguments, self.run

    @property
    def names(self) -> list[str]:
        return list(self._steps)

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parsers = parser.add_subparsers(required=True, metavar="STEP")
        for name, step in self._steps.items():
            named = name.replace("_", "-")
            lines = [f"  {self.command} {named} {example}" for example in step.examples]
            own = parsers.add_parser(
                named,
                help=step.HELP,
                description=inspect.getdoc(step.function),
                epilog="\n".join(["examples:", *lines, "", EXIT_CODES]),
                formatter_class=parser.formatter_class,
            )
            add_parser(own, step)
            own.set_defaults(step=name)

    def run(self, args: argparse.Namespace) -> Answer | int:
        return self._steps[args.step](args)
