"""Adjustments of p-values for multiple tests, by the names that users give.

Holm's suits the few contrasts of a study, Benjamini and Hochberg's a screen of many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def holm(ps: Sequence[float]) -> list[float]:
    """Adjust by Holm (1979): multiply m p-values, ascending, by m, m - 1, …; keep their order."""
    result, least = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = result[index] = max(least, min(1.0, (len(ps) - rank) * ps[index]))
    return result


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Adjust by Benjamini-Hochberg (1995): multiply p of rank k of m by m / k; keep the order."""
    result, most = [0.0] * len(ps), 1.0
    for rank, index in reversed(
        list(enumerate(sorted(range(len(ps)), key=ps.__getitem__), start=1))
    ):
        most = result[index] = min(most, len(ps) / rank * ps[index])
    return result


ADJUSTMENTS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
}
