"""DirectCap: the greedy partition, and the driver's power limit for the cap; the memory clock comes down where that does not suffice.

Source: the PctoDL study. There the search for a memory clock never set the first one it tried and judged each by a single iteration; here
each is set, and judged by the mean of all but its first.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from control.power.optimum import predicted, searched, settings_of
from control.power.terms import Decision, Infeasible, Unsupported

from ._tenants import halved
from .powercap import limit_of

if TYPE_CHECKING:
    from control.power.terms import Predicted, Question, Seen, Settings

DESCRIPTION = "greedy partition, the driver's power limit, a search of the memory clock"
TOLERATED = 1.02  # of the cap
PATIENCE = 5  # iterations above it in a row before the memory clock comes down
EACH = 5  # iterations at each memory clock that is tried
LEAST_MHZ, WORTH_MHZ = 5001.0, 6000.0  # memory clocks from the first on are tried, once settled at the second or above


def controller(question: Question) -> Directcap:
    """Search the partition. Raises: Unsupported, Infeasible."""
    return Directcap(question)


class Directcap:
    """The controller at work. `trying` has the memory clocks still to be tried, `tried` images per second by those that were."""

    def __init__(self, question: Question) -> None:
        self.question, self.cap = question, question.cap
        self.memories = question.knobs.mem_mhz or ()
        self.settings, self.said = self._limited(question.cap)
        self.over = 0
        self.excess = False
        self.trying: list[float] = []
        self.tried: dict[float, list[float]] = {}

    def first(self) -> Decision:
        """The greedy partition, the clock left to the driver under its limit, memory at its top."""
        return Decision(self.settings, "greedy partition under the limit", self.said)

    def then(self, seen: Seen) -> Decision:
        """Follow the cap; else watch the mean power, and lower or search the memory clock."""
        self.settings = replace(self.settings, tenants=seen.settings.tenants)
        if seen.oom:
            self.settings = replace(self.settings, tenants=halved(seen.settings.tenants, seen.oom, self.question.knobs))
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
            return self._memory(max((one for one in self.memories if one < self._now()), default=self._now()), "above the limit")
        if self.over == 0 and self.excess and self._now() >= WORTH_MHZ:
            self.excess = False
            self.trying = [one for one in self.memories if LEAST_MHZ <= one <= self._now()]
            self.tried = {one: [] for one in self.trying}
            return self._memory(self.trying[0], "settled: search the memory clock")
        return Decision(self.settings, "limit")

    def _limited(self, cap: float) -> tuple[Settings, Predicted]:
        answer = searched(self.question, cap, compatible=True)
        top = self.memories[-1] if self.memories else None
        found = settings_of(answer.setting, self.question.knobs)
        limited = replace(found, sm_mhz=None, throttle=None, mem_mhz=top, power_limit_w=limit_of(self.question, cap))
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
        return self._memory(max(self.tried, key=lambda one: fmean(self.tried[one][1:])), "the best memory clock")

    def _now(self) -> float:
        return self.settings.mem_mhz or 0.0

    def _memory(self, mem_mhz: float, why: str) -> Decision:
        self.settings = replace(self.settings, mem_mhz=mem_mhz or None)
        return Decision(self.settings, why)
