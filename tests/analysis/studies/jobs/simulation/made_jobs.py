"""Jobs for tests: equal slots, given times."""

from __future__ import annotations

from analysis.studies.jobs.simulation import ClassModel, Coming, JobSource
from control.scheduling.policies import Job


def coming(number: int, submit_s: float, takes_s: float, **more: object) -> Coming:
    job = Job(number, submit_s, **{"predicted_s": takes_s, **more})  # type: ignore[arg-type]
    return Coming(job, takes_s)


def source(
    slots: int = 1, load: float = 0.8, cv2: float = 1.0, arrivals_cv2: float = 1.0
) -> JobSource:
    return JobSource((ClassModel("job", 1.0, 1.0, cv2),), slots, load, arrivals_cv2)
