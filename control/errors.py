"""Errors that both sides raise, and a function that makes foreign text safe to print.

Both sides take these for their own, so that a refusal in here ends a run or a command as any other
does.
"""

from __future__ import annotations

ELLIPSIS = "…"


class Refused(Exception):
    """The request cannot be met; the message gives what happened, where, and what to do."""

    def __str__(self) -> str:
        return "".join(
            text if text.isprintable() or text in "\n\t" else ascii(text)[1:-1]
            for text in super().__str__()
        )


class Unreadable(Refused):
    """A file is damaged or of the wrong kind; nothing in it was used."""


class UnknownName(Refused):
    """A name does not exist; the message lists those that do."""


def one_line(text: object, longest: int = 500) -> str:
    r"""Return a text on one line, with single spaces, and unprintable characters escaped (`\x1b`).

    Control and direction characters could end a line of the log, or show a reader words that are
    not there; lone surrogates cannot be written to a file at all. A text of more than `longest`
    characters is cut, and ends in `…`.
    """
    seen = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in " ".join(str(text).split())
    )
    return seen if len(seen) <= longest else seen[: longest - 1] + ELLIPSIS
