"""Seeded job streams with faults: FIFO; a killed job continues from its progress on its slot.

Rows as `fixtures` reports them: jobs, attempts, faults, nodes, and one row for the stream.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.synthetic import JSON, STOCK, Made, saved_run

Row = dict[str, Any]
BASE = "job_stream:arrivals=poisson:rate_per_s=4:slots=2"


@dataclass(frozen=True)
class Faulty:
    """Parameters of a stream.

    `slower` stretches all service times; `mtbf_s` kills running jobs; `flood` adds jobs of another
    tenant at 5 s.

    `words` are the parameters that set it apart from others in its workload's name.
    """

    words: str = ""
    fault: str | None = None
    slower: float = 1.0
    mtbf_s: float | None = None
    checkpoint_s: float = 0.0
    cost_s: float = 0.02
    restart_s: float = 0.01
    flood: int = 0
    retries: int = 1000
    jobs: int = 120
    rate_per_s: float = 4.0
    work_s: float = 0.3
    slots: int = 2
    jitter: float = 0.01
    nodes: Sequence[Row] = ()

    @property
    def workload(self) -> str:
        return BASE + self.words


@dataclass
class _Course:
    attempts: list[tuple[float, float, str, int, float, float]] = field(default_factory=list)
    lost_s: float = 0.0
    lasts_s: float = 0.0


def report(made: Faulty = Faulty(), seed: int = 1) -> dict[str, list[Row]]:
    plan = np.random.default_rng([seed, 0])
    submits = np.cumsum(plan.exponential(1 / made.rate_per_s, made.jobs))
    works = plan.exponential(made.work_s, made.jobs)
    coming = [
        (float(at), number, "small", "", float(work))
        for number, (at, work) in enumerate(zip(submits, works, strict=True))
    ]
    coming += [
        (5 + 0.01 * at, made.jobs + at, "flood of small", "flood", made.work_s)
        for at in range(made.flood)
    ]
    rng = np.random.default_rng([seed, 1, len(made.words), int(1000 * made.checkpoint_s)])
    free, told = (
        [0.0] * made.slots,
        {"job": list[Row](), "attempt": list[Row](), "fault": list[Row](), "node": [*made.nodes]},
    )
    for submit_s, number, kind, tenant, work in sorted(coming):
        course = _course(made, work * made.slower * float(np.exp(rng.normal(0, made.jitter))), rng)
        begin_s = max(submit_s, free[0])
        heapq.heapreplace(free, begin_s + course.lasts_s)
        job = {
            "job": number,
            "class": kind,
            "tenant": tenant,
            "priority": 0,
            "replicas": 1,
            "work": work,
        }
        times = {
            "planned_submit_s": submit_s,
            "submit_s": submit_s,
            "admit_s": begin_s,
            "start_s": begin_s,
        }
        told["job"].append(
            {
                **job,
                **times,
                "end_s": begin_s + course.lasts_s,
                "outcome": "done",
                "lost_s": course.lost_s,
                "lost_work": None,
            }
        )
        for at, (begin, end, outcome, checkpoints, *works_done) in enumerate(course.attempts, 1):
            moments = {
                "admit_s": begin_s + begin,
                "start_s": begin_s + begin,
                "end_s": begin_s + end,
            }
            ends = {"outcome": outcome, "from_work": works_done[0], "done_work": works_done[1]}
            kept = {"checkpoints": checkpoints, "checkpoint_cost_s": checkpoints * made.cost_s}
            told["attempt"].append(
                {"job": number, "attempt": at, "node": "a", **moments, **ends, **kept}
            )
            if outcome == "killed":
                told["fault"].append(
                    {
                        "fault": "kill",
                        "at_s": begin_s + end,
                        "until_s": begin_s + end,
                        "node": "a",
                        "job": number,
                    }
                )
    if made.fault not in {None, "kill"}:
        told["fault"].append(
            {
                "fault": made.fault,
                "at_s": 5.0,
                "until_s": 5.0 if made.flood else 12.0,
                "node": None,
                "job": None,
            }
        )
    told["stream"] = [_stream_row(made, seed)]
    return {name: rows for name, rows in told.items() if rows}


def _course(made: Faulty, work_s: float, rng: np.random.Generator) -> _Course:
    course, now, done = _Course(), 0.0, 0.0
    while True:
        begin, first, checkpoints = now, done, 0
        fails = now + rng.exponential(made.mtbf_s) if made.mtbf_s else np.inf
        while True:
            segment = min(made.checkpoint_s or work_s, work_s - done)
            last = done + segment >= work_s - 1e-12
            until = now + segment + (0.0 if last else made.cost_s)
            if until > fails:
                course.attempts.append((begin, float(fails), "killed", checkpoints, first, done))
                course.lost_s += float(fails) - now
                now = float(fails) + made.restart_s
                break
            now, done, checkpoints = until, done + segment, checkpoints + (not last)
            if last:
                course.attempts.append((begin, now, "done", checkpoints, first, done))
                course.lasts_s = now
                return course


def _stream_row(made: Faulty, seed: int) -> Row:
    fault = None if made.fault is None else {"fault": made.fault}
    about = {"engine": "pool", "slots": made.slots, "nodes": 1, "policy": "fifo", "fault": fault}
    against = {"checkpoint_s": made.checkpoint_s, "retries": made.retries}
    return {
        "arrivals": {"kind": "poisson", "seed": seed},
        **about,
        **against,
        "began_utc": "2026-01-01T00:00:00+00:00",
        "classes": [],
    }


def with_params(saved: JSON) -> JSON:
    """Give workloads the parameters that their names have: `job_stream:slots=2`."""
    for name, workload in saved["deeptweak"]["workloads"].items():
        workload["params"] = dict(part.split("=") for part in name.split(":")[1:])
    return saved


def faulty_run(arms: Sequence[Faulty], blocks: int = 5, seed: int = 1) -> JSON:
    return told_run(
        {
            (made.workload, block): report(made, 100 * seed + block)
            for made in arms
            for block in range(1, blocks + 1)
        },
        seed,
    )


def told_run(
    told: Mapping[tuple[str, int], Mapping[str, list[Row]]],
    seed: int = 1,
    steps_s: Mapping[str, float] | None = None,
) -> JSON:
    workloads = list(dict.fromkeys(name for name, _ in told))
    saved = with_params(
        saved_run(
            Made(
                arms=(STOCK,),
                workloads=workloads,
                blocks=max(block for _, block in told),
                seed=seed,
            )
        )
    )
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        record["report"] = {
            name: list(rows) for name, rows in told[record["workload"], record["block"]].items()
        }
        if steps_s:
            record["steps"]["wall_s"] = [
                one * steps_s[record["workload"]] / 0.04 for one in record["steps"]["wall_s"]
            ]
    return saved
