"""Slots shared evenly by those who want them: next is a job of the tenant that holds the fewest, then of the one that has had least time.

Who was away comes back as an equal, not with credit for it (`scheduler.Shares`). Within a tenant first come, first served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from control.scheduling.terms import Start

if TYPE_CHECKING:
    from collections.abc import Iterable

    from control.scheduling.terms import Job, State

DESCRIPTION = "the tenant that holds the fewest slots first"


def choose(waiting: Iterable[Job], state: State) -> Start | None:
    """The first job of the tenant whose turn it is; where it does not fit, nobody overtakes it."""
    firsts: dict[str, Job] = {}
    for job in waiting:
        firsts.setdefault(job.tenant, job)
    if not firsts:
        return None
    turn = min(firsts.values(), key=lambda job: (state.running.get(job.tenant, 0), state.served_s.get(job.tenant, 0.0), job.submit_s))
    kind = state.fastest(turn)
    return None if kind is None else Start(turn.number, kind)
