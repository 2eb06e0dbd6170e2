"""An answer for programs: the JSON of its data."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass

from analysis.answer import Answer
from analysis.plain import COMMAND, SENTENCE, one_line


def render(answer: Answer) -> str:
    """Write an answer as JSON: each text on one line, and null for NaN and infinity."""
    data = _printable({**answer.data, "refused": answer.refused})
    written = json.dumps(data, indent=2, allow_nan=False) + "\n"
    # An escape keeps the meaning and is no command of a CI runner; no JSON line begins with a name.
    return COMMAND.sub(r"#\\u0023", written)


def _printable(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {one_line(name): _printable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float) or value is None else one_line(value, SENTENCE)
