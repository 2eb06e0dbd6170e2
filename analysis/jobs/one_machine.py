"""Runs as replicates: each once, and all of one machine. What differs between two machines is no matter of chance between blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.history.hardware import Machines
from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analysis.terms import Run


def of_one_machine(runs: Iterable[Run], refused: list[str]) -> Iterator[Run]:
    """Hand runs on; a copy of one that was there before is left out, and said in `refused`.

    Raises: Refused, at the first run of another machine.
    """
    machines, met = Machines(), set[str]()
    for run in runs:
        machines.number_of(run.machine)
        if len(machines.known) > 1:
            raise Refused(f"{run.origin}: is of another machine ({'; '.join(map(str, machines.known))}); name runs of one.")
        if run.run_id in met:
            refused.append(f"{run.origin}: is a run that was read before; a copy is no replicate, and is left out.")
            continue
        met.add(run.run_id)
        yield run
