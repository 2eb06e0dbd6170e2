"""One algorithm on one task: its means, whether it holds the cap, what it is against the baseline, and what was foretold of it."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING

from . import contrasts
from .figures import ABOVE, ABOVE_102, LONGEST, OVER_SLO, P95, PER_IMAGE, POWER, RESPONSES, THROUGHPUT, WORST, most_of
from .steady import steady
from .terms import NO_SENSOR, WATT, Against, Arm, Foretold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from analysis.studies.monitors.terms import Mean
    from analysis.terms import Comparison

    from .contrasts import Table
    from .terms import Capped, Holds, Iteration

# The share of steady time above 1.02 times the cap, up to which a cap counts as held.
LIMIT = 0.05
# What is foretold: the prediction and the measurement.
PREDICTED: dict[str, Callable[[Iteration], tuple[float | None, float | None]]] = {
    "images/s": lambda one: (one.predicted_images_per_s, one.throughput_images_per_s),
    "largest reading": lambda one: (one.predicted_power, one.power_max),
}
COMPARED = (THROUGHPUT, ABOVE_102, ABOVE, POWER, PER_IMAGE, P95, OVER_SLO)


def holds(above: Mean | None, *, sensed: bool = False, whole: bool = True) -> Holds:
    """Whether the cap is held, as far as the interval over blocks can say; one block has none and shows nothing.

    `sensed`: there was a sensor, so that without a mean its readings are missing. `whole`: no block lacks the share. What is missing may
    have been above, so that the blocks that are left cannot show that the cap is held; that it is not, they can.
    """
    if above is None:
        return "not shown" if sensed else "no sensor"
    if above.low is None or above.high is None:
        return "not shown"
    return "yes" if whole and above.high <= LIMIT else "no" if above.low > LIMIT else "not shown"


def against(table: Table, task: str, arm: str, baseline: str, row: Comparison | None) -> dict[str, Against]:
    """Compare an arm with the baseline in each response; rates by the comparison that was made, shares by differences."""
    if row is None:
        return {}
    found = {}
    for name in COMPARED:
        if RESPONSES[name].scale == "log":
            found[name] = contrasts.ratio(row, name)
        else:
            both = (contrasts.by_block(table, task, one, name) for one in (baseline, arm))
            found[name] = contrasts.difference(*both)
    return found


def arm_of_task(  # noqa: PLR0913, PLR0917  # one row of a table, and what it is made of
    table: Table, task: str, name: str, cells: Sequence[Capped], row: Comparison | None, compared: Mapping[str, Against]
) -> Arm:
    """Say of one algorithm what its blocks come to."""
    blocks = [value for (its, arm, _), value in table.items() if (its, arm) == (task, name)]
    means = {
        response: made
        for response in RESPONSES
        if (made := contrasts.mean(response, contrasts.by_block(table, task, name, response).values())) is not None
    }
    counted = [one for cell in cells for one in steady(cell.iterations)]
    every = [one for cell in cells for one in cell.iterations]
    sensed = any(cell.power_source != NO_SENSOR or cell.unit != WATT for cell in cells)
    unread = unread_of([one for one in blocks if isinstance(one, dict)], cells, sensed=sensed)
    return Arm(
        name=name,
        n=sum(isinstance(one, dict) for one in blocks),
        blocks=len(blocks),
        verdict="not comparable" if row is None else row.verdict,
        reason="" if row is None else row.reason,
        holds=holds(means.get(ABOVE_102), sensed=sensed, whole=ABOVE_102 not in unread),
        means=means,
        most=most_of(cells),
        against=compared,
        mde=None if row is None else row.mde,
        foretold=tuple(foretold(counted)),
        lost=dict(Counter(f"{one[0]}: {one[1].rstrip('.')}." for one in blocks if isinstance(one, tuple))),
        refused=dict(Counter(sentence for one in every for sentence in one.refused)),
        crashed=dict(Counter(sentence for one in every for sentence in one.lost)),
        infeasible=dict(Counter(sentence for cell in cells for sentence in dict.fromkeys(cell.infeasible))),
        astray=sum(one.astray for one in every),
        unread=unread,
        notes=() if row is None else tuple(note for note in row.notes if " left out: " not in note),
    )


def unread_of(blocks: Sequence[Mapping[str, float]], cells: Sequence[Capped], *, sensed: bool) -> dict[str, int]:
    """Count the measured blocks that lack a figure: response → blocks.

    A figure that no block has is none that is lost, but for time above 1.02 times the cap where there was a sensor. A rate of 0 has no
    logarithm and is in no mean either. Of the largest of all iterations those blocks count in which one is not known.
    """
    found = {}
    for name, one in RESPONSES.items():
        known = [block for block in blocks if name in block and (one.scale == "raw" or block[name] > 0)]
        if len(known) < len(blocks) and (any(name in block for block in blocks) or (sensed and name == ABOVE_102)):
            found[name] = len(blocks) - len(known)
    for name in (LONGEST, WORST):
        missing = {cell.block for cell in cells if any(getattr(one, name) is None for one in steady(cell.iterations))}
        if missing and name in most_of(cells):
            found[name] = len(missing)
    return found


def as_asked(rows: Iterable[Iteration]) -> list[Iteration]:
    """Answer iterations that a prediction can be held against: all was as it was asked for, and all processes ran."""
    return [one for one in rows if not (one.refused or one.lost or one.astray)]


def foretold(rows: Iterable[Iteration]) -> list[Foretold]:
    """Hold predictions against measurements."""
    kept = as_asked(rows)
    found = []
    for what, of in PREDICTED.items():
        errors = [said / was - 1 for said, was in map(of, kept) if said is not None and was]
        if errors:
            found.append(Foretold(what, len(errors), statistics.median(errors), statistics.median(map(abs, errors))))
    return found


def front(arms: Sequence[Arm]) -> set[str]:
    """The arms that no other beats: none has as much throughput from as little power, and more of one of the two."""
    places = {one.name: (one.means[THROUGHPUT].value, -one.means[POWER].value) for one in arms if {THROUGHPUT, POWER} <= one.means.keys()}
    return {
        name
        for name, own in places.items()
        if not any(other != own and all(theirs >= mine for theirs, mine in zip(other, own, strict=True)) for other in places.values())
    }
