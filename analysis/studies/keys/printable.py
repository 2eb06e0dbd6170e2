"""Records whose every text a terminal shows and does not obey: names of keys and tweak sets come out of files that anybody may write."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from analysis.plain import one_line

LONGEST = 10_000  # characters of a sentence


def printable(record: Any) -> Any:  # noqa: ANN401  # whatever a field holds
    """Make every text of a record, and of the records in it, one that is only printed."""
    if isinstance(record, str):
        return one_line(record, LONGEST)
    if isinstance(record, tuple):
        return tuple(map(printable, record))
    if isinstance(record, dict):
        return {printable(name): printable(value) for name, value in record.items()}
    if is_dataclass(record) and not isinstance(record, type):
        return replace(record, **{field.name: printable(getattr(record, field.name)) for field in fields(record)})
    return record
