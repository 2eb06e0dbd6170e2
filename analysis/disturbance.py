"""What others took of the machine while cells were measured: a run beside other programs says so, whatever it found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

from control.t_test import ALPHA, t_tail

from .wording import probability, unsigned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .terms import Cell, Comparison, Run

# Declared: so large a share of all CPUs, in more than one cell of so many. On a quiet machine of 2 CPUs others use 0.01 (data/runs).
OTHERS, STEAL, ONE_IN = 0.10, 0.05, 10
MOST_CPUS = 1 << 16
FEWEST, LEAST_CORES = 3, 0.01  # blocks; of others, which may hold a step up by 1 %
BUSY, OWN, STOLEN = "cpu_busy_percent_mean", "process_cpu_percent_mean", "cpu_steal_percent_mean"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """The share of all CPUs that others took: its median over so many `cells`, the `most` in one cell and the block of that.

    `disturbed` are the cells in which it was more than the declared `limit`.
    """

    who: str
    limit: float
    cells: int
    disturbed: int
    median: float
    most: float
    block: int
    remedy: str

    @property
    def sentence(self) -> str:
        return (
            f"Disturbed: {self.who} {unsigned(self.median)} of the CPUs (median of {self.cells} cells; up to {unsigned(self.most)}, in "
            f"block {self.block}), more than {unsigned(self.limit)} in {self.disturbed} of them. Intervals are as wide as that makes "
            f"them: {self.remedy}."
        )


def disturbances(run: Run) -> Iterator[Disturbance]:
    """What disturbed a run: other programs, other guests of its host."""
    way_out = "measure more blocks" if run.design.kind == "turns" else "let the arms take turns (`--design=turns`)"
    others = [(share, cell.block) for cell in run.cells if (share := share_of_others(run, cell)) is not None]
    stolen = [(cell.telemetry[STOLEN] / 100, cell.block) for cell in run.cells if STOLEN in cell.telemetry]
    yield from _beyond("other programs used", OTHERS, others, f"stop these programs, or {way_out}")
    yield from _beyond("the hypervisor gave others", STEAL, stolen, f"come back at another time, or {way_out}")


def share_of_others(run: Run, cell: Cell) -> float | None:
    """Which share of all CPUs was busy with something else than the workload while it was measured; None where that is not known.

    Of a cell that took turns it was counted slice by slice, of others it is what the sensors saw. There a workload that reports more than
    its steps may have helpers that are no children of it, and a monitor is another program: not known either.
    """
    count = run.machine.get("cpu_count")
    if not isinstance(count, int) or not 0 < count < MOST_CPUS:
        return None
    counted = _counted(cell)
    if counted:
        # Read a little before and after the steps: more than all CPUs cannot have been used in them.
        return min(1.0, sum(used_s for used_s, _ in counted) / sum(wall_s for _, wall_s in counted) / count)
    if BUSY not in cell.telemetry or OWN not in cell.telemetry or cell.report or cell.monitor:
        return None
    return max(0.0, cell.telemetry[BUSY] / 100 - cell.telemetry[OWN] / 100 / count)


def _counted(cell: Cell) -> list[tuple[float, float]]:
    return [(used_s, sum(part)) for used_s, part in zip(cell.others_cpu_s, cell.slices_s, strict=True) if used_s is not None]


def partial(run: Run, comparisons: Iterable[Comparison]) -> Iterator[str]:
    """Say of which arms others' CPU time is no matter of chance: what is taken out as theirs may be the arm's own effect."""
    asked = [comparison for comparison in comparisons if not comparison.guard]
    for comparison in asked:
        arms = (comparison.tweakset, *(comparison.baseline_arms or (comparison.baseline,)))
        cores = [_cores_of_others(run, comparison, arm) for arm in arms]
        blocks = sorted(set[int].intersection(*(set(own) for own in cores)))
        differences = [cores[0][block] - fmean(own[block] for own in cores[1:]) for block in blocks]
        if len(blocks) < FEWEST or abs(more := fmean(differences)) < LEAST_CORES:
            continue
        error = stdev(differences) / math.sqrt(len(blocks))
        p = 2 * t_tail(abs(more) / error, len(blocks) - 1) if error else 0.0
        if p < ALPHA / len(asked):
            yield (
                f"Others used {abs(more):.2f} of a core {'more' if more > 0 else 'less'} beside {comparison.tweakset} than beside "
                f"{comparison.baseline} under {comparison.workload} (p {probability(p)}). If it makes them do so, what is "
                "taken out as theirs is part of "
                "its effect: whole cells (`--design=matrix`) keep that."
            )


def _cores_of_others(run: Run, comparison: Comparison, tweakset: str) -> dict[int, float]:
    """How many cores others used beside an arm that took turns, one at most (`control.turns`), by block."""
    result = {}
    for cell in run.cells:
        if (cell.study, cell.workload, cell.tweakset) == (comparison.study, comparison.workload, tweakset):
            seen = _counted(cell)
            if seen:
                result[cell.block] = sum(min(used_s, wall_s) for used_s, wall_s in seen) / sum(wall_s for _, wall_s in seen)
    return result


def _beyond(who: str, limit: float, shares: list[tuple[float, int]], remedy: str) -> Iterator[Disturbance]:
    disturbed = sum(share > limit for share, _ in shares)
    if disturbed * ONE_IN > len(shares):
        most, block = max(shares)
        yield Disturbance(who, limit, len(shares), disturbed, median(share for share, _ in shares), most, block, remedy)
