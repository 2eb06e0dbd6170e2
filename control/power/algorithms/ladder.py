"""BatchDVFS and Morak, which climb ladders of clocks and batches, the same for all tenants.

In the PctoDL study a scheduled cap left BatchDVFS's search as it was; here the search restarts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from control.power.catalog import configured
from control.power.tables import SpeedKnob, at_most, batches_of, clamped
from control.power.terms import Decision, Knobs, Question, Seen, Settings, Tenant


@dataclass(slots=True)
class Rungs:
    """A controller's position: indices into clock (or throttle) states and the batch ladder."""

    knobs: Knobs
    shares: tuple[float, ...]
    ladder: tuple[int, ...]
    batch: int
    speed: int = field(init=False)
    pace: SpeedKnob = field(init=False)

    def __post_init__(self) -> None:
        self.pace = SpeedKnob.of(self.knobs)
        self.speed = len(self.pace.states) // 2

    def follow(self, seen: Seen) -> None:
        """Take the rungs that ran; if a batch did not fit, end the ladder at half of it."""
        batch = min(
            (tenant.batch for tenant in seen.settings.tenants), default=self.ladder[self.batch]
        )
        if seen.oom:
            too_large = max(seen.settings.tenants[at].batch for at in seen.oom)
            self.ladder = (
                tuple(number for number in self.ladder if number <= too_large // 2)
                or self.ladder[:1]
            )
        self.speed = self.pace.state(seen.settings, self.speed)
        self.batch = at_most(self.ladder, batch)

    def faster(self, states: int) -> None:
        self.speed = clamped(self.speed + states, self.pace.states)

    def larger(self, rungs: int) -> None:
        self.batch = clamped(self.batch + rungs, self.ladder)

    @property
    def is_fastest(self) -> bool:
        return self.speed == self.pace.top

    @property
    def top_batch(self) -> int:
        return len(self.ladder) - 1

    def decision(self, reason: str) -> Decision:
        tenants = tuple(Tenant(share, self.ladder[self.batch]) for share in self.shares)
        return Decision(self.pace.at(Settings(tenants), self.pace.states[self.speed]), reason)


def shares_here(split: Sequence[float], knobs: Knobs) -> tuple[float, ...]:
    """Return a split's shares in percent; 100 each if shares cannot be set."""
    return tuple(float(share) if knobs.shares else 100.0 for share in split[: knobs.most_processes])


def guarded(decided: int, before: int, power: float, cap: float) -> int:
    """Step one state down if power is above the cap and the clock was not changed."""
    return max(decided - 1, 0) if power > cap and decided == before else decided


NEAR_W = 15.0  # within it the clock moves by one state, else by four
FAR_STATES = 4
NEAR_OF_CAP = 0.1  # in its place where the cap is not in watts


class LadderController:
    """Base of both controllers; `step` moves the rungs, before the guard applies."""

    def __init__(self, rungs: Rungs, margin: float = 0.0) -> None:
        self.rungs, self.margin = rungs, margin

    def first(self) -> Decision:
        return self.rungs.decision("start")

    def then(self, seen: Seen) -> Decision:
        """Step by the highest power reading and the slowest tenant, and apply the guard."""
        self.rungs.follow(seen)
        self.reset(seen)
        if seen.oom:
            return self.rungs.decision("out of memory")
        assert seen.power_max is not None  # noqa: S101  # the caller's promise
        before, cap = self.rungs.speed, seen.cap - self.margin
        reason = self.step(
            seen.power_max,
            cap,
            max((value for value in seen.latency_ms if value is not None), default=None),
        )
        self.rungs.speed = guarded(self.rungs.speed, before, seen.power_max, cap)
        return self.rungs.decision(reason)

    def reset(self, seen: Seen) -> None:
        """Reset the search after a batch did not fit or the cap changed."""

    def step(self, power: float, cap: float, latency_ms: float | None) -> str:
        """Move the rungs; a latency of None means that no tenant finished a batch (too slow)."""
        raise NotImplementedError


def _set_up(algorithm: str, question: Question) -> tuple[Mapping[str, Any], Rungs]:
    entry = configured(algorithm, question.model)
    ladder = batches_of(entry["ladder"], question.knobs)
    shares = shares_here(entry.get("split_percent", [100]), question.knobs)
    return entry, Rungs(question.knobs, shares, ladder, at_most(ladder, entry["start_batch"]))


def batchdvfs(question: Question) -> BatchDvfs:
    entry, rungs = _set_up("batchdvfs", question)
    near = NEAR_W if question.cap_unit == "W" else NEAR_OF_CAP * question.cap
    return BatchDvfs(rungs, entry["alpha"], near, question.cap, question.margin)


class BatchDvfs(LadderController):
    """Binary search of the batch between rungs `low` and `high`; then move the clock."""

    def __init__(
        self, rungs: Rungs, alpha: float, near: float, cap: float, margin: float = 0.0
    ) -> None:
        super().__init__(rungs, margin)
        self.alpha, self.near, self.cap = alpha, near, cap
        self.low, self.high = 0, rungs.top_batch

    def reset(self, seen: Seen) -> None:
        if seen.oom or seen.cap != self.cap:
            self.low, self.high, self.cap = 0, self.rungs.top_batch, seen.cap

    def step(
        self,
        power: float,
        cap: float,
        latency_ms: float | None = None,  # noqa: ARG002
    ) -> str:
        """Decrease batch or clock at or above the cap; increase them below `alpha` of it."""
        states = 1 if abs(power - cap) <= self.near else FAR_STATES
        if power >= cap:
            return self._less(states)
        return "hold" if power >= self.alpha * cap else self._more(states)

    def _more(self, states: int) -> str:
        rungs, is_searched = self.rungs, self.high - self.low <= 1
        is_largest = rungs.batch == rungs.top_batch
        if is_searched and rungs.is_fastest and not is_largest:
            self.high = rungs.top_batch
            return "below the cap at the top clock: search larger batches"
        if is_searched or is_largest:
            rungs.faster(states)
            return "below the cap" if is_searched else "below the cap at the largest batch"
        self.low = rungs.batch
        rungs.batch = max(ceil((self.low + self.high) / 2), rungs.batch + 1)
        return "below the cap: larger batches"

    def _less(self, states: int) -> str:
        rungs, is_searched = self.rungs, self.high - self.low <= 1
        if is_searched:
            rungs.batch = self.low
        if is_searched or rungs.batch == 0:
            rungs.faster(-states)
            return "above the cap" if is_searched else "above the cap at the smallest batch"
        self.high = rungs.batch
        rungs.batch = min((self.low + self.high) // 2, rungs.batch - 1)
        return "above the cap: smaller batches"


OVER = 1.02  # up to here a cap counts as kept
STEPS = ((0.20, 10), (0.10, 5), (0.05, 2))  # off the cap by more than so much of it: so many states


def morak(question: Question) -> Morak:
    """Return a controller; the question's latency bound overrides the entry's."""
    entry, rungs = _set_up("morak", question)
    slo_ms = entry["slo_ms"] if question.slo_ms is None else question.slo_ms
    return Morak(rungs, entry["alpha"], entry["beta"] * slo_ms, question.margin)


class Morak(LadderController):
    """Morak: use `alpha` of the cap, and increase batches up to a latency of `quick_ms`."""

    def __init__(self, rungs: Rungs, alpha: float, quick_ms: float, margin: float = 0.0) -> None:
        super().__init__(rungs, margin)
        self.alpha, self.quick_ms = alpha, quick_ms

    def step(self, power: float, cap: float, latency_ms: float | None) -> str:
        off = abs(power - cap) / cap
        states = next((states for more, states in STEPS if off > more), 1)
        is_quick = latency_ms is not None and latency_ms <= self.quick_ms
        rungs = self.rungs
        if power > OVER * cap and is_quick:
            rungs.faster(-states)
            return "above the cap"
        if power > OVER * cap:
            rungs.larger(-states)
            return "above the cap and too slow"
        if power > self.alpha * cap:
            return "hold"
        if is_quick and rungs.batch < rungs.top_batch:
            rungs.larger(1)
            return "below the cap, quick enough: larger batches"
        rungs.faster(states)
        return "below the cap"
