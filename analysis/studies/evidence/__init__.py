"""Evidence from several runs for the effect of a tweak set on other days and machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from analysis.terms import Comparison, Refused, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.answer import Answer


def over_runs(
    runs: Sequence[Run], compared: Callable[[Run], Sequence[Comparison]]
) -> tuple[Answer, Callable[[], Figure]] | None:
    """Return the pooled answer of several runs and a function that draws it; None below three runs.

    The runs must have an effect in common. `compared` returns the comparisons inside a run.
    """
    from .random_effects import FEWEST_RUNS

    if len(runs) < FEWEST_RUNS:
        return None
    from .answer import answer
    from .evidence import gather
    from .pictures import draw

    try:
        gathered = gather(runs, compared=compared)
    except Refused:  # none of them has an effect
        return None
    return (
        (answer(gathered), lambda: draw(gathered))
        if any(one.over for one in gathered.evidence)
        else None
    )
