"""Runs saved as a session saves them: the JSON, and the record beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_benchmark.logger import Logger

from fixtures.storage import AtomicStorage


def storage_in(folder: Path) -> AtomicStorage:
    """The storage of a session whose runs are kept right in a folder."""
    return AtomicStorage(str(folder), Logger(Logger.QUIET), "")  # type: ignore[no-untyped-call]


def stored(run: dict[str, Any], folder: Path, name: str) -> Path:
    """Save a run as 0001_NAME.json; answer where."""
    storage = storage_in(folder)
    storage.save(run, name)
    assert storage.saved, storage.error
    return storage.saved
