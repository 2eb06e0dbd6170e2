"""Seeded synthetic runs of streams: loads and arrivals, policies on the same jobs, faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from analysis.load import from_json
from analysis.studies.jobs.simulation import ClassModel, jobs, play
from analysis.terms import Run
from tests.analysis.studies.jobs.dependability.made_faults import Faulty, report, with_params
from tests.analysis.studies.jobs.queues.made_streams import MadeStream, constant, rows, stream_row
from tests.analysis.studies.jobs.simulation.made_jobs import source
from tests.synthetic import STOCK, Made, saved_run

Report = dict[str, list[dict[str, Any]]]


def run_of(reports: Mapping[str, Callable[[int], Report]], blocks: int = 5, seed: int = 1) -> Run:
    primary = ("step_time_mean_s", "lower")
    made = Made(
        arms=(STOCK,),
        workloads=tuple(reports),
        primaries=dict.fromkeys(reports, primary),
        blocks=blocks,
        seed=seed,
    )
    saved = with_params(saved_run(made))
    for one in saved["benchmarks"]:
        one["extra_info"]["report"] = reports[one["extra_info"]["workload"]](
            one["extra_info"]["block"]
        )
    return from_json(saved, f"made-{seed}.json")


def queueing_run(
    blocks: int = 5, count: int = 600, loads: tuple[float, ...] = (0.3, 0.6, 0.8)
) -> Run:
    reports: dict[str, Callable[[int], Report]] = {}
    for slots in (1, 2):
        for load in loads:
            made = MadeStream(rate_per_s=load * slots / 0.2, slots=slots, jobs=count)
            reports[f"job_stream:arrivals=poisson:rate_per_s={made.rate_per_s:g}:slots={slots}"] = (
                _reporter(made)
            )
    made = MadeStream(rate_per_s=6.0, slots=2, jobs=count, gaps=constant)
    reports["job_stream:arrivals=deterministic:rate_per_s=6:slots=2"] = _reporter(made)
    return run_of(reports, blocks)


def _reporter(made: MadeStream) -> Callable[[int], Report]:
    def report(block: int) -> Report:
        seed = int(1000 * made.rate_per_s) + 100 * made.slots + block
        about = stream_row(made, block)
        kind = "deterministic" if made.gaps is constant else "poisson"
        return {
            "job": rows(made, seed),
            "stream": [{**about, "arrivals": {**about["arrivals"], "kind": kind}, "fault": None}],
        }

    return report


def scheduling_run(
    policies: tuple[str, ...] = ("fifo", "sjf", "fair_share", "priority"),
    blocks: int = 5,
    count: int = 300,
) -> Run:
    return run_of(
        {f"job_stream:policy={name}": _played(name, count) for name in policies}, blocks, seed=2
    )


def _played(policy: str, count: int, slots: int = 2) -> Callable[[int], Report]:
    def report(block: int) -> Report:
        classes = tuple(
            ClassModel(name, 0.5, 1.0, cv2=2.0, priority=at, tenant=name)
            for at, name in enumerate(("urgent", "patient"))
        )
        few = replace(source(slots, 0.8), classes=classes, error=0.3)
        coming = jobs(few, count, block)
        played = play(coming, slots, policy)
        told = [
            {
                **rows(MadeStream(jobs=1))[0],
                "job": one.job.number,
                "class": one.job.class_,
                "tenant": one.job.tenant,
                "priority": one.job.priority,
                "predicted_s": one.job.predicted_s,
                "planned_submit_s": one.job.submit_s,
                "submit_s": one.job.submit_s,
                "admit_s": start_s + 0.01,
                "start_s": start_s + 0.01,
                "end_s": end_s + 0.01,
            }
            for one, start_s, end_s in zip(
                coming, played.start_s.tolist(), played.end_s.tolist(), strict=True
            )
        ]
        about = {
            "arrivals": {"kind": "poisson", "rate_per_s": 1.6, "seed": block},
            "engine": "pool",
            "slots": slots,
            "policy": policy,
        }
        return {"job": told, "stream": [{**about, "fault": None}]}

    return report


def faulty_run(
    checkpoints: tuple[float, ...] = (0.0, 0.2, 0.6, 2.0),
    blocks: int = 5,
    count: int = 80,
    mtbf_s: float = 3.0,
    cost_s: float = 0.02,
) -> Run:
    base = "job_stream:arrivals=poisson:slots=2"
    plain = Faulty(jobs=count, rate_per_s=0.8, work_s=1.0, cost_s=cost_s)
    made = {base: plain}
    for at_s in checkpoints:
        words = f":fault=kill:fault_rate_per_s={2 / mtbf_s:g}:checkpoint_s={at_s:g}:retries=99"
        made[base + words] = replace(
            plain, words=words, fault="kill", mtbf_s=mtbf_s, checkpoint_s=at_s, retries=99
        )
    return run_of({name: partial(report, one) for name, one in made.items()}, blocks, seed=3)
