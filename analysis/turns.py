"""When the cells and runs of two arms were measured: whether the arms ran side by side, took turns, or one came after the other."""

from __future__ import annotations

import math
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from .arms import parts
from .plain import moment
from .terms import NotComparable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .arms import Place
    from .stats.effect import Times
    from .terms import Cell

WAY_OUT = "Let both take turns, or compare --relative-to a tweak set that both have."
UNKNOWN_TURNS = f"when each run was made is not known, nor whether the arms took turns: drift cannot be told from a difference. {WAY_OUT}"
FAR_APART = (
    "the time between base and candidate is {:.3g} times as long as the runs of either arm span: what such a time does to the machine "
    f"they cannot show. {WAY_OUT}"
)


def side_by_side(pairs: Iterable[tuple[tuple[Place, Cell], tuple[Place, Cell]]]) -> bool:
    """Whether each block's cells ran one after the other, as far as these arms go: drift falls on all."""
    every = [(place, part) for pair in pairs for place, cell in pair for part in parts(cell)]
    cells = [entry for entry in every if entry[1].process is None]
    cells.sort(key=lambda cell: (cell[0][0], cell[1].node or "", cell[1].order))
    return len(list(groupby(place for place, _ in cells))) == len({place for place, _ in cells})


def seconds(started_utc: str) -> float:
    """When that was; not a number where it is not known."""
    stamp = moment(started_utc)
    return stamp.timestamp() if stamp else math.nan


def clock_of(cells: Sequence[Cell]) -> Callable[[Cell], float]:
    """Find what tells when cells of one run were measured: their own times, or their place in its order where not each has one."""
    if len({cell.started_utc for cell in cells} - {None}) == len(cells):
        return lambda cell: seconds(cell.started_utc or "")
    return lambda cell: cell.order


def must_be_near_in_time(times: Times) -> None:
    """Check that the order of time is known, and that the arms are no farther apart than one of them reaches.

    Raises: NotComparable.
    """
    every = sorted((time, arm) for arm, own in enumerate(times) for time in own)
    gaps = [(after - before, number != other) for (before, number), (after, other) in pairwise(every)]
    if not all(gap > 0 for gap, _ in gaps):
        raise NotComparable(UNKNOWN_TURNS)
    between = max(gap for gap, across in gaps if across)
    reach = max(own[-1] - own[0] for own in times)
    if between > reach:
        raise NotComparable(FAR_APART.format(between / reach))
