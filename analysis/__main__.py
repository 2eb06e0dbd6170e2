"""`python -m analysis`: what saved runs say. Each file of `commands/` is a command; only the one that is asked for is imported."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Protocol, cast

from control.called import INSTALL, JUDGE

from . import render
from .answer import Answer
from .files import reason_of
from .plain import one_line
from .streams import complain, mend, say, silence
from .subcommands import Parser, add_parser
from .terms import Refused
from .wording import suggestion

USAGE_ERROR = 2
INTERRUPTED = 130
OF_STUDIES = {"pyDOE3", "sklearn"}  # what the base installation does without
PAGE = 100  # columns
GROUPS = {"run": "any run", "design": "designs", "study": "studies", "tool": "other tools"}
TRACEBACK = "DEEPTWEAK_TRACEBACK"
COMMANDS = sorted(path.stem for path in Path(__file__).with_name("commands").glob("*.py") if not path.stem.startswith("_"))


class Command(Protocol):
    """What a file of `commands/` holds.

    The docstring is its description, `HELP` its line in the list under `GROUP`, `EXAMPLE` ends its help.
    """

    __doc__: str | None
    GROUP: str
    HELP: str
    EXAMPLE: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add what can be asked; `--json` is there already."""

    def run(self, args: argparse.Namespace) -> Answer | int:
        """Find what is to be said; or print it, with `--json` as JSON, and return the exit code. Raises: Refused, for what cannot be done.

        A command that returns an `Answer` has `ANSWERS = True`, and with it the options of `render`.
        """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code.

    Only a command itself answers 1: Python's own 1 for a crash would read as the gate's regression.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    mend()
    try:
        code = _run(given)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        silence(sys.stdout)
        code = 0
    except KeyboardInterrupt:
        complain("interrupted.")
        code = INTERRUPTED
    except Refused as error:
        code = _failed(error)
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] in {"analysis", "control"}:
            raise
        extra = "[studies]" if error.name.partition(".")[0] in OF_STUDIES else ""
        code = _failed(f"{error.name} is not installed: {INSTALL.format(extra)}.")
    except OSError as error:
        what = one_line(error.filename) if error.filename else "the answer cannot be written"
        code = _failed(f"{what}: {reason_of(error)}.")
    except Exception as error:  # noqa: BLE001  # whatever it is, it is no finding and must not look like one
        code = _failed(_fault(given, error))
    reason = say()
    return code if reason is None else code or _failed(f"standard output cannot be written: {reason}.")


def _run(given: Sequence[str]) -> int:
    name = given[0] if given else ""
    if name in {"", "-h", "--help"}:
        print(_help())
        return 0 if name else USAGE_ERROR
    if name.replace("-", "_") not in COMMANDS:
        if not Path(name).exists():
            hint = suggestion(name, map(command_of, COMMANDS)).replace("'", "`")
            raise Refused(f"{name}: no such command, and no such file.{hint} `{JUDGE} --help` lists the commands.")
        name, given = "show", ["show", *given]
    command = cast("Command", import_module(f"analysis.commands.{name.replace('-', '_')}"))
    parser = Parser(
        prog=f"{JUDGE} {name}",
        description=_page(command.__doc__ or ""),
        epilog=_page(command.EXAMPLE),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_parser(parser, command)
    args = parser.parse_args(given[1:])
    answer = command.run(args)
    if not isinstance(answer, Answer):
        return answer
    for line in answer.refused:
        print("refused:", line, file=sys.stderr)
    # What was found counts, whoever can read it: a reader that has gone changes no exit code.
    if reason := say(render.write(answer, args)):
        complain(f"standard output cannot be written: {reason}.")
    return answer.exit_code or (USAGE_ERROR if reason else 0)


def _help() -> str:
    parts = [f"usage: {JUDGE} RUN | COMMAND …\n\nWhat saved runs say. With a saved run alone: `show`.", listed()]
    return "\n\n".join([*parts, f"`{JUDGE} COMMAND --help` says the rest."])


def listed() -> str:
    """List the commands by what they are for; their files are parsed, not imported, since that takes a second."""
    import ast

    lines: dict[str, list[str]] = {group: [] for group in GROUPS}
    for module in COMMANDS:
        tree = ast.parse(Path(__file__).with_name("commands").joinpath(f"{module}.py").read_text(encoding="utf-8"))
        constants = {
            node.targets[0].id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant)
        }
        lines[str(constants["GROUP"])].append(f"  {command_of(module):<12} {constants['HELP']!s}")
    return "\n\n".join("\n".join([f"{GROUPS[group]}:", *own]) for group, own in lines.items())


def _failed(what: object) -> int:
    complain(what)
    return USAGE_ERROR


def _fault(given: Sequence[str], error: Exception) -> str:
    import shlex
    import traceback

    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    words = one_line(shlex.join(given), 300)
    return f"{words}: {type(error).__name__}: {error} ({place}); a fault of DeepTweak and no finding. {TRACEBACK}=1 shows where."


def _page(text: str) -> str:
    """Break prose at 100 columns; what is indented is typed or copied as it stands."""
    return "\n".join(line if line.startswith(" ") else fill(line, PAGE) for line in text.splitlines())


def command_of(name: str) -> str:
    """Return the name of a file of `commands/` as it is typed: a module has no dash."""
    return name.replace("_", "-")


if __name__ == "__main__":
    # A command keeps what it reads until it is over: to look for garbage in it, and to take it apart at the end, takes a fifth of the time.
    gc.set_threshold(200_000, 20, 20)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small: threads for them take longer to start than they save
    exit_code = main()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(exit_code)
