"""Make the sampler's side file for made-up runs: a host and GPUs with known power in watts.

A cell is sampled at 10 Hz from a second before its first step to half a second after its last.
Power is `power_w` throughout; energy counts from the beginning of the cell, as NVML's does.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np

from tests.synthetic import Made, saved_run

JSON = dict[str, Any]
EVERY_S, BEFORE_S, AFTER_S = 0.1, 1.0, 0.5


def sampled_file(
    folder: Path, made: Made, *, gpus: int = 1, power_w: float = 60.0, name: str = "run.json"
) -> Path:
    saved = saved_run(made)
    lines = []
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        columns = _columns(record["steps"], gpus, power_w)
        lines.append(json.dumps({"cell": record["id"], "columns": columns}))
        record["telemetry"] = _summarised(record["steps"], gpus, power_w)
    packed = lzma.compress("\n".join(lines).encode())
    side = folder / f"telemetry-{saved['deeptweak']['run_id']}.jsonl.xz"
    side.write_bytes(packed)
    saved["deeptweak"]["telemetry_file"] = {
        "name": side.name,
        "sha256": hashlib.sha256(packed).hexdigest(),
        "bytes": len(packed),
    }
    path = folder / name
    path.write_text(json.dumps(saved), encoding="utf-8")
    return path


def _columns(steps: JSON, gpus: int, power_w: float) -> dict[str, list[float | None]]:
    starts, wall_s = steps["start_monotonic_s"], steps["wall_s"]
    clock = np.arange(starts[0] - BEFORE_S, starts[-1] + wall_s[-1] + AFTER_S, EVERY_S)
    works = (clock >= starts[0]) & (clock <= starts[-1] + wall_s[-1])
    columns: dict[str, list[float | None]] = {
        "t_monotonic_s": clock.tolist(),
        "cpu_user_percent": [None, *np.where(works, 90.0, 20.0)[1:].tolist()],
        "cpu_system_percent": [None, *np.where(works, 7.0, 3.0)[1:].tolist()],
        "cpu_irq_percent": [None, *np.zeros(len(clock) - 1).tolist()],
        "cpu_steal_percent": [None, *np.zeros(len(clock) - 1).tolist()],
        "mem_available_bytes": np.full(len(clock), 20.0 * 2**30).tolist(),
    }
    for gpu in range(gpus):
        columns[f"gpu{gpu}_util_percent"] = np.where(works, 95.0, 0.0).tolist()
        columns[f"gpu{gpu}_power_w"] = np.full(len(clock), power_w).tolist()
        columns[f"gpu{gpu}_energy_j"] = (power_w * (clock - clock[0])).tolist()
        columns[f"gpu{gpu}_temperature_c"] = np.linspace(30, 55 + gpu, len(clock)).tolist()
    return columns


def _summarised(steps: JSON, gpus: int, power_w: float) -> JSON:
    seconds = sum(steps["wall_s"][steps["warmup"] :])
    summary = {"cpu_busy_percent_mean": 97.0, "mem_available_bytes_mean": 20.0 * 2**30}
    for gpu in range(gpus):
        summary |= {
            f"gpu{gpu}_util_percent_mean": 95.0,
            f"gpu{gpu}_power_w_mean": power_w,
            f"gpu{gpu}_energy_j_total": power_w * seconds,
        }
    missing = {} if gpus else {"nvml": "no NVIDIA driver"}
    return {
        "summary": summary,
        "missing": missing,
        "hz": 10.0,
        "samples": 20,
        "sampler_cpu_s": 0.01,
    }
