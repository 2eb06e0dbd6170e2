"""The figures of a stream's jobs, a few numbers per cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FLOOD = "flood"  # the tenant of a fault's jobs


def figures(report: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, float]:
    """Return the figures of a stream's own jobs, without a flood's; omit unknown ones.

    mean_wait_s: from submission to the slot, for finished jobs
    mean_response_s: from submission to the end, for finished jobs
    jobs_done_share: share of all jobs
    """
    own = [row for row in report["job"] if row.get("tenant") != FLOOD]
    done = [row for row in own if row.get("outcome") == "done"]
    begins = "admit_s" if any(row.get("admit_s") is not None for row in done) else "start_s"
    means = {"mean_wait_s": _mean(done, begins), "mean_response_s": _mean(done, "end_s")}
    share = {"jobs_done_share": len(done) / len(own)} if own else {}
    return {name: mean for name, mean in means.items() if mean is not None} | share


def _mean(jobs: Sequence[Mapping[str, Any]], until: str) -> float | None:
    times: list[Any] = [job.get(name) for name in ("submit_s", until) for job in jobs]
    if not all(isinstance(time, int | float) for time in times):
        return None
    return (sum(times[len(jobs) :]) - sum(times[: len(jobs)])) / len(jobs) if jobs else None
