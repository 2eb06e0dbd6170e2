"""Helpers for the compressed JSON lines beside a saved run (`data/README.md`)."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterable
from typing import Any

SCHEMA_VERSION = (
    1  # of the saved run, whose fields are in `saved.py`: reading those takes a session 15 ms
)
COLUMNS = "@columns"
# of xz: 9 MB of memory and a third of a second for the main job; 6 takes 94 MB and saves a fifth of
# the bytes
PRESET = 1


def pack(lines: Iterable[str]) -> bytes:
    return lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=PRESET)


def described(name: str, content: bytes) -> dict[str, Any]:
    """Return a file's entry: name (`{}` becomes the sha256's start), sha256, bytes."""
    digest = hashlib.sha256(content).hexdigest()
    return {"name": name.format(digest[:12]), "sha256": digest, "bytes": len(content)}


def to_columns(value: object) -> object:
    """Convert rows with the same fields to columns, anywhere in an object."""
    if isinstance(value, dict):
        return {name: to_columns(inner) for name, inner in value.items()}
    if (
        isinstance(value, list)
        and value
        and value[0]
        and all(isinstance(row, dict) and row.keys() == value[0].keys() for row in value)
    ):
        return {COLUMNS: {name: [row[name] for row in value] for name in value[0]}}
    return value


def to_rows(value: Any) -> Any:
    """Convert columns back to rows, anywhere in an object."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {COLUMNS}:
        columns = value[COLUMNS]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {name: to_rows(inner) if type(inner) is dict else inner for name, inner in value.items()}
