"""Make result folders like DLIO's from step lists, for cases that no recording covers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from analysis.studies.io.terms import Epoch, IoRun

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
COMPUTE_S = 0.1


def epoch(
    loads: Sequence[float],
    computes: Sequence[float] | None = None,
    *,
    over_s: float = 0.0,
    **rest: object,
) -> Epoch:
    """One epoch of one rank; `over_s` is what it took beyond load and computation.

    Rank 0 and epoch 1 unless said otherwise.
    """
    computes = [COMPUTE_S] * len(loads) if computes is None else computes
    start_s = 1000.0
    end_s = start_s + sum(loads) + sum(computes) + over_s
    given: dict[str, object] = {"number": 1, "rank": 0, **rest}
    return Epoch(
        start_s=start_s,
        end_s=end_s,
        load_s=tuple(loads),
        compute_s=tuple(computes),
        **given,  # type: ignore[arg-type]
    )


def io_run(*epochs: Epoch, **rest: object) -> IoRun:
    """A run of those epochs: batch 4, one reader that fetches one batch ahead, records of 1 MiB."""
    given: dict[str, object] = {
        "origin": "made",
        "id": "made",
        "model": "unet3d",
        "engine": "torch",
        "processes": len({one.rank for one in epochs}) or 1,
        "batch_size": 4,
        "read_threads": 1,
        "prefetch_factor": 1,
        "computation_time_s": COMPUTE_S,
        "record_length_bytes": 2.0**20,
        **rest,
    }
    return IoRun(epochs=epochs, **given)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Made:
    """One run of DLIO and its output."""

    after_s: int = 0
    processes: int = 2
    epochs: int = 2
    loads: Sequence[float] = (1.0, *[0.02] * 39)
    waits_s: float = 0.1
    generates: bool = False
    dataset: Mapping[str, object] = field(default_factory=dict)
    reader: Mapping[str, object] = field(default_factory=dict)
    overrides: Sequence[str] = ()

    @property
    def stamp(self) -> str:
        """Return hydra's name for its folder."""
        return f"{BEGAN + timedelta(seconds=self.after_s):%Y-%m-%d-%H-%M-%S}"


def folder(where: Path, made: Made) -> Path:
    """Write the folder of one run and answer it."""
    path = where / made.stamp
    (path / ".hydra").mkdir(parents=True)
    dataset: dict[str, Any] = {
        "data_folder": "data/unet3d",
        "format": "npz",
        "num_files_train": 320,
        "num_samples_per_file": 1,
        "record_length_bytes": 1048576,
        "record_length_bytes_stdev": 0,
        **made.dataset,
    }
    reader = {"batch_size": 4, "read_threads": 2, **made.reader}
    workload = {
        "model": {"name": "unet3d", "type": "cnn"},
        "workflow": {"generate_data": made.generates, "train": not made.generates},
        "dataset": dataset,
        "reader": reader,
        "train": {"epochs": made.epochs, "computation_time": COMPUTE_S},
    }
    asked = ["workload=unet3d_h100", *made.overrides]
    _yaml(path / ".hydra" / "config.yaml", {"workload": workload})
    _yaml(path / ".hydra" / "overrides.yaml", asked)
    metric: dict[str, object] = {}
    for rank in range(made.processes):
        output, stamps = _rank(made)
        _json(path / f"{rank}_output.json", output)
        _json(path / f"{rank}_per_epoch_stats.json", stamps)
    if not made.generates:
        metric = _metric(made, reader)
    summary = {
        "start": _iso(made.after_s),
        "num_accelerators": made.processes,
        "num_hosts": 1,
        "hostname": "host",
        "metric": {"checkpoint_size_GB": float("nan"), **metric},
        "host_memory_GB": [16.0],
        "host_cpu_count": [8],
        "data_size_per_host_GB": dataset["num_files_train"]
        * dataset["record_length_bytes"]
        / 2**30,
    }
    _json(path / "summary.json", summary)
    return path


def _span_s(made: Made) -> float:
    return sum(made.loads) + COMPUTE_S * len(made.loads) + made.waits_s


def _rank(made: Made) -> tuple[dict[str, object], dict[str, object]]:
    output: dict[str, object] = {"hostname": "host"}
    stamps: dict[str, object] = {}
    for number in range(1, made.epochs + 1):
        start = made.after_s + (number - 1) * (_span_s(made) + 1)
        steps = {} if made.generates else {"block1": list(made.loads)}
        computes = {} if made.generates else {"block1": [COMPUTE_S] * len(made.loads)}
        procs = {name: [load + COMPUTE_S for load in loads] for name, loads in steps.items()}
        output[str(number)] = {
            "load": {**steps, "eval": []},
            "compute": {**computes, "eval": []},
            "proc": {**procs, "eval": []},
        }
        block = {"block1": {"start": _iso(start), "end": _iso(start + _span_s(made))}}
        stamps[str(number)] = {"start": _iso(start), **({} if made.generates else block)}
    return output, stamps


def _metric(made: Made, reader: Mapping[str, object]) -> dict[str, object]:
    """DLIO's own figures, by its own formulas: the first step left out, S - 2 steps counted."""
    steps, batch = len(made.loads), int(str(reader["batch_size"]))
    span_s = _span_s(made) - made.loads[0] - COMPUTE_S
    au = 100 * COMPUTE_S * (steps - 1) / span_s
    rate = made.processes * (steps - 2) * batch / span_s
    return {
        "train_au_percentage": [au] * made.epochs,
        "train_au_mean_percentage": au,
        "train_au_stdev_percentage": 0.0,
        "train_throughput_samples_per_second": [rate] * made.epochs,
        "train_throughput_mean_samples_per_second": rate,
        "train_io_mean_MB_per_second": rate * 1048576 / 2**20,
    }


def _iso(seconds: float) -> str:
    return (BEGAN + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


def _yaml(path: Path, value: object) -> None:
    path.write_text(yaml.safe_dump(value), encoding="utf-8")


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")  # NaN and all, as DLIO does
