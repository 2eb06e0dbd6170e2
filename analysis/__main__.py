"""`python -m analysis`: analyse saved runs.

Each file in `commands/` is one command; only the requested command is imported.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Protocol, cast

from control.called import INSTALL, JUDGE

from . import render
from .answer import Answer
from .files import complain, mend, reason_of, say, silence
from .plain import one_line
from .subcommands import Parser, add_parser
from .terms import Refused
from .wording import suggestion

USAGE_ERROR = 2
INTERRUPTED = 130
PAGE = 100  # columns
GROUPS = {"run": "any run", "design": "designs", "study": "studies", "tool": "other tools"}
TRACEBACK = "DEEPTWEAK_TRACEBACK"
COMMANDS = sorted(
    path.stem
    for path in Path(__file__).with_name("commands").glob("*.py")
    if not path.stem.startswith("_")
)


class CommandModule(Protocol):
    """Interface of a module in `commands/`.

    Its docstring is the command's description, `HELP` its line in the list under `GROUP`, and
    `EXAMPLE` ends its help.
    """

    __doc__: str | None
    GROUP: str
    HELP: str
    EXAMPLE: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments; `--json` is already defined."""

    def run(self, args: argparse.Namespace) -> Answer | int:
        """Return the answer, or print it (as JSON with `--json`) and return the exit code.

        A command that returns an `Answer` sets `ANSWERS = True` and gets the options of `render`.

        Raises: Refused, if the request cannot be carried out.
        """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Exit code 1 is reserved for commands: Python's own 1 for a crash would read as a regression
    found by the gate.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    mend()
    try:
        code = _run(given)
    except BrokenPipeError:  # the reader (head, less) closed the pipe
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
        extra = "[studies]" if error.name.partition(".")[0] == "sklearn" else ""
        code = _failed(f"{error.name} is not installed: {INSTALL.format(extra)}.")
    except OSError as error:
        what = one_line(error.filename) if error.filename else "the answer cannot be written"
        code = _failed(f"{what}: {reason_of(error)}.")
    except Exception as error:  # noqa: BLE001  # a fault must not look like a finding
        code = _failed(_fault(given, error))
    reason = say()
    return (
        code if reason is None else code or _failed(f"standard output cannot be written: {reason}.")
    )


def _run(given: Sequence[str]) -> int:
    name = given[0] if given else ""
    if name in {"", "-h", "--help"}:
        print(_help())
        return 0 if name else USAGE_ERROR
    if name.replace("-", "_") not in COMMANDS:
        if not Path(name).exists():
            hint = suggestion(name, map(command_of, COMMANDS)).replace("'", "`")
            raise Refused(
                f"{name}: no such command or file.{hint} `{JUDGE} --help` lists the commands."
            )
        name, given = "show", ["show", *given]
    command = cast("CommandModule", import_module(f"analysis.commands.{name.replace('-', '_')}"))
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
    # Findings decide the exit code: a reader that closed the pipe does not change it.
    if reason := say(render.write(answer, args)):
        complain(f"standard output cannot be written: {reason}.")
    return answer.exit_code or (USAGE_ERROR if reason else 0)


def _help() -> str:
    parts = [
        (
            f"usage: {JUDGE} RUN | COMMAND …\n\nAnalyse saved runs. A saved run alone means "
            "`show RUN`."
        ),
        listed(),
    ]
    return "\n\n".join([*parts, f"`{JUDGE} COMMAND --help` describes a command."])


def listed() -> str:
    """List the commands by group. Their files are parsed, not imported: imports take a second."""
    import ast

    lines: dict[str, list[str]] = {group: [] for group in GROUPS}
    for module in COMMANDS:
        tree = ast.parse(
            Path(__file__)
            .with_name("commands")
            .joinpath(f"{module}.py")
            .read_text(encoding="utf-8")
        )
        constants = {
            node.targets[0].id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
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
    return (
        f"{words}: {type(error).__name__}: {error} ({place}); a bug in DeepTweak, not a "
        f"finding. {TRACEBACK}=1 shows where."
    )


def _page(text: str) -> str:
    """Wrap prose at the terminal's width, 100 columns at most.

    A line that ends within a sentence is joined with the next. Indented lines, which are typed or
    copied, stay unchanged.
    """
    width = min(PAGE, get_terminal_size((PAGE, 0)).columns)
    prose = re.sub(r"(?<=[^.:\s])\n(?=[^\s])", " ", text)
    return "\n".join(
        line if line.startswith(" ") else fill(line, width, break_on_hyphens=False)
        for line in prose.splitlines()
    )


def command_of(name: str) -> str:
    return name.replace("_", "-")


if __name__ == "__main__":
    # A command keeps all that it reads, so garbage collection and teardown only cost time: a fifth.
    gc.set_threshold(200_000, 20, 20)
    # Matrices are small: starting threads costs more time than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    exit_code = main()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(exit_code)
