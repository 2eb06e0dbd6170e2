"""Grids whose metrics are known: log pairs as dcgmi and nvidia-smi write them, and a saved run as the benchmark does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.synthetic import Arm, Made, saved_run

A100, DISPLAY = "NVIDIA A100-SXM4-40GB", "NVIDIA DGX Display"
NAMES = (A100, A100, A100, DISPLAY, A100)
FIELDS = ("GPUTL", "MCUTL", "GRACT", "SMACT", "SMOCC", "TENSO", "DRAMA")
SMS = 132


def dcgmi(rows: Sequence[Sequence[float]], *, gpus: int = 5, busy: int = 0, every: int = 4) -> str:
    """A log of dcgmi dmon: `rows` are the samples of the GPU that worked; the header comes again every so many ticks."""
    lines = []
    for tick, row in enumerate(rows):
        if tick % every == 0:
            lines += ["#Entity   " + "".join(f"{name:<13}" for name in FIELDS), "ID" + " " * 90]
        for gpu in range(gpus):
            values = row if gpu == busy else [0] * len(FIELDS)
            shown = [f"{value:.0f}" if at < 2 else f"{value:.3f}" for at, value in enumerate(values)]
            shown = ["N/A"] * len(FIELDS) if gpus == 5 and gpu == 3 else shown
            lines.append(f"GPU {gpu}     " + "".join(f"{value:<13}" for value in shown))
    return "\n".join(lines) + "\n"


def nvsm(rows: Sequence[tuple[float, float]], *, names: Sequence[str] = NAMES, busy: int = 0) -> str:
    """A log of nvidia-smi without an index: `rows` are utilisation and used MiB of the GPU that worked."""
    lines = ["name, utilization.gpu [%], utilization.memory [%], memory.total [MiB], memory.used [MiB]"]
    for utilization, used in rows:
        for gpu, name in enumerate(names):
            here = f"{utilization:.0f} %, 0 %, 40960 MiB, {used:.0f} MiB" if gpu == busy else "0 %, 0 %, 40960 MiB, 3 MiB"
            lines.append(f"{name}, {here}".replace("40960", "4096") if name == DISPLAY else f"{name}, {here}")
    return "\n".join(lines) + "\n"


def pair(
    folder: Path,
    blocks: int,
    threads: int,
    *,
    samples: int = 8,
    gract: float = 0.98,
    smact: float = 0.2,
    smocc: float = 0.05,
    busy: int = 0,
) -> None:
    """Write one pair: an idle sample, then so many of work."""
    work = [100 * gract, 0, gract, smact, smocc, 0, 0]
    used = 417 + max(2, 8 * blocks * threads / 2**20)
    (folder / f"{blocks}.{threads}.dcgmi.txt").write_text(dcgmi([[0] * 7, *([work] * samples)], busy=busy))
    (folder / f"{blocks}.{threads}.nvsm.txt").write_text(nvsm([(0, 3), *([(100 * gract, used)] * samples)], busy=busy))


def saved_grid(sizes: Mapping[tuple[int, int], Mapping[str, Any]], *, blocks: int = 2, arms: Sequence[str] = ("stock",)) -> dict[str, Any]:
    """The JSON of a saved run: by size what its samples say (a number is all samples', a list is the samples), `duty` what it reported."""
    names = {f"gpu_grid:blocks={many}:threads={few}": (many, few) for many, few in sizes}
    saved = saved_run(Made(arms=[Arm(name) for name in arms], workloads=list(names), blocks=blocks, steps=4, warmup=0))
    ours = saved["deeptweak"]
    for part in (ours, *(one["extra_info"] for one in saved["benchmarks"])):
        part["schema_version"] = 4
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
        columns = {name: value if isinstance(value, list) else [value] * 6 for name, value in told.items()}
        length = max(map(len, columns.values()), default=0)
        columns["t_monotonic_s"] = [100 + 0.125 * at for at in range(length)]
        record["report"] = {"gpu_metrics": [entry], "samples": [columns]}
    return saved


def fitting(blocks: int, duty: float = 0.99) -> dict[str, Any]:
    """What a kernel of so many blocks of 32 threads tells if SMACT is what it should be."""
    smact = min(blocks, SMS) / SMS * duty
    occupancy = min(blocks / (SMS * 64), 0.5) * duty
    return {"utilization_percent": 100.0, "gract": duty, "smact": smact, "smocc": occupancy, "tensor": 0.0, "dram": 0.0, "duty": duty}
