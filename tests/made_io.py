"""I/O runs with known effects, made from a seed, bare or as a saved run, for all of `tests/`.

What is set is samples/s over the whole epoch: base · effects of the levels · the block's level ·
the cell's scatter. The wall time follows, and AU from that: each step computes
`computation_time_s`. Of the time that is neither, `first` waits for the first batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from analysis.studies.io.terms import Epoch, IoRun
from tests.synthetic import JSON, Arm, Made, saved_run

MIB = 2**20


@dataclass(frozen=True)
class MadeIo:
    """A crossed design."""

    factors: Mapping[str, Sequence[object]] = field(
        default_factory=lambda: {"format": ("raw", "npz"), "cache": ("cold", "warm")}
    )
    tweaksets: Sequence[str] = ("stock", "stock-again")
    blocks: int = 5
    gain: Callable[[Mapping[str, object], str], float] = lambda _levels, _tweakset: 0.0
    first: Callable[[Mapping[str, object]], float] = lambda _levels: 0.3
    base_per_s: float = 400.0
    block_sd: float = 0.10
    cell_sd: float = 0.01
    steps: int = 48
    epochs: int = 1
    batch: int = 4
    computation_time_s: float = 0.004
    record_bytes: int = 2 * MIB
    seed: int = 1
    lost: Sequence[tuple[Mapping[str, object], str, int]] = ()


def io_runs(made: MadeIo = MadeIo()) -> list[IoRun]:
    """Make a design's runs in the order of blocks; epochs scatter as little as steps."""
    rng = np.random.default_rng(made.seed)
    names = list(made.factors)
    found: list[IoRun] = []
    for block in range(1, made.blocks + 1):
        level = rng.normal(0, made.block_sd)
        for values in itertools.product(*made.factors.values()):
            levels = dict(zip(names, values, strict=True))
            for tweakset in made.tweaksets:
                scatter = rng.normal(0, made.cell_sd)
                if (levels, tweakset, block) not in made.lost:
                    rate = made.base_per_s * math.exp(made.gain(levels, tweakset) + level + scatter)
                    found.append(_run(made, levels, tweakset, block, rate, len(found), rng))
    return found


def _run(
    made: MadeIo,
    levels: Mapping[str, object],
    tweakset: str,
    block: int,
    rate: float,
    order: int,
    rng: np.random.Generator,
) -> IoRun:
    processes = int(str(levels.get("processes", 1)))
    workers = int(str(levels.get("read_threads", 1)))
    data_set_bytes = made.steps * made.batch * processes * made.record_bytes
    cold = levels.get("cache") == "cold"
    epochs: list[Epoch] = []
    start_s = 100.0 * (order + 1)
    for number in range(1, made.epochs + 1):
        wall_s = made.steps * made.batch * processes / (rate * math.exp(rng.normal(0, 0.003)))
        for rank in range(processes):
            compute_s = (
                made.computation_time_s * (1 + np.abs(rng.normal(0, 0.001, made.steps)))
            ).tolist()
            waiting_s = max(0.0, 0.97 * (wall_s - math.fsum(compute_s)))
            rest = rng.dirichlet(np.ones(made.steps - 1)) * waiting_s * (1 - made.first(levels))
            barrier = 0.02 * (processes - 1)
            load_s = [
                made.first(levels) * waiting_s * (1 - barrier),
                *(rest * (1 - barrier)).tolist(),
            ]
            epochs.append(
                Epoch(
                    number=number,
                    rank=rank,
                    start_s=start_s,
                    end_s=start_s + wall_s,
                    load_s=tuple(load_s),
                    compute_s=tuple(compute_s),
                    barrier_s=tuple([waiting_s * barrier / made.steps] * made.steps),
                    rchar_bytes=data_set_bytes // processes + 1000,
                    read_bytes=data_set_bytes // processes if cold else 0,
                    device_read_bytes=(data_set_bytes + 4096 if cold else 0) if rank == 0 else None,
                    resident_before=(0.0 if cold else 1.0) if rank == 0 else None,
                    resident_after=1.0 if rank == 0 else None,
                )
            )
        start_s += wall_s
    name = "".join(f":{key}={value}" for key, value in levels.items())
    return IoRun(
        origin="made.json",
        id=f"io_train{name}-{tweakset}-b{block}",
        model="unet3d_h100",
        engine="torch",
        processes=processes,
        batch_size=made.batch,
        read_threads=workers,
        prefetch_factor=2,
        computation_time_s=made.computation_time_s,
        record_length_bytes=float(made.record_bytes),
        epochs=tuple(epochs),
        params={"format": "npz", "cache": "warm", "read_threads": 1, **levels},
        overrides=dict(levels),
        dataset={
            "bytes": data_set_bytes,
            "files": made.steps * made.batch * processes,
            "format": str(levels.get("format", "npz")),
        },
        tweakset=tweakset,
        block=block,
        order=order,
    )


def saved_io(made: MadeIo = MadeIo()) -> JSON:
    """Make the JSON of a saved run from `io_runs`; cells that are missing there failed."""
    runs = {(name_of(one.overrides), one.tweakset, one.block): one for one in io_runs(made)}
    names = list(dict.fromkeys(name for name, _, _ in runs))
    arms = [
        Arm(name, requested={"vm.x": "1"} if name.startswith("block") else {})
        for name in made.tweaksets
    ]
    saved = saved_run(
        Made(arms=arms, workloads=names, blocks=made.blocks, seed=made.seed, steps=4, warmup=0)
    )
    ours = saved["deeptweak"]
    for name in names:
        ours["workloads"][name]["params"] = dict(
            next(one.params for key, one in runs.items() if key[0] == name)
        )
    kept = []
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        found = runs.get((record["workload"], record["tweakset"], record["block"]))
        cell = next(one for one in ours["cells"] if one["id"] == record["id"])
        if found is None:
            cell |= {"outcome": "failed", "reason": "the reader was killed"}
        else:
            record["report"] = report_of(found)
            kept.append(benchmark)
    saved["benchmarks"] = kept
    return saved


def name_of(levels: Mapping[str, object]) -> str:
    """The workload's name with its parameters."""
    return "".join(["io_train", *(f":{key}={value}" for key, value in levels.items())])


def report_of(run: IoRun) -> dict[str, list[JSON]]:
    about = {
        "engine": run.engine,
        "engine_version": "2.15.0",
        "model": run.model,
        "processes": run.processes,
        "batch_size": run.batch_size,
        "read_threads": run.read_threads,
        "prefetch_factor": run.prefetch_factor,
        "computation_time_s": run.computation_time_s,
        "record_length_bytes": run.record_length_bytes,
        "dataset": dict(run.dataset),
        "excluded_start_steps": 1,
        "excluded_end_steps": 0,
    }
    return {"io": [about], "epochs": [_epoch(one) for one in run.epochs]}


def _epoch(one: Epoch) -> JSON:
    told = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(one).items()
    }
    renamed = {
        "epoch": told.pop("number"),
        "start_monotonic_s": told.pop("start_s"),
        "end_monotonic_s": told.pop("end_s"),
    }
    return renamed | {
        name: value
        for name, value in told.items()
        if value is not None and name not in {"block", "proc_s"}
    }
