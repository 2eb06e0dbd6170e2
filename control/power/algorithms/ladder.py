"""Controllers that walk two ladders, the clock's and the batch's, all tenants alike: BatchDVFS and Morak.

Both are baselines of the PctoDL study. There a scheduled change of the cap left BatchDVFS's search as it was, by a slip; here it opens
anew. Morak lowers the batch, not the clock, when both latency and power are too high. Memory is left to the driver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from control.power.catalog import configured
from control.power.tables import at_most, at_speed, batches_of, clamped, nearest, speed_in, speeds_of
from control.power.terms import Decision, Settings, Tenant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from control.power.terms import Knobs, Question, Seen, Speed


@dataclass(slots=True)
class Rungs:
    """Where a controller stands: indices into the clock's (or throttle's) states and the batch ladder."""

    knobs: Knobs
    shares: tuple[float, ...]
    ladder: tuple[int, ...]
    batch: int
    speed: int = field(init=False)
    name: Speed = field(init=False)
    speeds: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.name, self.speeds = speeds_of(self.knobs)
        self.speed = len(self.speeds) // 2

    def follow(self, seen: Seen) -> None:
        """Stand where the iteration really ran; after a batch did not fit, the ladder ends at half of it."""
        batch = min((tenant.batch for tenant in seen.settings.tenants), default=self.ladder[self.batch])
        if seen.oom:
            too_large = max(seen.settings.tenants[at].batch for at in seen.oom)
            self.ladder = tuple(number for number in self.ladder if number <= too_large // 2) or self.ladder[:1]
        actual = speed_in(seen.settings, self.name)
        self.speed = self.speed if actual is None else nearest(self.speeds, actual)
        self.batch = at_most(self.ladder, batch)

    def faster(self, states: int) -> None:
        """Move the clock by so many states; it stays on its ladder."""
        self.speed = clamped(self.speed + states, self.speeds)

    def larger(self, rungs: int) -> None:
        """Move the batch by so many rungs; it stays on its ladder."""
        self.batch = clamped(self.batch + rungs, self.ladder)

    @property
    def fastest(self) -> bool:
        """Whether the clock is at its top."""
        return self.speed == len(self.speeds) - 1

    @property
    def largest(self) -> bool:
        """Whether the batch is at its top."""
        return self.batch == len(self.ladder) - 1

    def decision(self, reason: str) -> Decision:
        """Say what to set."""
        tenants = tuple(Tenant(share, self.ladder[self.batch]) for share in self.shares)
        return Decision(at_speed(Settings(tenants), self.name, self.speeds[self.speed]), reason)


def shares_here(split: Sequence[float], knobs: Knobs) -> tuple[float, ...]:
    """The shares asked for, percent; 100 each where shares cannot be set, and no more processes than may run."""
    return tuple(float(share) if knobs.shares else 100.0 for share in split[: knobs.most_processes])


def guarded(decided: int, before: int, power: float, cap: float) -> int:
    """The last word of the study's loop: above the cap, and the clock was not touched, then one state down."""
    return max(decided - 1, 0) if power > cap and decided == before else decided


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


def batchdvfs(question: Question) -> BatchDvfs:
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
        reason = self.step(seen.power_max, cap)
        self.rungs.speed = guarded(self.rungs.speed, before, seen.power_max, cap)
        return self.rungs.decision(reason)

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


OVER = 1.02  # up to here a cap counts as kept
STEPS = ((0.20, 10), (0.10, 5), (0.05, 2))  # off the cap by more than so much of it: so many states


@dataclass(frozen=True, slots=True)
class Bounds:
    """`alpha` is the part of the cap to be used, `beta` that of the latency bound, ms."""

    alpha: float
    beta: float
    slo_ms: float


def morak(question: Question) -> Morak:
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
        reason = self.step(seen.power_max, cap, max((value for value in seen.latency_ms if value is not None), default=None))
        self.rungs.speed = guarded(self.rungs.speed, before, seen.power_max, cap)
        return self.rungs.decision(reason)

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
