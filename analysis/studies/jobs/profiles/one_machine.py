"""Runs as replicates: each once, and all of one machine. What differs between two machines is no matter of chance between blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.arms import times_of
from analysis.hardware import Machines
from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analysis.terms import Run


def of_one_machine(runs: Iterable[Run], refused: list[str]) -> Iterator[Run]:
    """Hand runs on; of one that was resumed or copied the file with most in it, what is left out being said in `refused`.

    Raises: Refused, at the first run of another machine.
    """
    machines, first = Machines(), ""
    whole: dict[str, list[Run]] = {}
    for run in runs:
        machines.number_of(run.machine)
        first = first or run.origin
        if len(machines.known) > 1:
            here, there = machines.known
            raise Refused(f"{run.origin}: is of another machine ({there}) than {first} ({here}); name runs of one.")
        whole.setdefault(run.run_id, []).append(run)
    seen: dict[object, str] = {}
    for same in whole.values():
        run = max(same, key=lambda one: len(dict(times_of(one))))
        times = dict(times_of(run))
        refused += [
            f"{one.origin}: is of the same run as {run.origin}, where all of it is: a copy is no replicate, and is left out."
            for one in same
            if one is not run
        ]
        twin = next((seen[one] for one in times if one in seen), None)
        if twin is not None:
            refused.append(f"{run.origin}: has the very times of {twin}: a copy is no replicate, and is left out.")
            continue
        seen |= dict.fromkeys(times, run.origin)
        yield run
