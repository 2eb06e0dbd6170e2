"""Seeded job streams: an exact queue with `slots`, served FIFO or lower priority first.

Rows as `fixtures` reports them: one per job, and one for the stream.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.synthetic import AGAIN, JSON, STOCK, Made, saved_run

Row = dict[str, Any]


def exponential(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.standard_exponential(count)


def constant(_: np.random.Generator, count: int) -> np.ndarray:
    return np.ones(count)


def heavy(rng: np.random.Generator, count: int) -> np.ndarray:
    share = (1 - np.sqrt(3 / 5)) / 2
    return np.where(
        rng.random(count) < share,
        rng.exponential(0.5 / share, count),
        rng.exponential(0.5 / (1 - share), count),
    )


@dataclass(frozen=True)
class MadeStream:
    """Rate, mean service time, draws of mean 1 for gaps and service times, shares of priorities."""

    rate_per_s: float = 6.0
    service_s: float = 0.2
    slots: int = 2
    jobs: int = 600
    gaps: Callable[[np.random.Generator, int], np.ndarray] = exponential
    services: Callable[[np.random.Generator, int], np.ndarray] = exponential
    priorities: Mapping[int, float] = field(default_factory=lambda: {0: 1.0}, hash=False)
    policy: str = "fifo"
    engine: str = "pool"


def rows(made: MadeStream = MadeStream(), seed: int = 1) -> list[Row]:
    rng = np.random.default_rng(seed)
    submits = np.cumsum(made.gaps(rng, made.jobs)) / made.rate_per_s
    services = made.services(rng, made.jobs) * made.service_s
    priorities = rng.choice(list(made.priorities), made.jobs, p=list(made.priorities.values()))
    starts = _starts(
        made, submits, services, priorities if made.policy == "priority" else np.zeros(made.jobs)
    )
    return [
        {
            "job": at,
            "class": "small",
            "priority": int(priorities[at]),
            "replicas": 1,
            "work": None,
            "due_s": None,
            "predicted_s": None,
            "planned_submit_s": float(submits[at]),
            "submit_s": float(submits[at]),
            "admit_s": float(starts[at]),
            "start_s": float(starts[at]),
            "end_s": float(starts[at] + services[at]),
            "outcome": "done",
            "reason": None,
            "attempts": 1,
            "node": None,
        }
        for at in range(made.jobs)
    ]


def _starts(
    made: MadeStream, submits: np.ndarray, services: np.ndarray, priorities: np.ndarray
) -> np.ndarray:
    free = [0.0] * made.slots
    waiting: list[tuple[float, int]] = []
    starts = np.zeros(made.jobs)
    came = 0
    for _ in range(made.jobs):
        now = free[0]
        if not waiting:
            now = max(now, submits[came])
        while came < made.jobs and submits[came] <= now:
            heapq.heappush(waiting, (float(priorities[came]), came))
            came += 1
        _, at = heapq.heappop(waiting)
        starts[at] = now
        heapq.heapreplace(free, now + services[at])
    return starts


def stream_row(made: MadeStream, seed: int) -> Row:
    arrivals = {"kind": "poisson", "rate_per_s": made.rate_per_s, "seed": seed}
    told = {"engine": made.engine, "slots": made.slots, "policy": made.policy}
    return {"arrivals": arrivals, **told, "began_utc": "2026-01-01T00:00:00+00:00", "classes": []}


def streamed_run(
    made: MadeStream = MadeStream(), runs: int = 4, seed: int = 1, *, again: bool = False
) -> JSON:
    name = f"job_stream:arrivals=poisson:rate_per_s={made.rate_per_s:g}:slots={made.slots}"
    stocks = (STOCK, AGAIN) if again else (STOCK,)
    saved = saved_run(Made(arms=stocks, workloads=(name,), blocks=runs, seed=seed))
    for at, benchmark in enumerate(saved["benchmarks"]):
        benchmark["extra_info"]["report"] = {
            "job": rows(made, 1000 * seed + at),
            "stream": [stream_row(made, at)],
        }
    return saved


def as_csv(
    told: list[Row], columns: tuple[str, ...] = ("job", "submit_s", "start_s", "end_s")
) -> str:
    lines = [
        ",".join("" if row[name] is None else str(row[name]) for name in columns) for row in told
    ]
    return "\n".join([",".join(columns), *lines]) + "\n"


def without_rounding(text: str) -> str:
    """The same text on any machine: values that are 0 but for rounding differ by processor."""
    return re.sub(r"\d(\.\d+)?e-1\d", "0e-16", text)
