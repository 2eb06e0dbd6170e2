"""The search over batches and power limits, judged on jobs measured at all of them: how near the best it came, from how few points."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.plain import one_line
from analysis.terms import Refused

from .limits import At, Measured, search

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analysis.studies.power.zeus import Trained

Job = tuple[str, str, str]  # data set, network, optimiser


@dataclass(frozen=True, slots=True)
class Judged:
    """What a search answered for a job under a cap and what was best of all `points`; None where nothing is within the cap."""

    job: Job
    cap_w: float
    answer: Measured | None
    best: Measured | None
    measured: int
    points: int

    @property
    def slower(self) -> float | None:
        """By which fraction the answer is slower than the best."""
        return None if self.answer is None or self.best is None else 1.0 - self.answer.speed / self.best.speed


def jobs(rows: Iterable[Trained]) -> dict[Job, dict[At, Measured]]:
    """Each job's points; of a point that was measured twice the last. Speed is epochs/s."""
    found: dict[Job, dict[At, Measured]] = defaultdict(dict)
    for row in rows:
        at = At(row.batch, row.limit_w)
        found[row.dataset, row.network, row.optimizer][at] = Measured(at, row.epochs_per_s, row.power_mean_w)
    return dict(found)


def judge(job: Job, points: dict[At, Measured], cap_w: float) -> Judged:
    """Search a job's points under a cap, as if each had to be measured first."""
    found = search(list(points), points.__getitem__, cap_w)
    best = max((one for one in points.values() if one.power_w <= cap_w), key=lambda one: one.speed, default=None)
    return Judged(job, cap_w, found.best, best, len(found.measured), len(points))


def judge_all(rows: Iterable[Trained], cap_w: float, network: str | None = None) -> list[Judged]:
    """Judge each job, of one network or of all. Raises: Refused, for a network that is not there."""
    there = jobs(rows)
    asked = {job: points for job, points in there.items() if network in {None, job[1]}}
    if not asked:
        names = ", ".join(sorted({one_line(job[1]) for job in there})) or "none"
        raise Refused(f"no job of network {one_line(network)!r}; there are {names}.")
    few = [job for job, points in asked.items() if len(points) < 3]
    if few:
        raise Refused(f"{one_line(', '.join(few[0]))}: fewer than three points; there is nothing to search.")
    return [judge(job, points, cap_w) for job, points in asked.items()]
