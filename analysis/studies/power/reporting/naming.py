"""What a cell's workload is called in a report: which arm it is of, what that is measured on, and the back-end that was asked for.

A name carries the parameters that are not as by default: `capped_inference:task=29:algorithm=morak`; all of them are saved beside it. Those
of the decider make the arm; all others say on what it is measured; what is the same in all workloads of a run is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.studies.io.saved import given_in

if TYPE_CHECKING:
    from analysis.terms import Cell, Run

ALGORITHM, SHADOW, BACKEND, TASK = "algorithm", "shadow", "backend", "task"
DECIDER = ("margin", "parameters")  # beside the algorithm
CHOSEN = frozenset({"", "auto"})  # the run was to choose the back-end
ON = frozenset({"on", "true", "yes", "1"})


class Names:
    """How the cells of one run are called."""

    def __init__(self, run: Run) -> None:
        self._params = {
            name: {key: str(value) for key, value in one.params.items()} | given_in(name)
            for name, one in run.workloads.items()
            if ALGORITHM in {*one.params, *given_in(name)}
        }
        given = [given_in(name) for name in self._params]
        keys = {key for one in given for key in one}
        self._varied = {key for key in keys if len({one.get(key) for one in given}) > 1}

    def known(self, cell: Cell) -> bool:
        """Whether a cell is of an algorithm at all."""
        return cell.workload in self._params

    def arm(self, cell: Cell) -> str:
        """Its algorithm, whether the shadow optimiser ran beside it, and what else of the decider was varied."""
        params = self._params[cell.workload]
        shadow = [" + shadow"] if params.get(SHADOW, "").lower() in ON else []
        rest = [f", {key} {params[key]}" for key in DECIDER if key in self._varied and key in params]
        return "".join([params[ALGORITHM], *shadow, *rest])

    def group(self, cell: Cell) -> str:
        """What an arm is measured on: `task=6`, and whatever else was varied that is not the arm's."""
        params = self._params[cell.workload]
        told = [TASK, *sorted(self._varied - {TASK, ALGORITHM, SHADOW, BACKEND, *DECIDER})]
        return " ".join(f"{key}={params[key]}" for key in told if key in params) or cell.workload.partition(":")[0]

    def backend(self, cell: Cell) -> str:
        """The back-end that was asked for; "" where the run was to choose."""
        named = self._params[cell.workload].get(BACKEND, "")
        return "" if named in CHOSEN else named
