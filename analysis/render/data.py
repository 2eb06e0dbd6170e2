"""An answer for programs: JSON of its data, or of its page if it has none."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass

from analysis.answer import Answer
from analysis.plain import inert_json, printable_json


def render(answer: Answer) -> str:
    """Write an answer as JSON, with non-finite numbers as null."""
    data = {name: plain(value) for name, value in answer.data.items()}
    return inert_json(printable_json({**data, "refused": list(answer.refused)}))


def plain(value: object) -> object:
    """Convert dataclasses and named tuples to mappings, recursively."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
