"""Figures over runs: the mean of what each run came to, with the 95 % interval that runs, and not jobs, give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.stats.effect import moments, paired_effect
from analysis.studies.jobs.queues.terms import Figure
from analysis.terms import Metric, NotComparable
from control.t_test import t_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Effect

FEWEST = 3
FEW = f"fewer than {FEWEST} runs: no interval"


def mean(values: Sequence[float]) -> float:
    """The mean of some values."""
    return moments(values)[0]


def over_runs(values: Sequence[float]) -> Figure | None:
    """One value a run → their mean; None where there is none, without an interval where there are fewer than three."""
    if not values:
        return None
    middle, spread = moments(values)
    if len(values) < FEWEST:
        return Figure(middle, why=FEW)
    se = spread / len(values) ** 0.5
    half = t_quantile(0.975, len(values) - 1) * se
    return Figure(middle, middle - half, middle + half, se)


def unknown_gain(before: Mapping[tuple[str, int], float], after: Mapping[tuple[str, int], float]) -> str:
    """Say why there is no gain."""
    return "by too few runs for an interval" if len(before.keys() & after.keys()) < FEWEST else "by the very same share in every run"


def gain(metric: str, before: Mapping[tuple[str, int], float], after: Mapping[tuple[str, int], float]) -> Effect | None:
    """How much lower is better in `after`, run by run of those that both have; None where fewer than three do, or nothing varies."""
    shared = [unit for unit in before if unit in after]
    if len(shared) < FEWEST:
        return None
    try:
        return paired_effect(Metric(metric, "lower"), [before[unit] for unit in shared], [after[unit] for unit in shared], 0.0)
    except NotComparable:
        return None
