"""Saving a report: whole or not at all, and never over a file that is not an earlier report."""

from __future__ import annotations

from pathlib import Path

from analysis.files import resolved, write_whole
from analysis.terms import Refused

GENERATOR = "DeepTweak report"
MARK = f'<meta name="generator" content="{GENERATOR}">'
HEAD_BYTES = 1024  # the mark stands within them


def save(html: str, path: Path) -> int:
    """Write a report beside its place, then move it there; a reader sees the old one or the new one.

    Returns: its size in bytes.
    Raises: Refused, where something else than a report has that name, or it cannot be written.
    """
    path = resolved(path)  # a link is followed, not replaced
    must_be_replaceable(path)
    content = html.encode("utf-8", "replace")  # JSON can hold half a character; UTF-8 cannot
    write_whole(path, content)
    return len(content)


def must_be_replaceable(path: Path) -> None:
    """Check that a report can have this name: nothing is there, or an earlier report.

    Raises: Refused.
    """
    if not resolved(path).exists():
        if not path.parent.is_dir():
            raise Refused(f"{path}: no such folder: {path.parent}; make it, or name another --output.")
        return
    if not path.is_file():
        raise Refused(f"{path}: is not a file; name one for the report.")
    try:
        with path.open("rb") as old:
            head = old.read(HEAD_BYTES)
    except OSError as error:
        raise Refused(f"{path}: cannot be read to see whether it is an earlier report: {error.strerror}.") from error
    if head and MARK.encode() not in head:
        raise Refused(f"{path}: is there and is no report of ours; name another --output, or remove it.")
