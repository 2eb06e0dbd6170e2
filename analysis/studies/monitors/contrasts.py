"""Each monitor against none, by the machinery that compares tweak sets: paired by block, on log ratios, Holm over the study.

A comparison speaks of gains, as a tweak set is wanted to have one; here the same number is turned into what is paid.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.compare import Options, compare

from .records import ALL_CPU, ENERGY
from .terms import Figure

if TYPE_CHECKING:
    from collections.abc import Collection

    from analysis.terms import Cell, Comparison, Effect, Metric, Run

WALL = "step_time_mean_s"
OTHERS = (WALL, ALL_CPU, ENERGY)


def contrasts(run: Run) -> list[Comparison]:
    """Compare every arm of a run with the one without a monitor, in the primary metric and in the others beside it."""
    return compare(run, None, Options(metrics=OTHERS))


def against(run: Run, baseline: str, arms: Collection[str]) -> list[Comparison]:
    """Compare some arms with one of their own kind; these contrasts alone are the family of the adjustment."""
    names = {baseline, *arms}
    cells = tuple(cell for cell in run.cells if cell.tweakset in names)
    known = {name: tweakset for name, tweakset in run.tweaksets.items() if name in names}
    return compare(replace(run, cells=cells, tweaksets=known), baseline)


def figure(effect: Effect | None, p_adjusted: float | None = None) -> Figure | None:
    """Turn a gain into an overhead: to do 1/1.25 of the work a second is to pay 25 % more."""
    if effect is None:
        return None
    return Figure(cost(effect.gain), cost(effect.high), cost(effect.low), effect.n_baseline, effect.p, p_adjusted, effect.p_equivalent)


def other(comparison: Comparison, metric: str) -> Figure | None:
    """The overhead in one of the other metrics; None where its cells do not have it."""
    return figure(next((effect for effect in comparison.others if effect.metric.name == metric), None))


def cost(gain: float) -> float:
    """What is paid more where so much is gained: a gain of -0.2 costs a quarter more, and one of -1 more than can be written."""
    return 1 / (1 + gain) - 1 if gain > -1 else math.inf


def paid_inside(cell: Cell, metric: Metric) -> float:
    """Answer how many times as much was paid in the segments of a process with the monitor as in those without."""
    logs = [math.log(segment.metrics[metric.name]) * (1 if segment.tweakset == cell.tweakset else -1) for segment in cell.segments]
    return math.exp(2 * math.fsum(logs) / len(logs))
