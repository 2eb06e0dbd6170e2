"""Save a report: whole or not at all, and only over an earlier report."""

from __future__ import annotations

from pathlib import Path

from analysis.files import resolved, write_whole
from analysis.terms import Refused

GENERATOR = "DeepTweak report"
MARK = f'<meta name="generator" content="{GENERATOR}">'
HEAD_BYTES = 1024  # the mark is within these bytes


def save(html: str, path: Path) -> int:
    """Write a temporary file and move it into place: readers see the old report or the new one.

    Returns: its size in bytes.
    Raises: Refused, if another kind of file has that name, or it cannot be written.
    """
    path = resolved(path)  # a link is followed, not replaced
    must_be_replaceable(path)
    content = html.encode("utf-8", "replace")  # JSON can contain a lone surrogate; UTF-8 cannot
    write_whole(path, content)
    return len(content)


def must_be_replaceable(path: Path) -> None:
    """Check that a report can have this name: nothing exists there, or an earlier report.

    Raises: Refused.
    """
    if not resolved(path).exists():
        if not path.parent.is_dir():
            raise Refused(
                f"{path}: no such folder: {path.parent}; create it, or choose another --output."
            )
        return
    if not path.is_file():
        raise Refused(f"{path}: is not a file; choose a file for the report.")
    try:
        with path.open("rb") as old:
            head = old.read(HEAD_BYTES)
    except OSError as error:
        raise Refused(
            f"{path}: cannot be read to check that it is an earlier report: {error.strerror}."
        ) from error
    if head and MARK.encode() not in head:
        raise Refused(
            f"{path}: exists and is not a DeepTweak report; choose another --output, or remove "
            "the file."
        )
