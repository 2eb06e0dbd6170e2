"""From a pilot to a plan: blocks and time."""

from __future__ import annotations

from analysis.terms import Refused, Run


def blocks_for(run: Run, gain: float) -> tuple[int | None, float | None, bool | None] | None:
    """Return blocks and seconds needed for a gain, and whether a day suffices, if planned."""
    from .plan import Goal, plan

    try:
        result = plan(run, Goal(gain))
    except (Refused, ValueError):  # unusable as a pilot, or without spread
        return None
    return result.blocks, result.total_s, result.on_this_machine
