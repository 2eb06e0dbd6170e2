"""Seeded measurements by known laws: a batch, a cold or warm cache, replicas that share work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from analysis.studies.jobs.prediction.models import FactorTable, Measurement, table
from tests.analysis.studies.jobs.queues.made_streams import MadeStream, streamed_run

BATCHES = (1, 2, 4, 8, 16, 32)
COLD = 3.0


def law(batch: float, cache: str) -> float:
    """Seconds: 0.01·√batch, three times that from a cold cache."""
    return 0.01 * float(np.sqrt(batch)) * (COLD if cache == "cold" else 1.0)


def rows(runs: int = 6, noise: float = 0.02, seed: int = 1) -> list[Measurement]:
    rng = np.random.default_rng(seed)
    made = []
    for run in range(runs):
        for batch in BATCHES:
            for cache in ("cold", "warm"):
                value = law(batch, cache) * float(np.exp(rng.normal(0, noise)))
                made.append(
                    Measurement(
                        f"{batch} {cache}",
                        f"run {run}",
                        {"batch": float(batch), "cache": cache},
                        value,
                    )
                )
    return made


def made_table(runs: int = 6, noise: float = 0.02, seed: int = 1) -> FactorTable:
    return table(rows(runs, noise, seed), "time_s")


def as_csv(told: list[Measurement]) -> str:
    lines = [
        f"{one.factors['batch']:g},{one.factors['cache']},{one.run},{one.value!r}" for one in told
    ]
    return "\n".join(["batch,cache,run,time_s", *lines]) + "\n"


def streams(folder: Path, runs: int = 6, jobs: int = 30) -> str:
    """Streams of two classes: `short` takes 0.05 s and 1 s per unit, `long` 2 s on two replicas."""
    saved: dict[str, Any] = streamed_run(MadeStream(jobs=jobs, slots=4), runs)
    rng = np.random.default_rng(1)
    for benchmark in saved["benchmarks"]:
        report = benchmark["extra_info"]["report"]
        report["stream"][0]["classes"] = [
            {"name": "short", "kind": "sleep"},
            {"name": "long", "kind": "spin", "params": {"lr": 0.1}},
        ]
        for row in report["job"]:
            name = "long" if row["job"] % 3 == 0 else "short"
            work = float(rng.exponential(0.2)) + 0.01
            taken = (0.05 + work if name == "short" else 2 * work / 2) * float(
                np.exp(rng.normal(0, 0.02))
            )
            row |= {
                "class": name,
                "work": work,
                "replicas": 1 if name == "short" else 2,
                "end_s": row["start_s"] + taken,
                "cpu_s": taken,
            }
    path = folder / "streams.json"
    path.write_text(json.dumps(saved), encoding="utf-8")
    return str(path)
