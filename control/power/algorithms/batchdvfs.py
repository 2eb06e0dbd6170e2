"""BatchDVFS: one process; a binary search for the batch, then the clock, to use the cap. Latency is not looked at.

Source: the PctoDL study's baseline of that name. There a scheduled change of the cap left the search as it was, by a slip; here it opens
anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from control.power.ladders import at_most, batches_of

from ._configured import configured
from ._indexed import Rungs, guarded, shares_here

if TYPE_CHECKING:
    from control.power.terms import Decision, Question, Seen

DESCRIPTION = "one process; binary search of the batch, then the clock"
NEAR_W = 15.0  # within it the clock moves by one state, else by four
FAR_STATES = 4
NEAR_OF_CAP = 0.1  # in its place where the cap is not in watts


@dataclass(slots=True)
class Window:
    """Indices of the batch ladder between which the batch is searched."""

    low: int
    high: int

    @property
    def closed(self) -> bool:
        """Whether there is nothing left to search."""
        return self.high - self.low <= 1


def controller(question: Question) -> BatchDvfs:
    """Set up by the network's entry in `data/power/algorithms.yaml`."""
    said = configured("batchdvfs", question.model)
    ladder = batches_of(said["ladder"], question.knobs)
    rungs = Rungs(question.knobs, shares_here([100], question.knobs), ladder, at_most(ladder, said["start_batch"]))
    near = NEAR_W if question.cap_unit == "W" else NEAR_OF_CAP * question.cap
    return BatchDvfs(rungs, said["alpha"], near, question.cap, question.margin)


class BatchDvfs:
    """The controller at work."""

    def __init__(self, rungs: Rungs, alpha: float, near: float, cap: float, margin: float = 0.0) -> None:
        self.rungs, self.alpha, self.near, self.cap, self.margin = rungs, alpha, near, cap, margin
        self.window = Window(0, len(rungs.ladder) - 1)

    def first(self) -> Decision:
        """The middle clock, the batch it starts with."""
        return self.rungs.decision("start")

    def then(self, seen: Seen) -> Decision:
        """Step by the largest reading of power; the guard has the last word."""
        self.rungs.follow(seen)
        if seen.oom or seen.cap != self.cap:
            self.window, self.cap = Window(0, len(self.rungs.ladder) - 1), seen.cap
        if seen.oom:
            return self.rungs.decision("out of memory")
        assert seen.power_max is not None  # noqa: S101  # the caller's promise
        before, cap = self.rungs.speed, seen.cap - self.margin
        why = self.step(seen.power_max, cap)
        self.rungs.speed = guarded(self.rungs.speed, before, seen.power_max, cap)
        return self.rungs.decision(why)

    def step(self, power: float, cap: float) -> str:
        """The algorithm itself, without the guard: move the rungs and say why."""
        states = 1 if abs(power - cap) <= self.near else FAR_STATES
        if power >= cap:
            return self._less(states)
        if power >= self.alpha * cap:
            return "hold"
        return self._more(states)

    def _more(self, states: int) -> str:
        rungs, window = self.rungs, self.window
        if window.closed:
            if rungs.fastest and not rungs.largest:
                window.high = len(rungs.ladder) - 1
                return "below the cap at the top clock: search larger batches"
            rungs.faster(states)
            return "below the cap"
        if rungs.largest:
            rungs.faster(states)
            return "below the cap at the largest batch"
        window.low = rungs.batch
        rungs.batch = max(ceil((window.low + window.high) / 2), rungs.batch + 1)
        return "below the cap: larger batches"

    def _less(self, states: int) -> str:
        rungs, window = self.rungs, self.window
        if window.closed:
            rungs.batch = window.low
            rungs.faster(-states)
            return "above the cap"
        if rungs.batch == 0:
            rungs.faster(-states)
            return "above the cap at the smallest batch"
        window.high = rungs.batch
        rungs.batch = min((window.low + window.high) // 2, rungs.batch - 1)
        return "above the cap: smaller batches"
