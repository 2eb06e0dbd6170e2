"""Saved runs that were named → streams of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.terms import Refused

from .one_machine import of_one_machine
from .rows import told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .rows import Told


def streams(names: Sequence[str], refused: list[str]) -> list[Told]:
    """Read every stream; what cannot be used is said in `refused`, a line each: a run that is named twice is one.

    Raises: Refused, where nothing can, and for runs of different machines.
    """
    found: list[Told] = []
    for run in of_one_machine(load_each(names, refused), refused):
        try:
            found += told(run, refused)
        except Refused as error:
            refused.append(str(error))
    if not found:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no stream of jobs.")
    return found
