"""The A/A check beside the effects: stock against a copy of it, measured by the very error the effects are measured by."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

from analysis.arms import Arm, declared_baseline
from analysis.reading import Reader, metric_named
from analysis.stats.effect import ROUNDING, moments
from analysis.terms import NotComparable
from analysis.verdict import GUARD
from analysis.wording import number, percent, probability
from control.stopping import widening
from control.t_test import ALPHA, t_quantile, t_tail

from .found import moved
from .frame import FEWEST_RUNS
from .observed import AGAIN, WHOLE_SETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Run

    from .terms import Effects, Observed


def again(run: Run, one: Effects) -> tuple[str, bool]:
    """Say what the check found, and whether it fails: stock-again changes nothing and differs all the same; "" where there is none.

    An error that is too small for this machine, or a stock that had bad luck, would call keys guilty: it calls stock-again, too. Where
    both are the baseline it is the guard of `compare`: by the scatter of the two alone, at its own level.
    """
    seen = one.observed
    guard = bool(declared_baseline(Arm(run.origin, (run,)), seen.study))
    level = GUARD if guard else ALPHA
    usable = {row.block for row in seen.rows if row.name == next(iter(seen.points))}
    stock, copies = (_values(run, seen, name) for name in (run.baseline, AGAIN))
    both = sorted(usable & stock.keys() & copies.keys())
    if not copies:
        return "", False
    sign = -1.0 if seen.better == "lower" else 1.0
    gains = [sign * math.log(copies[block] / stock[block]) for block in both]
    error, df = _error(gains, one, alone=guard or seen.design in WHOLE_SETS)
    if not error:
        why = f"{len(both)} blocks are too few" if both else f"{AGAIN} and {run.baseline} were measured in no block together"
        return f"cannot be checked: {why}.", False
    effect = math.fsum(gains) / len(gains)
    p = 2 * t_tail(abs(effect) / error, df)
    half = t_quantile(1 - ALPHA / 2, df) * error
    ends = f"95 % {number(math.expm1(effect - half))} to {percent(math.expm1(effect + half))}"
    found = f"{AGAIN}, which changes nothing, against {run.baseline}: {percent(math.expm1(effect))} ({ends}, p {probability(p)})"
    if p < level:
        why = f"By chance that is so once in {1 / level:.0f}; else the machine was not quiet, or {run.baseline} had bad luck"
        return f"{found}. {why}: no key is called.", True
    if p < ALPHA:
        return f"{found}: not below the guard's {GUARD}, yet trust these effects less.", False
    return f"{found}: no difference shown.", False


def _values(run: Run, seen: Observed, name: str) -> dict[str, float]:
    """An arm's value in each block in which it was measured and nothing that a key sets had moved."""
    found, doubts = {}, moved(run)
    for cell in run.cells:
        place = cell.study, cell.workload, cell.tweakset
        if cell.id not in doubts and place == (seen.study, seen.workload, name) and cell.outcome == "measured":
            with contextlib.suppress(NotComparable):
                found[str(cell.block)] = Reader(None)((run.run_id, cell.block), cell, metric_named(seen.metric))
    return found


def _error(gains: Sequence[float], one: Effects, *, alone: bool) -> tuple[float, int]:
    """Standard error and degrees of freedom of their mean: their own scatter `alone`, else the common error; 0 where there is none."""
    count = len(gains)
    if not alone:
        return (math.sqrt(2 * one.error_ms / count), one.error_df) if count and one.error_ms else (0.0, 0)
    if count < FEWEST_RUNS:
        return 0.0, 0
    _, spread = moments(gains)
    error = spread / math.sqrt(count) * (widening(count - 1) if one.observed.sequential else 1.0)
    return (error, count - 1) if spread > ROUNDING else (0.0, 0)
