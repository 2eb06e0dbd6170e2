"""Values with their intervals: means over blocks or runs, ratios of pairs, gains. A block is the unit; what is in one counts once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from analysis.stats.adjust import holm
from analysis.stats.effect import ROUNDING, moments, paired_effect
from analysis.terms import Metric, NotComparable
from control.t_test import ALPHA, t_quantile, t_tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.terms import Effect

    from .records import Unit

Key = TypeVar("Key")
FEWEST = 3  # blocks or runs that carry an interval
FEW = f"fewer than {FEWEST} blocks: no interval"
FEW_RUNS = f"fewer than {FEWEST} runs: no interval"
SAME = "the same in every block: no interval"


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval and standard error; None of both where they are unknown, `why` then says why."""

    value: float
    low: float | None = None
    high: float | None = None
    se: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One number over another, paired by block: geometric mean with 95 and 90 % intervals, None of which where `why` says so.

    `p` is two-sided, against 1, and not adjusted.
    """

    value: float
    blocks: int
    low: float | None = None
    high: float | None = None
    low90: float | None = None
    high90: float | None = None
    p: float | None = None
    why: str = ""


def grouped(values: Iterable[tuple[Unit, float | None]]) -> dict[Unit, list[float]]:
    groups: dict[Unit, list[float]] = {}
    for unit, value in values:
        if value is not None:
            groups.setdefault(unit, []).append(value)
    return groups


def average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def mean(values: Mapping[Unit, Sequence[float]]) -> Figure | None:
    """Mean over blocks of the means inside each; a block is the unit. None where there is no value."""
    units = [average(inside) for inside in values.values() if inside]
    if len(units) >= FEWEST:
        value, spread = moments(units)
        if spread <= ROUNDING * abs(value):
            return Figure(value, why=SAME)
    return _over(units, FEW)


def over_runs(values: Sequence[float]) -> Figure | None:
    """One value a run → their mean; None where there is none, without an interval where there are fewer than three."""
    return _over(values, FEW_RUNS)


def _over(values: Sequence[float], few: str) -> Figure | None:
    if not values:
        return None
    value, spread = moments(values)
    if len(values) < FEWEST:
        return Figure(value, why=few)
    se = spread / math.sqrt(len(values))
    half = t_quantile(1 - ALPHA / 2, len(values) - 1) * se
    return Figure(value, value - half, value + half, se)


def ratio(pairs: Mapping[Unit, Sequence[tuple[float, float]]]) -> Ratio | None:
    """Second over first, pair by pair, all above 0; pairs of one block count as one. None where there is none."""
    units = [math.fsum(math.log(after / before) for before, after in inside) / len(inside) for inside in pairs.values() if inside]
    if not units:
        return None
    log, spread = moments(units)
    n = len(units)
    if n < FEWEST:
        return Ratio(math.exp(log), n, why=FEW)
    if spread < ROUNDING:
        return Ratio(math.exp(log), n, why=SAME)
    se = spread / math.sqrt(n)
    low, high, low90, high90 = (
        math.exp(log + sign * t_quantile(1 - tail, n - 1) * se) for tail in (ALPHA / 2, ALPHA) for sign in (-1.0, 1.0)
    )
    return Ratio(math.exp(log), n, low, high, low90, high90, 2 * t_tail(abs(log) / se, n - 1))


def adjusted(ratios: Sequence[Ratio | None]) -> list[float | None]:
    """Each ratio's p after Holm over all that have one; None for those without."""
    known = {at: ratio.p for at, ratio in enumerate(ratios) if ratio is not None and ratio.p is not None}
    return [*map(holm_by_key(known).get, range(len(ratios)))]


def holm_by_key(p: Mapping[Key, float]) -> dict[Key, float]:
    return dict(zip(p, holm(list(p.values())), strict=True))


def gain(metric: str, before: Mapping[Unit, float], after: Mapping[Unit, float]) -> Effect | None:
    """How much lower is better in `after`, run by run of those that both have; None where fewer than three do, or nothing varies."""
    shared = [unit for unit in before if unit in after]
    if len(shared) < FEWEST:
        return None
    try:
        return paired_effect(Metric(metric, "lower"), [before[unit] for unit in shared], [after[unit] for unit in shared], 0.0)
    except NotComparable:
        return None


def unknown_gain(before: Mapping[Unit, float], after: Mapping[Unit, float]) -> str:
    return "by too few runs for an interval" if len(before.keys() & after.keys()) < FEWEST else "by the very same share in every run"
