"""From a pilot to a plan: blocks and time."""

from __future__ import annotations

from analysis.terms import Refused, Run


def blocks_for(run: Run, gain: float) -> tuple[int | None, float | None, bool | None] | None:
    """Return the blocks and seconds that seeing a gain takes, and whether this machine can be had for so long; None without a plan."""
    from .plan import Goal, plan

    try:
        result = plan(run, Goal(gain))
    except (Refused, ValueError):  # no pilot for a plan, or no spread left in it: then the run says no more than its own noise
        return None
    return result.blocks, result.total_s, result.on_this_machine
