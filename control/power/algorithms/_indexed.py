"""What the controllers share that walk two ladders, the clock's and the batch's: all tenants have one batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from control.power.ladders import at_most, at_speed, clamped, nearest, speed_in, speeds_of
from control.power.terms import Decision, Settings, Tenant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from control.power.terms import Knobs, Seen, Speed


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
        batch = min((one.batch for one in seen.settings.tenants), default=self.ladder[self.batch])
        if seen.oom:
            too_large = max(seen.settings.tenants[at].batch for at in seen.oom)
            self.ladder = tuple(one for one in self.ladder if one <= too_large // 2) or self.ladder[:1]
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

    def decision(self, why: str) -> Decision:
        """Say what to set."""
        tenants = tuple(Tenant(share, self.ladder[self.batch]) for share in self.shares)
        return Decision(at_speed(Settings(tenants), self.name, self.speeds[self.speed]), why)


def shares_here(split: Sequence[float], knobs: Knobs) -> tuple[float, ...]:
    """The shares asked for, percent; 100 each where shares cannot be set, and no more processes than may run."""
    return tuple(float(share) if knobs.shares else 100.0 for share in split[: knobs.most_processes])


def guarded(decided: int, before: int, power: float, cap: float) -> int:
    """The last word of the study's loop: above the cap, and the clock was not touched, then one state down."""
    return max(decided - 1, 0) if power > cap and decided == before else decided
