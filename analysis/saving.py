"""Writing a file: whole or not at all, and never over another one unasked."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from .opening import reason_of, resolved
from .terms import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME = re.compile(r"[\w@+=-][\w.@+=-]{,200}")


def must_be_new(path: Path, *, force: bool, sources: Iterable[Path] = ()) -> None:
    """Check that nothing is lost by writing a file; with `force`, that what is there is a file and none of the sources.

    Raises: Refused.
    """
    place = resolved(path)
    if any(place == resolved(source) for source in sources):
        raise Refused(f"{path}: is what is read; a source is never overwritten, name another file.")
    if place.exists() and (not force or not place.is_file()):
        raise Refused(f"{path}: is there already; {'--force overwrites it' if place.is_file() else 'name a file'}.")


def must_be_a_name(name: str, what: str) -> str:
    """Answer a name that can be a file's: letters, digits and . _ @ + = - after the first.

    Raises: Refused, for one that is empty or would lead elsewhere.
    """
    if not NAME.fullmatch(name):
        raise Refused(f"{name!r}: {what} of this name cannot be a file; letters, digits and . _ @ + = - can.")
    return name


def write_whole(path: Path, content: bytes) -> None:
    """Write beside its place, then move it there: a reader sees the old file or the new one. A link is followed and stays.

    A pipe or a device is written to as it is: moved over `/dev/null`, a file would take its place.

    Raises: Refused, with nothing left behind.
    """
    place = resolved(path)
    beside = place.with_name(f".{os.getpid()}-{place.name}"[:200])
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        beside.replace(place)
    except OSError as error:
        with suppress(OSError):  # it may never have come about
            beside.unlink()
        raise Refused(f"{path}: cannot be written: {reason_of(error)}.") from None
