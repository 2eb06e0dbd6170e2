"""Runs as replicates: each once, and all of one machine. What differs between two machines is no matter of chance between blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.history.hardware import Machines
from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analysis.terms import Run


def of_one_machine(runs: Iterable[Run], refused: list[str]) -> Iterator[Run]:
    """Hand runs on; of one that was resumed or copied the file with most in it, what is left out being said in `refused`.

    Raises: Refused, at the first run of another machine.
    """
    machines, first = Machines(), ""
    whole: dict[str, Run] = {}
    for run in runs:
        machines.number_of(run.machine)
        first = first or run.origin
        if len(machines.known) > 1:
            here, there = machines.known
            raise Refused(f"{run.origin}: is of another machine ({there}) than {first} ({here}); name runs of one.")
        more, less = sorted((whole.get(run.run_id, run), run), key=lambda one: len(_times(one)), reverse=True)
        if run.run_id in whole:
            refused.append(
                f"{less.origin}: is of the same run as {more.origin}, where all of it is: a copy is no replicate, and is left out."
            )
        whole[run.run_id] = more
    seen: dict[object, str] = {}
    for run in whole.values():
        times = _times(run)
        twin = next((seen[one] for one in times if one in seen), None)
        if twin is not None:
            refused.append(f"{run.origin}: has the very times of {twin}: a copy is no replicate, and is left out.")
            continue
        seen |= dict.fromkeys(times, run.origin)
        yield run


def _times(run: Run) -> set[object]:
    """What was measured, cell by cell: no two cells ever take the very same times."""
    measured = (cell for cell in run.cells if cell.outcome == "measured" and cell.steps is not None)
    return {(cell.workload, cell.steps.wall_s) for cell in measured if cell.steps is not None and len(set(cell.steps.wall_s)) > 1}
