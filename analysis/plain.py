"""Foreign text (names, reasons, paths out of a file) made fit for a line that other programs read."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime

from control import errors

one_line = errors.one_line
SENTENCE = 10_000  # characters, at most
# What a CI runner takes for a command: GitHub's `::name` at the start of a line, `##[name]` and Azure's `##vso[name]` anywhere in it.
COMMAND = re.compile(r"##(?=\w*\[)")
COMMAND_LINE = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


PLACE = "#"  # in place of a date: a run's number in an order that was given


def seconds(text: str) -> float:
    """Return when a run was: seconds, or its number where an order was given; not a number where neither is known."""
    if text.startswith(PLACE):
        return float(text.removeprefix(PLACE))
    stamp = moment(text)
    return stamp.timestamp() if stamp else math.nan


def moment(text: object) -> datetime | None:
    """Read a time of ISO 8601, in UTC where it does not say otherwise; None where it is none."""
    try:
        stamp = datetime.fromisoformat(str(text))
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def printable_json(answer: object) -> str:
    """Write an answer for programs: texts made fit for a line, and null what a formula could not give."""
    return json.dumps(_printable(answer), indent=2, allow_nan=False) + "\n"


def _printable(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_printable(one) for one in value]
    if isinstance(value, dict):
        return {one_line(name): _printable(one) for name, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float) or value is None else one_line(value, SENTENCE)


def inert(text: str) -> str:
    """Take the force out of what a CI runner would obey in a log: a name out of a file must not be a command."""
    return COMMAND_LINE.sub(r"\1: ", COMMAND.sub("# #", text))


def inert_json(text: str) -> str:
    """Do the same for JSON, which says the same afterwards; there no line begins with a name."""
    return COMMAND.sub(r"#\\u0023", text)
