"""Controllers that leave the clock to the driver, under a power limit: Powercap and DirectCap.

In the PctoDL study the search for a memory clock never set the first one and judged each by one
iteration; here each is set, and judged by the mean of all but its first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from control.power.catalog import configured
from control.power.tables import at_most, predicted, searched, settings_of
from control.power.terms import (
    Decision,
    Infeasible,
    Knobs,
    Predicted,
    Question,
    Seen,
    Settings,
    Tenant,
    Unsupported,
)

from .ladder import shares_here


def halved(tenants: Sequence[Tenant], which: Sequence[int], knobs: Knobs) -> tuple[Tenant, ...]:
    """Return the tenants, with the batch of those in `which` halved, or at the next lower rung."""
    return tuple(
        replace(tenant, batch=knobs.batches[at_most(knobs.batches, tenant.batch / 2)])
        if at in which
        else tenant
        for at, tenant in enumerate(tenants)
    )


def limit_of(question: Question, cap_w: float) -> float:
    """Return the limit to set for a cap, within the board's range. Raises: Unsupported."""
    limits = question.knobs.power_limit_w
    if limits is None:
        raise Unsupported("the driver's power limit cannot be set here.")
    return min(max(cap_w - question.margin, limits[0]), limits[1])


class Powercap:
    """Powercap: set the limit to the cap, and halve batches that do not fit into memory.

    Raises: Unsupported, where no limit can be set.
    """

    def __init__(self, question: Question) -> None:
        defaults = configured("powercap", question.model)
        batch = question.knobs.batches[at_most(question.knobs.batches, defaults["batch"])]
        tenants = tuple(
            Tenant(share, batch) for share in shares_here(defaults["split_percent"], question.knobs)
        )
        self.question = question
        self.settings = Settings(tenants, power_limit_w=limit_of(question, question.cap))

    def first(self) -> Decision:
        return Decision(self.settings, "limit")

    def then(self, seen: Seen) -> Decision:
        tenants = halved(seen.settings.tenants, seen.oom, self.question.knobs)
        return Decision(
            replace(
                self.settings, tenants=tenants, power_limit_w=limit_of(self.question, seen.cap)
            ),
            "limit",
        )


TOLERATED = 1.02  # of the cap
PATIENCE = 5  # iterations above it in a row before the memory clock comes down
EACH = 5  # iterations at each memory clock that is tried
# Memory clocks from the first on are tried, once settled at the second or above.
LEAST_MHZ, WORTH_MHZ = (5001.0, 6000.0)


class Directcap:
    """DirectCap: search the partition, then the memory clock.

    `trying` has the memory clocks still to be tried, `tried` images per second by those that were.

    Raises: Unsupported, Infeasible.
    """

    def __init__(self, question: Question) -> None:
        self.question, self.cap = question, question.cap
        self.memories = question.knobs.mem_mhz or ()
        self.settings, self.said = self._limited(question.cap)
        self.over = 0
        self.excess = False
        self.trying: list[float] = []
        self.tried: dict[float, list[float]] = {}

    def first(self) -> Decision:
        return Decision(self.settings, "greedy partition under the limit", self.said)

    def then(self, seen: Seen) -> Decision:
        self.settings = replace(self.settings, tenants=seen.settings.tenants)
        if seen.oom:
            self.settings = replace(
                self.settings, tenants=halved(seen.settings.tenants, seen.oom, self.question.knobs)
            )
            return Decision(self.settings, "out of memory")
        if seen.cap != self.cap:
            self.cap = seen.cap
            return self._anew()
        assert seen.power_mean is not None  # noqa: S101  # the caller's promise
        if self.trying:
            return self._try(seen.throughput_images_per_s or 0.0)
        self.over = self.over + 1 if seen.power_mean > TOLERATED * seen.cap else 0
        self.excess = self.excess or self.over > 0
        if self.over >= PATIENCE:
            self.over = 0
            return self._memory(
                max(
                    (memory for memory in self.memories if memory < self._now()),
                    default=self._now(),
                ),
                "above the limit",
            )
        if self.over == 0 and self.excess and self._now() >= WORTH_MHZ:
            self.excess = False
            self.trying = [memory for memory in self.memories if LEAST_MHZ <= memory <= self._now()]
            self.tried = {value: [] for value in self.trying}
            return self._memory(self.trying[0], "settled: search the memory clock")
        return Decision(self.settings, "limit")

    def _limited(self, cap: float) -> tuple[Settings, Predicted]:
        answer = searched(self.question, cap, compatible=True)
        top = self.memories[-1] if self.memories else None
        settings = settings_of(answer.setting, self.question.knobs)
        limited = replace(
            settings,
            sm_mhz=None,
            throttle=None,
            mem_mhz=top,
            power_limit_w=limit_of(self.question, cap),
        )
        return limited, predicted(answer)

    def _anew(self) -> Decision:
        self.over, self.excess, self.trying = 0, False, []
        try:
            self.settings, self.said = self._limited(self.cap)
        except (Infeasible, Unsupported):
            self.settings = replace(self.settings, power_limit_w=limit_of(self.question, self.cap))
            return Decision(self.settings, "no partition within the new cap: limit alone")
        return self.first()

    def _try(self, images_per_s: float) -> Decision:
        at = self.trying[0]
        self.tried[at].append(images_per_s)
        if len(self.tried[at]) < EACH:
            return Decision(self.settings, "search the memory clock")
        self.trying.pop(0)
        if self.trying:
            return self._memory(self.trying[0], "search the memory clock")
        return self._memory(
            max(self.tried, key=lambda value: fmean(self.tried[value][1:])), "the best memory clock"
        )

    def _now(self) -> float:
        return self.settings.mem_mhz or 0.0

    def _memory(self, mem_mhz: float, reason: str) -> Decision:
        self.settings = replace(self.settings, mem_mhz=mem_mhz or None)
        return Decision(self.settings, reason)


powercap, directcap = Powercap, Directcap
