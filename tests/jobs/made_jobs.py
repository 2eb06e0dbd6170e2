"""Made-up jobs, and an engine on its own clock that runs them: nothing waits for real time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fixtures.studies.jobs.terms import Event, JobClass, Planned, Size, Used

Json = dict[str, Any]


def a_class(kind: str = "sleep", **more: Any) -> JobClass:
    """One class of jobs."""
    return JobClass(more.pop("name", "c"), kind, Size("constant", 0.1), **more)


def planned(
    *at_s: float, work: float = 1.0, class_: JobClass | None = None, **more: Any
) -> list[Planned]:
    """Jobs that come at these times, numbered from 0, each as much work."""
    return [
        Planned(number, class_ or a_class(), when, work, number, **more)
        for number, when in enumerate(at_s)
    ]


class Made:
    """An engine whose jobs take as many seconds as they have work.

    `script` has what else happens to an attempt: (job, attempt) -> events.

    Each is (seconds after its admission, what, fields); where there is none it starts at once and
    is done. `now_s` is its clock.
    """

    def __init__(self, nodes: Sequence[str] = ("n1",)) -> None:
        self.nodes = tuple(nodes)
        self.facts: Mapping[str, object] = {"made": True}
        self.now_s = 100.0
        self.script: dict[tuple[int, int], list[tuple[float, str, Json]]] = {}
        self.submitted: list[int] = []
        self.admitted: list[tuple[int, int, float, float]] = []  # job, attempt, done_work, when
        self.killed: list[int] = []
        self._coming: list[tuple[float, int, Event]] = []
        self._running: dict[int, str] = {}
        self._number = 0

    def clock(self) -> float:
        """Its time."""
        return self.now_s

    def later(self, at_s: float, what: str, job: int | None, **more: Any) -> None:
        """Something that will happen; `read_s` is what a clock says then that is another."""
        event = Event(what, more.pop("read_s", at_s), job, **more)  # type: ignore[arg-type]
        self._coming.append((at_s, self._number, event))
        self._number += 1

    def submit(self, job: Planned) -> None:
        """Known."""
        self.submitted.append(job.job)

    def admit(self, job: Planned, attempt: int, done_work: float) -> None:
        """Let it run."""
        self.admitted.append((job.job, attempt, done_work, self.now_s))
        self._plan(job, attempt, self.now_s, done_work)

    def _plan(self, job: Planned, attempt: int, at_s: float, done_work: float) -> None:
        self._running[job.job] = self.nodes[0]
        done = [
            (0.0, "started", {}),
            (
                job.work - done_work,
                "ended",
                {"outcome": "done", "done_work": job.work, "used": Used(0.5, 10.0, 0.1)},
            ),
        ]
        for after_s, what, more in self.script.get((job.job, attempt), done):
            self.later(at_s + after_s, what, job.job, **{"node": self.nodes[0], **more})

    def running(self) -> Mapping[int, str]:
        """Those admitted and not ended."""
        return self._running

    def kill(self, job: int) -> bool:
        """Drop the job's later events."""
        self.killed.append(job)
        self._coming = [one for one in self._coming if one[2].job != job]
        self.later(
            self.now_s, "ended", job, outcome="killed", reason="it was killed", node=self.nodes[0]
        )
        return True

    def lose(self, node: str) -> None:
        """With all that runs there."""
        self.later(self.now_s, "node lost", None, node=node)
        for job in [job for job, at in self._running.items() if at == node]:
            self.kill(job)

    def back(self, node: str) -> None:
        """Again."""
        self.later(self.now_s, "node back", None, node=node)

    def events(self, until_s: float) -> list[Event]:
        """Return the next events; the clock advances to them."""
        due = min((at_s for at_s, _, _ in self._coming), default=float("inf"))
        self.now_s = max(self.now_s, min(due, until_s))
        found = sorted(one for one in self._coming if one[0] <= self.now_s)
        self._coming = [one for one in self._coming if one[0] > self.now_s]
        for _, _, event in found:
            if event.what == "ended" and event.job is not None:
                self._running.pop(event.job, None)
        return [event for _, _, event in found]
