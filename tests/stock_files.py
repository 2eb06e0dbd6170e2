"""Files as stock pytest-benchmark saves them: known times, statistics by its own code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pytest_benchmark.stats import Stats

JSON = dict[str, Any]

MACHINE: JSON = {
    "node": "worker",
    "processor": "x86_64",
    "machine": "x86_64",
    "python_implementation": "CPython",
    "python_version": "3.12.1",
    "release": "6.8.0",
    "system": "Linux",
    "cpu": {"brand_raw": "Made-up CPU", "count": 8},
}


def times(seed: int, level_s: float = 0.002, rounds: int = 40) -> list[float]:
    """Seconds a call of each round, log-normal around a level that is the run's own."""
    rng = np.random.default_rng(seed)
    level_s *= float(np.exp(rng.normal(0, 0.01)))
    return [float(value) for value in level_s * np.exp(rng.normal(0, 0.05, rounds))]


def benchmark(
    name: str, data: Sequence[float], *, keep_data: bool = True, iterations: int = 1
) -> JSON:
    stats = Stats()
    stats.data = list(data)
    found: JSON = stats.as_dict()
    if keep_data:
        found["data"] = list(data)
    return {
        "group": None,
        "name": name,
        "fullname": f"tests/test_speed.py::{name}",
        "params": None,
        "param": None,
        "extra_info": {},
        "options": {
            "disable_gc": False,
            "timer": "perf_counter",
            "min_rounds": 5,
            "max_time": 1.0,
            "min_time": 5e-06,
            "warmup": False,
        },
        "stats": {**found, "iterations": iterations},
    }


def document(
    benchmarks: Sequence[JSON],
    saved: str = "2026-01-01T10:00:00.000001+00:00",
    machine: Mapping[str, object] = MACHINE,
) -> JSON:
    """One file of version 5.3.1."""
    return {
        "machine_info": dict(machine),
        "commit_info": {
            "id": "0123456789abcdef",
            "time": None,
            "dirty": False,
            "project": "made-up",
            "branch": "main",
        },
        "benchmarks": list(benchmarks),
        "datetime": saved,
        "version": "5.3.1",
    }


def stock_file(path: Path, content: JSON) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def session(
    path: Path, *, seed: int, level_s: float = 0.002, keep_data: bool = True, minute: int = 0
) -> Path:
    """Write one session of two benchmarks."""
    both = [
        benchmark(name, times(seed + at, level_s), keep_data=keep_data)
        for at, name in enumerate(("test_sort", "test_hash"))
    ]
    return stock_file(path, document(both, f"2026-01-01T10:{minute:02}:00.000001+00:00"))
