"""One stream of jobs played under one policy, in simulated time, and what it came to: waits, slowdown, fairness, promises, busy slots.

simpy keeps the clock, `Scheduler` decides, as it does for real jobs.
"""

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
        return self.start_s - self.submit_s


def play(coming: Sequence[Coming], slots: Mapping[str, int], policy: str) -> Played:
    """Play all jobs to their end. Raises: UnknownName; Refused, where a job needs more slots than there are."""
    return _Simulation(coming, slots, policy).played()


class _Simulation:
    def __init__(self, coming: Sequence[Coming], slots: Mapping[str, int], policy: str) -> None:
        self._scheduler = Scheduler(policy, slots)
        self._clock = simpy.Environment()
        self._coming = coming
        self._at = {job.job.number: at for at, job in enumerate(coming)}
        self._start_s = [float("nan")] * len(coming)
        self._end_s = [float("nan")] * len(coming)
        self._kinds = [""] * len(coming)
        self._to_decide = False

    def played(self) -> Played:
        for at, job in enumerate(self._coming):
            self._after(job.job.submit_s, self._came, at)
        self._clock.run()
        return Played(
            submit_s=np.array([arrival.job.submit_s for arrival in self._coming]),
            start_s=np.array(self._start_s),
            end_s=np.array(self._end_s),
            replicas=np.array([float(arrival.job.replicas) for arrival in self._coming]),
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


# A job's first and last part of a stream meet an empty cluster coming up and one running out.
WARM_UP = 0.1
SHORT = 0.1  # of the mean time: jobs shorter than that count as that long in slowdowns


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """Of one stream under one policy, the first tenth of the jobs left out but for `busy`, which is of the whole.

    `slowdown` is response over time in service, bounded below (Feitelson and Rudolph, 1998): jobs shorter than a tenth of the mean would
    decide it. `jain` is Jain's index of the tenants' mean slowdowns, None with one tenant; `late` is the part that ended after it was due,
    None where nothing was promised. `busy` is slot-seconds in service over those there were until the last submission. `inside_half` and
    `inside_end` are the jobs that waited or ran when half of them, and all, had been submitted.
    """

    mean_wait_s: float
    p95_wait_s: float
    mean_response_s: float
    slowdown: float
    busy: float
    inside_half: int
    inside_end: int
    jain: float | None = None
    late: float | None = None


def figures(coming: Sequence[Coming], played: Played) -> StreamFigures:
    counted = slice(int(len(coming) * WARM_UP), None)
    wait_s, service_s = played.wait_s[counted], (played.end_s - played.start_s)[counted]
    response_s = (played.end_s - played.submit_s)[counted]
    slowdowns = np.maximum(1.0, response_s / np.maximum(service_s, SHORT * float(service_s.mean())))
    half_s, until_s = (float(played.submit_s[at]) for at in (len(coming) // 2, -1))
    inside_s = np.minimum(played.end_s, until_s) - np.minimum(played.start_s, until_s)
    return StreamFigures(
        mean_wait_s=float(wait_s.mean()),
        p95_wait_s=float(np.quantile(wait_s, 0.95)),
        mean_response_s=float(response_s.mean()),
        slowdown=float(slowdowns.mean()),
        busy=float((inside_s * played.replicas).sum()) / (sum(played.slots.values()) * until_s),
        inside_half=_inside(played, half_s),
        inside_end=_inside(played, until_s),
        jain=_between([arrival.job.tenant for arrival in coming[counted]], slowdowns),
        late=_late([arrival.job.due_s for arrival in coming[counted]], played.end_s[counted]),
    )


def jain(values: Floats) -> float:
    """Jain's fairness index: 1 where all have the same, 1/n where one has everything (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
    return float(values.sum()) ** 2 / (len(values) * float((values**2).sum()))


def _inside(played: Played, at_s: float) -> int:
    return int(((played.submit_s <= at_s) & (played.end_s > at_s)).sum())


def _between(tenants: Sequence[str], slowdowns: Floats) -> float | None:
    names = sorted(set(tenants))
    if len(names) < 2:
        return None
    owner = np.array(tenants)
    return jain(np.array([float(slowdowns[owner == name].mean()) for name in names]))


def _late(due_s: Sequence[float | None], end_s: Floats) -> float | None:
    promised = [end > due for due, end in zip(due_s, end_s.tolist(), strict=True) if due is not None]
    return sum(promised) / len(promised) if promised else None
