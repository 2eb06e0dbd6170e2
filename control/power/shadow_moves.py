"""The partitions around one that the shadow optimiser looks at: shares moved, batches changed, processes merged or split."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from control.power.partitioning.batches import fits

from .ladders import at_most
from .terms import Partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Knobs

Value = TypeVar("Value")

MOST_PROCESSES = 10
STEP_PERCENT = 5.0
RUNGS = (-3, -2, -1, 1, 2, 3)
LADDER = (1, 2, 4, *range(8, 257, 4))


def around(here: Partition, network: str, knobs: Knobs) -> list[Partition]:
    """All that can be set here, each once, in a fixed order, without the present one; none where it has more processes than are handled."""
    if len(here.shares) > MOST_PROCESSES:
        return []
    found = [*_shared(here), *_batched(here, network), *_merged(here, network), *_split(here, network)]
    return [
        one
        for one in dict.fromkeys(found)
        if one != here
        and len(one.shares) <= min(MOST_PROCESSES, knobs.most_processes)
        and (knobs.shares or one.shares == here.shares)
        and all(batch in knobs.batches for batch in one.batches)
    ]


def bounds(share: float, network: str) -> tuple[int, int]:
    """The least and the largest batch of a process of this share: 0.8 and 6.4 images per percent."""
    high = int(6.4 * share)
    while not fits(network, high):
        high -= 1
    return max(4, int(0.8 * share)), high


def _shared(here: Partition) -> list[Partition]:
    """Five percent to and from the process of the largest share."""
    largest = max(range(len(here.shares)), key=lambda at: here.shares[at])
    found = []
    for at in range(len(here.shares)):
        for step in (STEP_PERCENT, -STEP_PERCENT):
            shares = list(here.shares)
            shares[at] += step
            shares[largest] -= step
            if at != largest and min(shares) >= STEP_PERCENT:
                found.append(Partition(tuple(shares), here.batches))
    return found


def _batched(here: Partition, network: str) -> list[Partition]:
    """One process with a batch up to three rungs away."""
    found: list[Partition] = []
    for at, (share, batch) in enumerate(zip(here.shares, here.batches, strict=True)):
        low, high = bounds(share, network)
        rung = at_most(LADDER, batch)
        others = [LADDER[rung + step] for step in RUNGS if 0 <= rung + step < len(LADDER)]
        found += [Partition(here.shares, _with(here.batches, at, other)) for other in others if low <= other <= high]
    return found


def _merged(here: Partition, network: str) -> list[Partition]:
    """The two processes of the smallest shares as one."""
    if len(here.shares) < 2:
        return []
    order = sorted(range(len(here.shares)), key=lambda at: (here.shares[at], at))
    first, second = sorted(order[:2])
    share = here.shares[first] + here.shares[second]
    low, high = bounds(share, network)
    batch = LADDER[at_most(LADDER, min(max(here.batches[first] + here.batches[second], low), high))]
    shares, batches = _with(here.shares, first, share), _with(here.batches, first, batch)
    return [Partition(shares[:second] + shares[second + 1 :], batches[:second] + batches[second + 1 :])]


def _split(here: Partition, network: str) -> list[Partition]:
    """The process of the largest share as two of half of it each, to five percent."""
    at = max(range(len(here.shares)), key=lambda one: here.shares[one])
    half = STEP_PERCENT * (here.shares[at] / 2 // STEP_PERCENT)
    if half < STEP_PERCENT:
        return []
    rest = here.shares[at] - half
    allowed = bounds(half, network), bounds(rest, network)
    batches = [LADDER[at_most(LADDER, min(max(here.batches[at] // 2, low), high))] for low, high in allowed]
    return [
        Partition(
            (*here.shares[:at], half, rest, *here.shares[at + 1 :]),
            (*here.batches[:at], *batches, *here.batches[at + 1 :]),
        )
    ]


def _with(values: Sequence[Value], at: int, value: Value) -> tuple[Value, ...]:
    return (*values[:at], value, *values[at + 1 :])
