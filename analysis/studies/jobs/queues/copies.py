"""Which streams are copies of another: the same jobs at the same times, again. What chance did to one it did to both, so it counts once.

A block's seed draws its stream, so that `stock-again` has the jobs of `stock`; two runs of one seed have the same, and a trace is the same
in every block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from .terms import Stream

DETERMINISTIC = "deterministic"
DIGITS = 6  # to the microsecond: a plan that was written and read again is the same plan


def plan(kind: object, planned_s: Sequence[float | None], work: Sequence[float | None]) -> Hashable:
    """What chance drew of a stream: when its jobs were to come or, where that is no matter of chance, their sizes. None of neither."""
    times = () if kind == DETERMINISTIC else _drawn(planned_s)
    return times or _drawn(work) or None


def distinct(streams: Sequence[Stream], said: list[str]) -> list[Stream]:
    """Leave copies out, those of the untouched machine first; how many is said, a line for each group."""
    seen: set[Hashable] = set()
    kept: list[Stream] = []
    left: dict[str, int] = {}
    for one in sorted(streams, key=lambda one: one.again):
        keys = {(one.group, key) for key in one.drawn}
        if keys & seen:
            left[one.group] = left.get(one.group, 0) + 1
        else:
            kept.append(one)
        seen |= keys
    for group, count in left.items():
        were = "stream had the jobs of another" if count == 1 else "streams had the jobs of others"
        said.append(f"{group}: {count} {were} at the same times: a copy is no replicate, and is left out.")
    order = {id(one): at for at, one in enumerate(streams)}
    return sorted(kept, key=lambda one: order[id(one)])


def _drawn(values: Iterable[float | None]) -> tuple[float, ...]:
    """Values as they are compared; nothing of those that are not all told, or are all equal."""
    known = [round(value, DIGITS) for value in values if value is not None]
    return tuple(known) if len(set(known)) > 1 else ()
