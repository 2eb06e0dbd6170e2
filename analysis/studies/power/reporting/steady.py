"""Which iterations count: the later part of each stretch under one cap, by a rule that no result can move.

A controller needs some iterations to come to a new cap, and how it ends is what it is wanted for. An iteration is steady if, counted from
the last change of the cap, it is neither among the first three nor in the first half. That is the rule by which the original scores a run
(index ≥ max(3, n ÷ 2)), taken for each cap of a schedule. It asks nothing of the readings: a rule that waits until the power has settled
would leave out just the algorithms that never settle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Iteration

FIRST = 3
RULE = f"steady: of the iterations since the cap last changed, the second half, and none of the first {FIRST}"


def phases(iterations: Sequence[Iteration]) -> list[list[Iteration]]:
    """Part iterations where the cap changes."""
    found: list[list[Iteration]] = []
    for one in iterations:
        if not found or found[-1][-1].cap != one.cap:
            found.append([])
        found[-1].append(one)
    return found


def steady(iterations: Sequence[Iteration]) -> list[Iteration]:
    """Answer those that count, under all caps of the run together; none where each cap held for too short."""
    return [one for phase in phases(iterations) for one in phase[max(FIRST, len(phase) // 2) :]]
