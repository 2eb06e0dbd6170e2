"""Grids with known metrics, as a saved run of the benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.load import load
from analysis.studies.gpu.findings import Findings, findings_of
from analysis.studies.gpu.grid import grid_of
from tests.synthetic import Arm, Made, saved_run

SMS = 132


def read_grids(path: Path) -> tuple[list[Findings], list[str]]:
    """Read a saved run's grid, with its refusals."""
    refused: list[str] = []
    return [findings_of(grid_of(load(path), refused))], refused


def saved_grid(
    sizes: Mapping[tuple[int, int], Mapping[str, Any]],
    *,
    blocks: int = 2,
    arms: Sequence[str] = ("stock",),
) -> dict[str, Any]:
    """Saved run as JSON: samples by size (a number holds for all), `duty` as the cell reported."""
    names = {f"gpu_grid:blocks={many}:threads={few}": (many, few) for many, few in sizes}
    saved = saved_run(
        Made(
            arms=[Arm(name) for name in arms],
            workloads=list(names),
            blocks=blocks,
            steps=4,
            warmup=0,
        )
    )
    ours = saved["deeptweak"]
    for name, (many, few) in names.items():
        ours["workloads"][name]["params"] = {"blocks": many, "threads": few}
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        told = dict(sizes[names[record["workload"]]])
        entry = {
            "sms": SMS,
            "max_warps_per_sm": 64,
            "device": "NVIDIA H200",
            "duty": told.pop("duty", None),
            "kernel_s": 0.05,
            "launch_interval_s": 0.0501,
            "launches": told.pop("launches", 80),
            "source": "gpm",
            "missing": told.pop("missing", {}),
        }
        columns = {
            name: value if isinstance(value, list) else [value] * 6 for name, value in told.items()
        }
        length = max(map(len, columns.values()), default=0)
        columns["t_monotonic_s"] = [100 + 0.125 * at for at in range(length)]
        record["report"] = {"gpu_metrics": [entry], "samples": [columns]}
    return saved


def fitting(blocks: int, duty: float = 0.99) -> dict[str, Any]:
    """Samples of a kernel of `blocks` blocks of 32 threads if SMACT is as predicted."""
    smact = min(blocks, SMS) / SMS * duty
    occupancy = min(blocks / (SMS * 64), 0.5) * duty
    return {
        "utilization_percent": 100.0,
        "gract": duty,
        "smact": smact,
        "smocc": occupancy,
        "tensor": 0.0,
        "dram": 0.0,
        "duty": duty,
    }
