"""What is refused: both sides take these for their own, so that a decision's refusal ends a run or a command as any other does."""

from __future__ import annotations


class Refused(Exception):
    """What was asked for cannot be done; the message says what, where, and what to do, without what a terminal would obey."""

    def __str__(self) -> str:
        return "".join(one if one.isprintable() or one in "\n\t" else ascii(one)[1:-1] for one in super().__str__())


class Unreadable(Refused):
    """A file is not what it should be, or it is damaged; nothing in it was used."""


class UnknownName(Refused):
    """A name was given that does not exist; the message lists those that do."""
