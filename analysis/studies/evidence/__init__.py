"""Evidence over several runs: does a tweak set help in general, on other days and other machines?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from analysis.terms import Comparison, Refused, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.answer import Answer


def over_runs(runs: Sequence[Run], compared: Callable[[Run], Sequence[Comparison]]) -> tuple[Answer, Callable[[], Figure]] | None:
    """What several runs say together, and what draws it; None of fewer than three that have an effect in common.

    `compared`: the comparisons inside a run.
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
    return (answer(gathered), lambda: draw(gathered)) if any(one.over for one in gathered.evidence) else None
