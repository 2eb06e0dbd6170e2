"""Saved runs of job streams, made row by row as the test prescribes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.analysis.studies.jobs.dependability.made_faults import with_params
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

Row = dict[str, Any]


def job(
    number: int = 0, *, waits: float = 0.0, starts: float = 0.0, runs: float = 1.0, **more: object
) -> Row:
    admit_s, start_s = number + waits, number + waits + starts
    return {
        "job": number,
        "class": "train",
        "outcome": "done",
        "attempts": 1,
        "replicas": 1,
        "work": 100.0,
        "submit_s": float(number),
        "admit_s": admit_s,
        "start_s": start_s,
        "end_s": start_s + runs,
        "cpu_s": 0.5 * runs,
        "throttled_s": 0.0,
        "max_rss_mib": 700.0,
        "memory_peak_mib": None,
        "cores": None,
        "memory_mib": None,
        "result": {},
        **more,
    }


def report(rows: Sequence[Row], slots: int = 1) -> dict[str, Any]:
    about = {
        "arrivals": {"kind": "closed", "seed": 1},
        "engine": "pool",
        "slots": slots,
        "policy": "fifo",
        "classes": [],
    }
    return {"job": list(rows), "stream": [about]}


def saved(
    folder: Path,
    told: Mapping[tuple[str, str, int], Mapping[str, Any]],
    *,
    params: Mapping[str, Mapping[str, object]] | None = None,
    cpus: int | None = 2,
    name: str = "run.json",
) -> Path:
    workloads = tuple(dict.fromkeys(workload for workload, _, _ in told))
    sets = [
        Arm(one, requested={"vm.swappiness": "1"})
        for one in dict.fromkeys(tweakset for _, tweakset, _ in told)
        if one != "stock"
    ]
    blocks = range(1, max(block for _, _, block in told) + 1)
    run = with_params(
        saved_run(Made(arms=(STOCK, AGAIN, *sets), workloads=workloads, blocks=len(blocks)))
    )
    if cpus is not None:
        run["machine_info"]["deeptweak"]["cpu_count"] = cpus
    for workload, given in (params or {}).items():
        run["workloads" if "workloads" in run else "deeptweak"]["workloads"][workload]["params"] = (
            given
        )
    for one in run["benchmarks"]:
        info = one["extra_info"]
        key = (info["workload"], info["tweakset"], info["block"])
        copied = told.get((key[0], "stock", key[2])) if key[1] == "stock-again" else told.get(key)
        if copied is not None:
            info["report"] = copied
    path = folder / name
    path.write_text(json.dumps(run))
    return path
