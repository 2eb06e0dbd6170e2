"""Foreign text (names, reasons, paths from a file) made safe for a line that programs read."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from control import errors

one_line = errors.one_line
SENTENCE = 10_000  # characters, at most
# CI runners' commands: GitHub's `::name` at the start of a line, `##[name]`, Azure's `##vso[name]`
# anywhere.
COMMAND = re.compile(r"##(?=\w*\[)")
COMMAND_LINE = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


PLACE = "#"  # replaces a date: the run's number in a given order


def seconds(text: str) -> float:
    """Return a run's time in seconds, or its number in a given order; NaN if neither is known."""
    if text.startswith(PLACE):
        return float(text.removeprefix(PLACE))
    stamp = moment(text)
    return stamp.timestamp() if stamp else math.nan


def moment(text: object) -> datetime | None:
    """Parse an ISO 8601 time, as UTC unless it has an offset; None if it is not one."""
    try:
        stamp = datetime.fromisoformat(str(text))
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def inert(text: str) -> str:
    """Neutralise CI runners' log commands: a name from a file must not become a command."""
    return COMMAND_LINE.sub(r"\1: ", COMMAND.sub("# #", text))
