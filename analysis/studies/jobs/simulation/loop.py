"""One stream of jobs played under one policy, in simulated time; simpy keeps the clock, `Scheduler` decides, as it does for real jobs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import simpy
from simpy.events import EventPriority

from control.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from .stream import Coming

    Floats = NDArray[np.float64]

# After all that happens at the same moment: of jobs that come together the policy picks, not the order in which they are told of.
_LAST = EventPriority(2)


@dataclass(frozen=True, slots=True)
class Played:
    """What came of each job, in the order they were given: arrays of shape (jobs,), seconds on the clock of their submission.

    `kinds` are the slots each ran on; `slots` are those there were.
    """

    submit_s: Floats
    start_s: Floats
    end_s: Floats
    replicas: Floats
    kinds: tuple[str, ...]
    slots: Mapping[str, int]

    @property
    def wait_s(self) -> Floats:
        """From submission to start."""
        return self.start_s - self.submit_s


def play(coming: Sequence[Coming], slots: Mapping[str, int], policy: str) -> Played:
    """Play all jobs to their end. Raises: UnknownName; Refused, where a job needs more slots than there are."""
    return _Play(coming, slots, policy).played()


class _Play:
    def __init__(self, coming: Sequence[Coming], slots: Mapping[str, int], policy: str) -> None:
        self._scheduler = Scheduler(policy, slots)
        self._clock = simpy.Environment()
        self._coming = coming
        self._at = {one.job.number: at for at, one in enumerate(coming)}
        self._start_s = [float("nan")] * len(coming)
        self._end_s = [float("nan")] * len(coming)
        self._kinds = [""] * len(coming)
        self._to_decide = False

    def played(self) -> Played:
        for at, one in enumerate(self._coming):
            self._after(one.job.submit_s, self._came, at)
        self._clock.run()
        return Played(
            submit_s=np.array([one.job.submit_s for one in self._coming]),
            start_s=np.array(self._start_s),
            end_s=np.array(self._end_s),
            replicas=np.array([float(one.job.replicas) for one in self._coming]),
            kinds=tuple(self._kinds),
            slots=dict(self._scheduler.state.slots),
        )

    def _after(self, delay_s: float, then: Callable[[int, simpy.Event], None], at: int) -> None:
        simpy.Timeout(self._clock, delay_s).callbacks.append(partial(then, at))

    def _came(self, at: int, event: simpy.Event) -> None:
        del event
        self._scheduler.submit(self._coming[at].job, self._clock.now)
        self._decide_soon()

    def _ended(self, at: int, event: simpy.Event) -> None:
        del event
        self._end_s[at] = self._clock.now
        self._scheduler.end(self._coming[at].job.number, self._clock.now)
        self._decide_soon()

    def _decide_soon(self) -> None:
        if not self._to_decide:
            self._to_decide = True
            event = simpy.Event(self._clock)
            event._ok, event._value = True, None  # noqa: SLF001  # what `succeed` sets, which has no say in the priority
            event.callbacks.append(self._decide)
            self._clock.schedule(event, priority=_LAST)

    def _decide(self, event: simpy.Event) -> None:
        del event
        self._to_decide = False
        now_s = self._clock.now
        for start in self._scheduler.starts(now_s):
            at = self._at[start.number]
            self._start_s[at], self._kinds[at] = now_s, start.kind
            self._after(self._coming[at].takes_s[start.kind], self._ended, at)
