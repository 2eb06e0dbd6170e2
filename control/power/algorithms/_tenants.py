"""What every algorithm with a partition does about tenants that run out of memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from control.power.ladders import at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from control.power.terms import Knobs, Tenant


def halved(tenants: Sequence[Tenant], which: Sequence[int], knobs: Knobs) -> tuple[Tenant, ...]:
    """The same tenants, those of the indices `which` with half their batch, or the next rung below it."""
    return tuple(
        replace(one, batch=knobs.batches[at_most(knobs.batches, one.batch / 2)]) if at in which else one for at, one in enumerate(tenants)
    )
