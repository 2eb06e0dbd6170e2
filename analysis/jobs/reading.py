"""Saved runs that were named → streams of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.history.hardware import Machines
from analysis.load import load_each
from analysis.terms import Refused

from .rows import told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .rows import Told


def streams(names: Sequence[str], refused: list[str]) -> list[Told]:
    """Read every stream; what cannot be used is said in `refused`, a line each: a run that is named twice is one.

    Raises: Refused, where nothing can, and for runs of different machines.
    """
    found: list[Told] = []
    machines, met = Machines(), set[str]()
    for run in load_each(names, refused):
        if run.run_id in met:
            refused.append(f"{run.origin}: is a run that was read before; a copy is no replicate, and is left out.")
            continue
        met.add(run.run_id)
        machines.number_of(run.machine)
        if len(machines.known) > 1:
            raise Refused(f"{run.origin}: is of another machine ({'; '.join(map(str, machines.known))}); name runs of one.")
        try:
            found += told(run, refused)
        except Refused as error:
            refused.append(str(error))
    if not found:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no stream of jobs.")
    return found
