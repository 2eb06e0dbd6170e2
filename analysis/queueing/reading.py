"""Files that were named → groups of streams: saved runs (.json) and lists of jobs (.csv), those of equal conditions together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.terms import Refused, Unreadable

from . import job_csv, records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Stream


def groups(names: Sequence[str], refused: list[str]) -> list[list[Stream]]:
    """Read every stream, the groups in the order in which they are met; what cannot be used is said in `refused`, a line each.

    Raises: Refused, where nothing can be used.
    """
    found: dict[str, list[Stream]] = {}
    for stream in _streams(names, refused):
        found.setdefault(stream.group, []).append(stream)
    if not found:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no stream of jobs.")
    return list(found.values())


def _streams(names: Sequence[str], refused: list[str]) -> list[Stream]:
    found: list[Stream] = []
    for name in names:
        if name.endswith(".csv"):
            try:
                found += job_csv.read(Path(name))
            except Unreadable as error:
                refused.append(" ".join(str(error).splitlines()))
            continue
        for run in load_each([name], refused):
            try:
                found += records.streams(run, refused)
            except Refused as error:
                refused.append(str(error))
    return found
