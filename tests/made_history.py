"""Make saved runs of nights as stock pytest-benchmark does: one mean per benchmark, no rounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

FIRST_NIGHT = datetime(2026, 1, 1, 2, tzinfo=UTC)
CPU = {"brand_raw": "Made-up CPU", "count": 8}


def noisy(levels: Sequence[float], seed: int = 1, cv: float = 0.01) -> list[float]:
    """Times that scatter log-normally around a level each night."""
    noise = np.random.default_rng(seed).normal(0, cv, len(levels))
    return [float(level * np.exp(one)) for level, one in zip(levels, noise, strict=True)]


def stepped(*parts: tuple[int, float]) -> list[float]:
    return [level for nights, level in parts for _ in range(nights)]


def night(
    at: int, times_s: Mapping[str, float], cpu: Mapping[str, object] | None = None
) -> dict[str, Any]:
    return {
        "machine_info": {
            "node": "ci",
            "system": "Linux",
            "release": "6.18.0",
            "cpu": dict(CPU if cpu is None else cpu),
        },
        "commit_info": {"id": f"{at:07x}" + 33 * "a", "dirty": False},
        "benchmarks": [_benchmark(name, time_s) for name, time_s in times_s.items()],
        "datetime": (FIRST_NIGHT + timedelta(days=at)).isoformat(),
        "version": "5.3.1",
    }


def nights(
    folder: Path,
    series: Mapping[str, Sequence[float]],
    cpu: Mapping[str, object] | None = None,
    first: int = 0,
) -> Path:
    """Write a file a night: `series` has each benchmark's times in order of the nights."""
    folder.mkdir(exist_ok=True)
    for at in range(len(next(iter(series.values())))):
        saved = night(first + at, {name: times_s[at] for name, times_s in series.items()}, cpu)
        (folder / f"{first + at:04d}_night.json").write_text(json.dumps(saved), encoding="utf-8")
    return folder


def _benchmark(name: str, time_s: float) -> dict[str, Any]:
    stats = {
        "min": 0.9 * time_s,
        "q1": 0.95 * time_s,
        "median": 0.99 * time_s,
        "mean": time_s,
        "rounds": 50,
        "iterations": 1,
    }
    return {
        "group": None,
        "name": name,
        "fullname": f"bench.py::{name}",
        "params": None,
        "param": None,
        "extra_info": {},
        "stats": stats,
    }
