"""Write tab completion and the manual page into data/shell/, from the commands' own parsers.

`python -m docs.shell` writes files so that pressing Tab starts no Python. A test fails if one
is stale.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import cast

from analysis.__main__ import COMMANDS, CommandModule, command_of
from analysis.subcommands import add_parser
from deeptweak import __main__ as door
from deeptweak.house import HOUSE
from deeptweak.project import version
from fixtures import __main__ as measuring
from fixtures import designs, tweaks
from fixtures.studies.command.formats import FORMATS

NAME = "deeptweak"
FOLDER = HOUSE / "data/shell"
MANUAL = f"{NAME}.1"
# Completions of a value, by metavar.
FILES = re.compile(r"RUN|BASE|CAND|CSV|FILE|PATH|\.json")
FOLDERS = re.compile(r"DIR")


def whole() -> argparse.ArgumentParser:
    """Join the parsers of all commands into one, as `deeptweak` reads them."""
    parser = argparse.ArgumentParser(
        prog=NAME, description="Are AI workloads faster under these kernel settings?"
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND")
    for (name, what), own in (
        (door.DEMO, door.demo_parser()),
        (door.COMPLETION, door.completion_parser()),
    ):
        commands.add_parser(name, help=what, description=what, parents=[own], add_help=False)
    _, measured = measuring.parsers()
    for name, what in door.MEASURE.items():
        commands.add_parser(
            name,
            help=what,
            description=measured[name].description,
            parents=[measured[name]],
            add_help=False,
        )
    for module in COMMANDS:
        command = cast("CommandModule", import_module(f"analysis.commands.{module}"))
        judging = commands.add_parser(
            command_of(module),
            help=command.HELP,
            description=command.__doc__,
            epilog=command.EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_parser(judging, command)
    return parser


def completion(shell: str) -> str:
    """Return the shell script that completes commands, steps, options, files, and shipped names."""
    import shtab

    parser = whole()
    _name_values(parser)
    return str(shtab.complete(parser, shell))


def _name_values(parser: argparse.ArgumentParser) -> None:
    import shtab

    names = {
        "tweaks": [*tweaks.available(), "all"],
        "design": designs.names(),
        "format": list(FORMATS),
    }
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _name_values(each)
        metavar = (
            " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar or ""
        )
        if action.dest in names and action.choices is None and metavar:
            action.choices = names[action.dest]
        elif FOLDERS.search(metavar):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # where shtab looks
        elif FILES.search(metavar):
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def manual() -> str:
    """Return the manual page in man(7) format: every command with its help."""
    return "\n".join(_manual()) + "\n"


def _manual() -> Iterator[str]:
    parser = whole()
    (commands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    helps = {one.dest: one.help or "" for one in commands._choices_actions}
    yield f'.TH DEEPTWEAK 1 "" "{NAME} {version(HOUSE)}" "User Commands"'
    yield (
        f".SH NAME\n{NAME} \\- measure kernel settings under AI workloads, judge them, and put "
        "the machine back"
    )
    yield f".SH SYNOPSIS\n.B {NAME}\n.I COMMAND\n[\\fIarguments\\fR]"
    yield ".SH COMMANDS"
    for name, command in commands.choices.items():
        yield f".SS {NAME} {name}"
        yield _escaped(helps[name][0].upper() + helps[name][1:] + ".")
        yield from _options(command)
        for text in (command.epilog,) if command.epilog else ():
            yield f".PP\n.nf\n{_escaped(text.strip())}\n.fi"
    yield ".SH ENVIRONMENT"
    for variable, meaning in VARIABLES.items():
        yield f".TP\n.B {variable}\n{meaning}"
    yield (
        f".SH FILES\n.TP\n.I /var/lib/{NAME}\nJournal and lock of the run that holds this machine."
    )
    yield (
        ".SH EXIT STATUS\n0: done. 1: a finding that must stop a build, or a failed cell. 2: bad "
        "usage, or not possible."
    )
    yield "130: interrupted. The examples of each command are followed by its own."


VARIABLES = {
    "DEEPTWEAK_STATE_DIR": "Folder of the journal, in place of /var/lib/deeptweak.",
    "DEEPTWEAK_TRACEBACK": (
        "If 1, an internal error of DeepTweak is shown with its place in the code."
    ),
}


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            for step, each in action.choices.items():
                yield f".TP\n.B {_escaped(step)}\n{_escaped(helps.get(step, ''))}\n.RS"
                yield from _options(each)
                yield ".RE"
        elif action.dest != "help" and action.help != argparse.SUPPRESS:
            metavar = (
                " ".join(action.metavar)
                if isinstance(action.metavar, tuple)
                else action.metavar or ""
            )
            shown = ", ".join(action.option_strings) or metavar or action.dest
            value = f" \\fI{_escaped(metavar)}\\fR" if action.option_strings and metavar else ""
            text = (
                (action.help or "").replace("%%", "%").replace("%(default)s", str(action.default))
            )
            yield f".TP\n\\fB{_escaped(shown)}\\fR{value}\n{_escaped(text)}"


def _escaped(text: str) -> str:
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def written() -> dict[Path, str]:
    """Return every file of data/shell/ with its text."""
    texts = {f"{NAME}.{shell}": completion(shell) for shell in door.SHELLS}
    return {FOLDER / name: _as_typed(text) for name, text in {**texts, MANUAL: manual()}.items()}


def _as_typed(text: str) -> str:
    return re.sub(r"python \\?-m (?:analysis|fixtures)", NAME, text)


def write() -> None:
    """Rewrite every file."""
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
