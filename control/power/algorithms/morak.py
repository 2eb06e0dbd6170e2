"""Morak: two processes of one batch; the batch follows the latency bound, the clock the cap, in steps by how far off it is.

Source: the PctoDL study's baseline of that name. The batch is lowered, not the clock, when both latency and power are too high; memory is
left to the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from control.power.ladders import at_most, batches_of

from ._configured import configured
from ._indexed import Rungs, guarded, shares_here

if TYPE_CHECKING:
    from control.power.terms import Decision, Question, Seen

DESCRIPTION = "two processes; batch by latency, clock by the cap, in steps of 1 to 10 states"
OVER = 1.02  # up to here a cap counts as kept
STEPS = ((0.20, 10), (0.10, 5), (0.05, 2))  # off the cap by more than so much of it: so many states


@dataclass(frozen=True, slots=True)
class Bounds:
    """`alpha` is the part of the cap to be used, `beta` that of the latency bound, ms."""

    alpha: float
    beta: float
    slo_ms: float


def controller(question: Question) -> Morak:
    """Set up by the network's entry in `data/power/algorithms.yaml`; the question's latency bound goes before the entry's."""
    said = configured("morak", question.model)
    ladder = batches_of(said["ladder"], question.knobs)
    rungs = Rungs(question.knobs, shares_here(said["split_percent"], question.knobs), ladder, at_most(ladder, said["start_batch"]))
    slo_ms = said["slo_ms"] if question.slo_ms is None else question.slo_ms
    return Morak(rungs, Bounds(said["alpha"], said["beta"], slo_ms), question.margin)


class Morak:
    """The controller at work."""

    def __init__(self, rungs: Rungs, bounds: Bounds, margin: float = 0.0) -> None:
        self.rungs, self.bounds, self.margin = rungs, bounds, margin

    def first(self) -> Decision:
        """The middle clock, the batch it starts with."""
        return self.rungs.decision("start")

    def then(self, seen: Seen) -> Decision:
        """Step by the largest reading of power and the slowest tenant; the guard has the last word."""
        self.rungs.follow(seen)
        if seen.oom:
            return self.rungs.decision("out of memory")
        assert seen.power_max is not None  # noqa: S101  # the caller's promise
        before, cap = self.rungs.speed, seen.cap - self.margin
        why = self.step(seen.power_max, cap, max((one for one in seen.latency_ms if one is not None), default=None))
        self.rungs.speed = guarded(self.rungs.speed, before, seen.power_max, cap)
        return self.rungs.decision(why)

    def step(self, power: float, cap: float, latency_ms: float | None) -> str:
        """The algorithm itself, without the guard: move the rungs and say why. No tenant finished a batch: that is too slow."""
        off = abs(power - cap) / cap
        states = next((states for more, states in STEPS if off > more), 1)
        quick = latency_ms is not None and latency_ms <= self.bounds.beta * self.bounds.slo_ms
        if power > OVER * cap:
            if quick:
                self.rungs.faster(-states)
                return "above the cap"
            self.rungs.larger(-states)
            return "above the cap and too slow"
        if power > self.bounds.alpha * cap:
            return "hold"
        if quick and not self.rungs.largest:
            self.rungs.larger(1)
            return "below the cap, quick enough: larger batches"
        self.rungs.faster(states)
        return "below the cap"
