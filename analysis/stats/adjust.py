"""Adjusting p-values for how many questions were asked: the answers may each be read against the level itself.

`ADJUSTMENTS` holds them by the name a user says. The first three keep the chance of even one false alarm below the level and suit
the few contrasts of a study; the last two let at most that share of all alarms be false and suit a screen of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Adjustment = Callable[[Sequence[float]], list[float]]


def _adjustment(factors: Callable[[int], Iterable[float]], *, step_up: bool) -> Adjustment:
    """Make an adjustment that multiplies m p-values, the smallest first, by these factors; none exceeds 1.

    Then none falls below a smaller one's (step-down), or none exceeds a larger one's (step-up).
    """

    def adjust(ps: Sequence[float]) -> list[float]:
        order = sorted(range(len(ps)), key=lambda index: ps[index])
        raised = [min(1.0, factor * ps[index]) for index, factor in zip(order, factors(len(ps)), strict=True)]
        ordered = list(accumulate(reversed(raised), min))[::-1] if step_up else list(accumulate(raised, max))
        by_index = dict(zip(order, ordered, strict=True))
        return [by_index[index] for index in range(len(ps))]

    return adjust


def _by_rank(m: int) -> Iterable[float]:
    return (m / rank for rank in range(1, m + 1))


def _by_rank_under_dependence(m: int) -> Iterable[float]:
    harmonic = sum(1 / rank for rank in range(1, m + 1))
    return (harmonic * m / rank for rank in range(1, m + 1))


bonferroni = _adjustment(lambda m: [m] * m, step_up=False)
holm = _adjustment(lambda m: range(m, 0, -1), step_up=False)  # Holm 1979
# Hochberg 1988: a little stronger, for independent contrasts; those with one baseline hang together positively, which is as good
# (Sarkar 1998).
hochberg = _adjustment(lambda m: range(m, 0, -1), step_up=True)
benjamini_hochberg = _adjustment(_by_rank, step_up=True)  # 1995
benjamini_yekutieli = _adjustment(_by_rank_under_dependence, step_up=True)  # 2001, whatever hangs together

ADJUSTMENTS: dict[str, Adjustment] = {
    "holm": holm,
    "hochberg": hochberg,
    "bonferroni": bonferroni,
    "bh": benjamini_hochberg,
    "by": benjamini_yekutieli,
}
