"""PctoDL: the greedy partition for the cap, then the clock by `thermo`; with a shadow optimiser that moves the partition, if asked for.

Source: the PctoDL study. Where a scheduled cap reached it an iteration later than the others, here it reaches all at once; the measurement
that preceded each of the first three iterations is the run's warm-up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from control.power.ladders import at_speed, nearest, speed_in, speeds_of
from control.power.optimum import model_clock, predicted, searched, settings_of, tables_of
from control.power.tables import partition_of
from control.power.terms import Decision, Infeasible, Unsupported
from control.power.thermo import Steps, Thermo, draw_of

from ._indexed import guarded
from ._tenants import halved

if TYPE_CHECKING:
    from control.power.shadow import Shadow
    from control.power.terms import Question, Seen, Settings

DESCRIPTION = "greedy partition, then the clock by the model's slope; no dead band"
SHADOW = True


def controller(question: Question) -> Pctodl:
    """Search the partition. Raises: Unsupported, Infeasible."""
    shadow = None
    if question.shadow:
        from control.power.shadow import Shadow  # noqa: PLC0415  # scikit-learn takes seconds to import

        shadow = Shadow(tables_of(question), question)
    return Pctodl(question, shadow)


class Pctodl:
    """The controller at work."""

    def __init__(self, question: Question, shadow: Shadow | None = None) -> None:
        self.question, self.shadow, self.tables = question, shadow, tables_of(question)
        self.name, self.speeds = speeds_of(question.knobs)
        self.cap = question.cap
        self.answer = searched(question, self.cap, compatible=True)
        self.thermo: Thermo | None = None

    def first(self) -> Decision:
        """The greedy partition at its clocks."""
        return Decision(settings_of(self.answer.setting, self.question.knobs), "greedy partition", predicted(self.answer))

    def then(self, seen: Seen) -> Decision:
        """Step by the largest reading of power; a new cap is a new partition."""
        now = seen.settings
        if seen.cap != self.cap:
            self.cap = seen.cap
            return self._anew(now)
        if seen.oom:
            self.thermo = None
            return Decision(replace(now, tenants=halved(now.tenants, seen.oom, self.question.knobs)), "out of memory")
        assert seen.power_max is not None  # noqa: S101  # the caller's promise
        before = self._state(now)
        thermo = self._thermo(now)
        why = "feed-forward" if thermo.cap is None else "feedback"
        decided = nearest(self.speeds, thermo.next_mhz(self.speeds[before], seen.power_max, seen.cap))
        state = guarded(decided, before, seen.power_max, seen.cap)
        tenants = self.shadow.moved(seen) if self.shadow else None
        if tenants is not None:
            now, why, self.thermo = replace(now, tenants=tenants), "shadow optimiser", None
        return Decision(at_speed(now, self.name, self.speeds[state]), why)

    def _anew(self, now: Settings) -> Decision:
        self.thermo = None
        try:
            self.answer = searched(self.question, self.cap, compatible=True)
        except (Infeasible, Unsupported):
            return Decision(now, "no partition within the new cap: held")
        return self.first()

    def _state(self, now: Settings) -> int:
        speed = speed_in(now, self.name)
        return len(self.speeds) - 1 if speed is None else nearest(self.speeds, speed)

    def _thermo(self, now: Settings) -> Thermo:
        """One for the partition at work; a new one begins with the jump."""
        if self.thermo is None:
            mem_mhz = model_clock(self.tables, now.mem_mhz)
            curve = self.tables.curve(mem_mhz, partition_of(now.tenants))
            self.thermo = Thermo(draw_of(self.tables.models[mem_mhz], curve.anchor), Steps())
        return self.thermo
