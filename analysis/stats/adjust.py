"""Adjusting p-values for how many questions were asked: the answers may each be read against the level itself.

`ADJUSTMENTS` holds them by the name a user says. The first three keep the chance of even one false alarm below the level and suit
the few contrasts of a study; the last two let at most that share of all alarms be false and suit a screen of many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def bonferroni(ps: Sequence[float]) -> list[float]:
    return [min(1.0, len(ps) * p) for p in ps]


def holm(ps: Sequence[float]) -> list[float]:
    """Adjust p-values for their number (Holm 1979, step-down): each may be read against the level itself.

    The smallest is multiplied by m, the next by m-1 and so on, none falls below a smaller one's, none exceeds 1.
    """
    m = len(ps)
    adjusted = [1.0] * m
    floor = 0.0
    for rank, index in enumerate(sorted(range(m), key=lambda i: ps[i])):
        floor = max(floor, min(1.0, (m - rank) * ps[index]))
        adjusted[index] = floor
    return adjusted


def hochberg(ps: Sequence[float]) -> list[float]:
    """Adjust with Holm's factors from the largest p-value down (Hochberg 1988): a little stronger, for independent contrasts.

    Contrasts with one baseline hang together positively, which is as good (Sarkar 1998).
    """
    return _step_up(ps, lambda rank, m: m - rank + 1)


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Adjust p-values so that of all that is called different at most the level is expected to be false (1995, step-up).

    The i-th smallest of m is multiplied by m/i, none exceeds a larger one's, none exceeds 1.
    """
    return _step_up(ps, lambda rank, m: m / rank)


def benjamini_yekutieli(ps: Sequence[float]) -> list[float]:
    harmonic = sum(1 / rank for rank in range(1, len(ps) + 1))
    return _step_up(ps, lambda rank, m: harmonic * m / rank)


def _step_up(ps: Sequence[float], factor: Callable[[int, int], float]) -> list[float]:
    """Multiply the p-value of each rank (1 is the smallest) by its factor; from the largest down, none exceeds its larger neighbour's."""
    m = len(ps)
    adjusted = [1.0] * m
    ceiling = 1.0
    for rank, index in sorted(enumerate(sorted(range(m), key=lambda i: ps[i]), start=1), reverse=True):
        ceiling = min(ceiling, ps[index] * factor(rank, m))
        adjusted[index] = ceiling
    return adjusted


ADJUSTMENTS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "holm": holm,
    "hochberg": hochberg,
    "bonferroni": bonferroni,
    "bh": benjamini_hochberg,
    "by": benjamini_yekutieli,
}
