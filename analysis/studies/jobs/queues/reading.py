"""Files that were named → groups of streams: saved runs (.json) and lists of jobs (.csv), those of equal conditions together.

Runs of different machines are never of one group, and a copy of a stream is left out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.hardware import Machines
from analysis.load import load_each
from analysis.terms import Refused, Unreadable

from . import job_csv, records
from .copies import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Stream


def groups(names: Sequence[str], refused: list[str]) -> list[list[Stream]]:
    """Read every stream, the groups in the order in which they are met; what cannot be used is said in `refused`, a line each.

    Raises: Refused, where nothing can be used.
    """
    found: dict[str, list[Stream]] = {}
    for stream in distinct(_streams(names, refused), refused):
        found.setdefault(stream.group, []).append(stream)
    if not found:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no stream of jobs.")
    return list(found.values())


def _streams(names: Sequence[str], refused: list[str]) -> list[Stream]:
    found: list[Stream] = []
    machines = Machines()
    on: list[int | None] = []  # of each stream the number of its machine
    for name in names:
        if name.endswith(".csv"):
            try:
                found += job_csv.read(Path(name))
            except Unreadable as error:
                refused.append(" ".join(str(error).splitlines()))
            on += [None] * (len(found) - len(on))
            continue
        for run in load_each([name], refused):
            try:
                found += records.streams(run, refused)
            except Refused as error:
                refused.append(str(error))
            on += [machines.number_of(run.machine)] * (len(found) - len(on))
    if len(machines.known) < 2:
        return found
    return [
        one if machine is None else replace(one, group=f"{one.group} on {machines.known[machine]}")
        for one, machine in zip(found, on, strict=True)
    ]
