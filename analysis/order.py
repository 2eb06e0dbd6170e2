"""The order of runs without dates: by file name or file time, if the user asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from .plain import PLACE

if TYPE_CHECKING:
    from .arms import Arm
    from .terms import Run

ORDERS = ("name", "time")
HELP = (
    "order of the runs: name (of the file, 9 before 10), or time (of the file, for runs without a "
    "date)"
)
HINT = (
    "If file names (or the files' times) follow the order of measurement, add --order=name (or "
    "time)."
)


def in_order(runs: Iterable[Run], order: str | None) -> list[Run]:
    """Set the runs' places in time according to `order`; None keeps the dates in the files.

    By name, each run gets its number as its date (`#0012`); by time, undated runs get their file's
    modification time.
    """
    runs = list(runs)
    if order == "time":
        return [
            run if run.started_utc else replace(run, started_utc=_changed_utc(run)) for run in runs
        ]
    if order == "name":
        return _numbered([runs])
    return runs


def arms_in_order(base: Arm, candidate: Arm, order: str | None) -> tuple[Arm, Arm]:
    """Order the runs of two arms likewise; by name, a single candidate comes after its baseline."""
    if order is None:
        return base, candidate
    runs = list({id(run): run for arm in (base, candidate) for run in arm.runs}.values())
    last = [
        run
        for run in runs
        if order == "name" and len(candidate.runs) == 1 and run is candidate.runs[0]
    ]
    earlier = [run for run in runs if run not in last]
    placed = _numbered([earlier, last]) if order == "name" else in_order(runs, order)
    known = {run.origin: run for run in placed}
    base, candidate = (
        replace(arm, runs=tuple(known[run.origin] for run in arm.runs)) for arm in (base, candidate)
    )
    return base, candidate


def _numbered(groups: Sequence[Sequence[Run]]) -> list[Run]:
    runs = [run for group in groups for run in sorted(group, key=_name)]
    return [replace(run, started_utc=f"{PLACE}{at:04}") for at, run in enumerate(runs, 1)]


def _name(run: Run) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", f"{Path(run.origin).name} {run.origin}")
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _changed_utc(run: Run) -> str:
    return datetime.fromtimestamp(Path(run.origin).stat().st_mtime, UTC).isoformat()
