"""Whole made-up runs of streams: several loads and arrivals, several policies on the same jobs, faults. All from a seed, none ever ran."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from analysis.load import from_json
from analysis.studies.jobs.simulation import JobClass, jobs, play
from analysis.terms import Run
from tests.analysis.studies.jobs.queues.made_streams import MadeStream, constant, rows, stream_row
from tests.analysis.studies.jobs.simulation.made_jobs import ANY, source
from tests.synthetic import STOCK, Made, saved_run

Report = dict[str, list[dict[str, Any]]]


def run_of(reports: Mapping[str, Callable[[int], Report]], blocks: int = 5, seed: int = 1) -> Run:
    primary = ("step_time_mean_s", "lower")
    made = Made(arms=(STOCK,), workloads=tuple(reports), primaries=dict.fromkeys(reports, primary), blocks=blocks, seed=seed)
    saved = saved_run(made)
    for part in (saved["deeptweak"], *(one["extra_info"] for one in saved["benchmarks"])):
        part["schema_version"] = 5
    for one in saved["benchmarks"]:
        one["extra_info"]["report"] = reports[one["extra_info"]["workload"]](one["extra_info"]["block"])
    return from_json(saved, f"made-{seed}.json")


def queueing_run(blocks: int = 5, count: int = 600, loads: tuple[float, ...] = (0.3, 0.6, 0.8)) -> Run:
    reports: dict[str, Callable[[int], Report]] = {}
    for slots in (1, 2):
        for load in loads:
            made = MadeStream(rate_per_s=load * slots / 0.2, slots=slots, jobs=count)
            reports[f"job_stream:arrivals=poisson:rate_per_s={made.rate_per_s:g}:slots={slots}"] = _reporter(made)
    made = MadeStream(rate_per_s=6.0, slots=2, jobs=count, gaps=constant)
    reports["job_stream:arrivals=deterministic:rate_per_s=6:slots=2"] = _reporter(made)
    return run_of(reports, blocks)


def _reporter(made: MadeStream) -> Callable[[int], Report]:
    def report(block: int) -> Report:
        seed = int(1000 * made.rate_per_s) + 100 * made.slots + block
        about = stream_row(made, block)
        kind = "deterministic" if made.gaps is constant else "poisson"
        return {"job": rows(made, seed), "stream": [{**about, "arrivals": {**about["arrivals"], "kind": kind}, "fault": None}]}

    return report


def scheduling_run(policies: tuple[str, ...] = ("fifo", "sjf", "fair_share", "priority"), blocks: int = 5, count: int = 300) -> Run:
    return run_of({f"job_stream:policy={name}": _played(name, count) for name in policies}, blocks, seed=2)


def _played(policy: str, count: int, slots: int = 2) -> Callable[[int], Report]:
    def report(block: int) -> Report:
        classes = tuple(JobClass(name, 0.5, {ANY: 1.0}, cv2=2.0, priority=at, tenant=name) for at, name in enumerate(("urgent", "patient")))
        few = replace(source(slots, 0.8), classes=classes, error=0.3)
        coming = jobs(few, count, block)
        played = play(coming, {ANY: slots}, policy)
        told = [
            {
                **rows(MadeStream(jobs=1))[0],
                "job": one.job.number,
                "class": one.job.class_,
                "tenant": one.job.tenant,
                "priority": one.job.priority,
                "predicted_s": one.job.predicted_s[ANY],
                "planned_submit_s": one.job.submit_s,
                "submit_s": one.job.submit_s,
                "admit_s": start_s + 0.01,
                "start_s": start_s + 0.01,
                "end_s": end_s + 0.01,
            }
            for one, start_s, end_s in zip(coming, played.start_s.tolist(), played.end_s.tolist(), strict=True)
        ]
        about = {"arrivals": {"kind": "poisson", "rate_per_s": 1.6, "seed": block}, "engine": "pool", "slots": slots, "policy": policy}
        return {"job": told, "stream": [{**about, "fault": None}]}

    return report


def faulty_run(
    checkpoints: tuple[float, ...] = (0.0, 0.2, 0.6, 2.0), blocks: int = 5, count: int = 80, mtbf_s: float = 3.0, cost_s: float = 0.02
) -> Run:
    base = "job_stream:arrivals=poisson:slots=2"
    reports = {base: _killed(None, 0.0, count, cost_s)}
    for interval_s in checkpoints:
        name = f"{base}:fault=kill:fault_rate_per_s={2 / mtbf_s:g}:checkpoint_s={interval_s:g}:retries=99"
        reports[name] = _killed(mtbf_s, interval_s, count, cost_s)
    return run_of(reports, blocks, seed=3)


def _killed(mtbf_s: float | None, interval_s: float, count: int, cost_s: float) -> Callable[[int], Report]:
    def report(block: int) -> Report:
        rng, luck = np.random.default_rng(block), np.random.default_rng([block, int(1000 * interval_s)])
        submits, works = np.cumsum(rng.exponential(1.25, count)), rng.exponential(1.0, count)
        free = [0.0, 0.0]
        told: Report = {"job": [], "attempt": [], "fault": [], "stream": []}
        for job in range(count):
            slot = int(np.argmin(free))
            admit_s = now_s = max(free[slot], float(submits[job]))
            done, attempt = 0.0, 0
            while attempt == 0 or done < works[job]:
                attempt += 1
                left = float(works[job]) - done
                wrote = math.ceil(left / interval_s) - 1 if interval_s else 0
                whole_s, dies_s = left + cost_s * wrote, luck.exponential(mtbf_s) if mtbf_s else math.inf
                killed = dies_s < whole_s
                end_s = now_s + min(whole_s, dies_s)
                if killed:
                    wrote = math.floor(dies_s / (interval_s + cost_s)) if interval_s else 0
                    told["fault"].append({"fault": "kill", "at_s": end_s, "until_s": None, "node": None, "job": job, "detail": ""})
                kept = done + wrote * interval_s if killed else float(works[job])
                row = {"job": job, "attempt": attempt, "node": f"n{slot + 1}", "admit_s": now_s, "start_s": now_s, "end_s": end_s}
                row |= {"outcome": "killed" if killed else "done", "from_work": done, "done_work": kept}
                told["attempt"].append({**row, "checkpoints": wrote, "checkpoint_cost_s": wrote * cost_s})
                done, now_s = kept, end_s + 0.01 * killed
            free[slot] = now_s
            lost_s = now_s - admit_s - float(works[job])
            row = {**rows(MadeStream(jobs=1))[0], "job": job, "work": float(works[job]), "attempts": attempt, "lost_s": max(0.0, lost_s)}
            times = dict.fromkeys(("planned_submit_s", "submit_s"), float(submits[job])) | {
                "admit_s": admit_s,
                "start_s": admit_s,
                "end_s": now_s,
            }
            told["job"].append({**row, **times})
        about = stream_row(MadeStream(rate_per_s=0.8), block)
        fault = {"fault": "kill", "fault_rate_per_s": 2 / mtbf_s} if mtbf_s else None
        told["stream"].append({**about, "nodes": 2, "fault": fault, "checkpoint_s": interval_s, "retries": 99 if mtbf_s else 0})
        return told

    return report
