"""Jobs for tests: equal slots, given times."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.studies.jobs.simulation import ClassModel, Coming, JobSource
from control.scheduling.policies import Job

ANY = "any"


def coming(
    number: int, submit_s: float, takes_s: float | Mapping[str, float], **more: object
) -> Coming:
    by_kind = {ANY: takes_s} if isinstance(takes_s, int | float) else dict(takes_s)
    job = Job(number, submit_s, **{"predicted_s": by_kind, **more})  # type: ignore[arg-type]
    return Coming(job, by_kind)


def source(
    slots: int = 1, load: float = 0.8, cv2: float = 1.0, arrivals_cv2: float = 1.0
) -> JobSource:
    return JobSource((ClassModel("job", 1.0, {ANY: 1.0}, cv2),), {ANY: slots}, load, arrivals_cv2)
