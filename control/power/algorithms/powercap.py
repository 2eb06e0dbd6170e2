"""The driver's power limit alone: an even split that knows nothing of the network, clocks left to the driver.

The baseline of the others: what somebody has who sets the limit and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from control.power.ladders import at_most
from control.power.terms import Decision, Settings, Tenant, Unsupported

from ._configured import configured
from ._indexed import shares_here
from ._tenants import halved

if TYPE_CHECKING:
    from control.power.terms import Question, Seen

DESCRIPTION = "the driver's power limit alone, over an even split"


def controller(question: Question) -> Powercap:
    """Raises: Unsupported, where the limit cannot be set."""
    return Powercap(question)


def limit_of(question: Question, cap_w: float) -> float:
    """The limit to set for a cap: within what the board takes. Raises: Unsupported, where there is none to set."""
    limits = question.knobs.power_limit_w
    if limits is None:
        raise Unsupported("the driver's power limit cannot be set here.")
    return min(max(cap_w - question.margin, limits[0]), limits[1])


class Powercap:
    """The controller at work: it follows the cap and halves what does not fit into memory, nothing else."""

    def __init__(self, question: Question) -> None:
        said = configured("powercap", question.model)
        batch = question.knobs.batches[at_most(question.knobs.batches, said["batch"])]
        tenants = tuple(Tenant(share, batch) for share in shares_here(said["split_percent"], question.knobs))
        self.question = question
        self.settings = Settings(tenants, power_limit_w=limit_of(question, question.cap))

    def first(self) -> Decision:
        """The split, and the cap as the limit."""
        return Decision(self.settings, "limit")

    def then(self, seen: Seen) -> Decision:
        """The limit of the cap in force."""
        tenants = halved(seen.settings.tenants, seen.oom, self.question.knobs)
        return Decision(replace(self.settings, tenants=tenants, power_limit_w=limit_of(self.question, seen.cap)), "limit")
