"""Reading one number from a cell, by itself or relative to a control cell of its own block."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from .arms import both, parts, side
from .checks import different_data, must_be_in_force, must_have_done_its_jobs, must_not_contradict
from .terms import Metric, NotComparable

if TYPE_CHECKING:
    from .arms import Arm, Place, Side
    from .terms import Cell, Comparison

RATE = re.compile(r"_per_s(?:_|$)")


class Reader:
    """Reads a metric of a cell; with a control, divided by the control's of the same run and block: drift between runs cancels."""

    def __init__(self, control: Side | None) -> None:
        self.control = control

    def __call__(self, place: Place, cell: Cell, metric: Metric) -> float:
        value = _value(cell, metric)
        if self.control is None:
            return value
        other = self.control.cells.get(place)
        if other is None or other.outcome != "measured":
            raise NotComparable(f"{cell.id}: {self.control.tweakset.name} was not measured in its block, so nothing to be relative to.")
        reason = different_data(other, cell)
        if reason:
            raise NotComparable(f"{cell.id} and {other.id}, which it is to be relative to: {reason}.")
        return value / _value(other, metric)

    def must_hold(self) -> None:
        """Check the control as an arm is checked: its settings in force, its numbers those of its steps.

        Raises: NotComparable.
        """
        if self.control is not None:
            cells = [part for cell in self.control.cells.values() if cell.outcome == "measured" for part in parts(cell)]
            must_be_in_force(self.control.tweakset, cells)
            must_not_contradict(cells)
            must_have_done_its_jobs(cells)

    def moved(self, runs: tuple[frozenset[str], frozenset[str]], metric: Metric) -> float:
        if self.control is None:
            raise ValueError("there is no control that could move")
        base, candidate = (
            [math.log(_value(cell, metric)) for place, cell in self.control.cells.items() if place[0] in arm and cell.outcome == "measured"]
            for arm in runs
        )
        shift = math.fsum(candidate) / len(candidate) - math.fsum(base) / len(base)
        return math.expm1(shift if metric.better == "higher" else -shift)


def reader(arms: tuple[Arm, Arm], draft: Comparison) -> Reader:
    """Make the reader for one contrast; the control's cells come from the runs of both arms.

    Raises: NotComparable, where the control was not run: values as they are would pass for relative ones.
    """
    if draft.relative_to is None:
        return Reader(None)
    control = side(both(*arms), draft.study, draft.workload, draft.relative_to)
    if control is None:
        raise NotComparable(f"{draft.relative_to} was not run under {draft.workload}, so there is nothing to be relative to.")
    return Reader(control)


def metric_named(name: str) -> Metric:
    return Metric(name, "higher" if is_rate(name) or name.startswith("au_") else "lower")


def is_rate(name: str) -> bool:
    """Whether a metric is so much a second: `mb_per_s_read` is one, `cpu_s_per_step` is none."""
    return bool(RATE.search(name))


def _value(cell: Cell, metric: Metric) -> float:
    value = cell.metrics.get(metric.name)
    if value is None:
        raise NotComparable(f"{cell.id} has no {metric.name}; it has {', '.join(sorted(cell.metrics))}.")
    if value <= 0:
        raise NotComparable(f"{cell.id} has {metric.name} = {value:g}: no ratio can be taken.")
    return value
