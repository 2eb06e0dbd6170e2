"""Adjusting p-values for how many questions were asked: the answers may each be read against the level itself.

`ADJUSTMENTS` holds them by the name a user says. The first three keep the chance of even one false alarm below the level and suit
the few contrasts of a study; the last two let at most that share of all alarms be false and suit a screen of many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


class Adjustment(Protocol):
    """Takes and returns the p-values of a family, or of many families along the last axis of an array."""

    @overload
    def __call__(self, ps: Floats, /) -> Floats: ...
    @overload
    def __call__(self, ps: Sequence[float], /) -> list[float]: ...


def _adjustment(factors: Callable[[Floats], Floats], *, step_up: bool) -> Adjustment:
    """Make an adjustment that multiplies m p-values by factors of their ranks, 1 to m, the smallest first; none exceeds 1.

    Then none falls below a smaller one's (step-down), or none exceeds a larger one's (step-up).
    """

    def adjust(ps: Any, /) -> Any:
        import numpy as np

        values = np.asarray(ps, float)
        order = np.argsort(values, axis=-1, kind="stable")
        ordered = np.minimum(1.0, factors(np.arange(1.0, values.shape[-1] + 1)) * np.take_along_axis(values, order, -1))
        ordered = np.minimum.accumulate(ordered[..., ::-1], -1)[..., ::-1] if step_up else np.maximum.accumulate(ordered, -1)
        result = np.empty_like(values)
        np.put_along_axis(result, order, ordered, -1)
        return result if isinstance(ps, np.ndarray) else result.tolist()

    return adjust


bonferroni = _adjustment(lambda ranks: 0 * ranks + len(ranks), step_up=False)
holm = _adjustment(lambda ranks: len(ranks) + 1 - ranks, step_up=False)  # Holm 1979
# Hochberg 1988: a little stronger, for independent contrasts; those with one baseline hang together positively, which is as good
# (Sarkar 1998).
hochberg = _adjustment(lambda ranks: len(ranks) + 1 - ranks, step_up=True)
benjamini_hochberg = _adjustment(lambda ranks: len(ranks) / ranks, step_up=True)  # 1995
benjamini_yekutieli = _adjustment(lambda ranks: (1 / ranks).sum() * len(ranks) / ranks, step_up=True)  # 2001, whatever hangs together

ADJUSTMENTS: dict[str, Adjustment] = {
    "holm": holm,
    "hochberg": hochberg,
    "bonferroni": bonferroni,
    "bh": benjamini_hochberg,
    "by": benjamini_yekutieli,
}
