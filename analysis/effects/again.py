"""The A/A check beside the effects: stock against a copy of it, measured by the very error the effects are measured by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.reading import Reader, metric_named
from analysis.stats.effect import ROUNDING, moments
from analysis.terms import NotComparable
from analysis.wording import number, percent, probability
from control.t_test import ALPHA, t_quantile, t_tail

from .found import moved
from .frame import FEWEST_RUNS
from .observed import AGAIN, WHOLE_SETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Run

    from .terms import Effects


def again(run: Run, one: Effects) -> tuple[str, bool]:
    """Say what the check found, and whether it fails: stock-again changes nothing and differs all the same; "" where there is none.

    An error that is too small for this machine, or a stock that had bad luck, would call keys guilty: it calls stock-again, too.
    """
    seen = one.observed
    stock = {row.block: row.value for row in seen.rows if row.name == run.baseline}
    copies, doubts = {}, moved(run)
    for cell in run.cells:
        if (
            cell.id not in doubts
            and (cell.study, cell.workload, cell.tweakset) == (seen.study, seen.workload, AGAIN)
            and cell.outcome == "measured"
        ):
            try:
                copies[str(cell.block)] = Reader(None)((run.run_id, cell.block), cell, metric_named(seen.metric))
            except NotComparable:
                continue
    both = sorted(stock.keys() & copies.keys())
    if not copies:
        return "", False
    sign = -1.0 if seen.better == "lower" else 1.0
    gains = [sign * math.log(copies[block] / stock[block]) for block in both]
    error, df = _error(gains, one)
    if not error:
        why = f"{len(both)} blocks are too few" if both else f"{AGAIN} and {run.baseline} were measured in no block together"
        return f"cannot be checked: {why}.", False
    effect = math.fsum(gains) / len(gains)
    p = 2 * t_tail(abs(effect) / error, df)
    half = t_quantile(1 - ALPHA / 2, df) * error
    ends = f"95 % {number(math.expm1(effect - half))} to {percent(math.expm1(effect + half))}"
    found = f"{AGAIN}, which changes nothing, against {run.baseline}: {percent(math.expm1(effect))} ({ends}, p {probability(p)})"
    if p < ALPHA:
        why = f"By chance that is so once in 20; else the machine was not quiet, or {run.baseline} had bad luck: no key is called."
        return f"{found}. {why}", True
    return f"{found}: no difference shown.", False


def _error(gains: Sequence[float], one: Effects) -> tuple[float, int]:
    """Standard error and degrees of freedom of their mean: of whole tweak sets their own scatter, else the common error; 0 where none."""
    count = len(gains)
    if one.observed.design not in WHOLE_SETS:
        return (math.sqrt(2 * one.error_ms / count), one.error_df) if count and one.error_ms else (0.0, 0)
    if count < FEWEST_RUNS:
        return 0.0, 0
    _, spread = moments(gains)
    return (spread / math.sqrt(count), count - 1) if spread > ROUNDING else (0.0, 0)
