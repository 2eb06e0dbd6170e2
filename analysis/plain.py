"""Foreign text (names, reasons, paths out of a file) made fit for a line that other programs read."""

from __future__ import annotations

import re

ELLIPSIS = "…"
# What a CI runner takes for a command: GitHub's `::name` at the start of a line, `##[name]` and Azure's `##vso[name]` anywhere in it.
COMMAND = re.compile(r"##(?=\w*\[)")
COMMAND_LINE = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


def one_line(text: object, longest: int = 500) -> str:
    r"""Write a text on one line: blanks of any kind become one space, what cannot be seen or printed its escape (`\x1b`).

    Control and direction characters could end a line of the log, or show a reader other words than those that are there; lone
    surrogates cannot be written to a file at all. What is longer than `longest` characters is cut, and ends in `…`.
    """
    seen = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in " ".join(str(text).split())
    )
    return seen if len(seen) <= longest else seen[: longest - 1] + ELLIPSIS


def inert(text: str) -> str:
    """Take the force out of what a CI runner would obey in a log: a name out of a file must not be a command."""
    return COMMAND_LINE.sub(r"\1: ", COMMAND.sub("# #", text))


def inert_json(text: str) -> str:
    """Do the same for JSON, which says the same afterwards; there no line begins with a name."""
    return COMMAND.sub(r"#\\u0023", text)
