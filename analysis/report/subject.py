"""What the twelve rules are asked about, and the form of an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from analysis.arms import Arm, side
from analysis.pairing import pair
from analysis.switched.expand import expanded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analysis.terms import Cell, Comparison, Effect, Metric, Run

State = Literal["met", "not met", "not applicable"]
Answer = tuple[State, str]


@dataclass(frozen=True, slots=True)
class Subject:
    """One run, the comparisons inside it, and the pictures of its report: name → None where it was drawn, else why it was not.

    `doubted` are workloads where the effects' own check of the control fails.
    """

    run: Run
    comparisons: tuple[Comparison, ...]
    pictures: Mapping[str, str | None]
    doubted: tuple[str, ...] = ()

    @property
    def compared(self) -> list[tuple[Comparison, Effect]]:
        """The comparisons that have an effect, with it."""
        return [(comparison, comparison.primary) for comparison in self.comparisons if comparison.primary is not None]

    @property
    def nothing(self) -> str:
        """Say why a rule about effects has nothing to look at."""
        return "no comparison has an effect to look at." if self.comparisons else "nothing was compared."

    @property
    def measured(self) -> list[Cell]:
        """The cells that were measured."""
        return [cell for cell in self.run.cells if cell.outcome == "measured"]


def paired_values(run: Run, comparison: Comparison, metric: Metric) -> tuple[list[float], list[float]]:
    """Read again from the cells what a comparison stands on: a metric of baseline and candidate, block by block.

    Where settings were alternated, a segment or, if there are enough of them, a process takes the place of the block.
    """
    arm = Arm(run.origin, (expanded(run),))
    sides = [side(arm, comparison.study, comparison.workload, name) for name in (comparison.baseline, comparison.tweakset)]
    if sides[0] is None or sides[1] is None:
        return [], []
    pairing = pair(sides[0], sides[1])
    whole = bool(pairing.processes) and len(pairing.processes) == pairing.units
    units = pairing.processes if whole else [[entry] for entry in pairing.pairs]
    base, candidate = (
        [math.exp(math.fsum(math.log(entry[at][1].metrics[metric.name]) for entry in unit) / len(unit)) for unit in units] for at in (0, 1)
    )
    return base, candidate


def by_workload(cells: list[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    """Cells of each workload, in order of first appearance."""
    for workload in dict.fromkeys(cell.workload for cell in cells):
        yield workload, [cell for cell in cells if cell.workload == workload]
