"""Make saved runs as a real run writes them, with known effects, run effects, drift and failures.

Times are log-normal: a cell's level is base · drift · exp(run effect), its steps scatter around
that level. An arm with `gain` 0.05 does 1.05 times as much work in the same time. `tests/` may use
it anywhere; it imports nothing of the house.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

JSON = dict[str, Any]
# Of a run of seed 0: seeds follow each other in time.
START = datetime(2026, 1, 1, tzinfo=UTC) - timedelta(minutes=10)


@dataclass(frozen=True)
class Arm:
    """A tweak set of a made-up run.

    `odd` maps a block to the gain of a cell that went wrong there: -0.2 made it a fifth slower, for
    no reason of the tweak set's.
    """

    name: str
    gain: float = 0.0
    requested: Mapping[str, str] = field(default_factory=dict)
    kind: str = "sysctl"
    observed: Mapping[str, str] | None = None
    already_in_force: Sequence[str] = ()
    broken: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    odd: Mapping[int, float] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    scripts: int = 0
    side_effects: Mapping[str, Sequence[str | None]] = field(default_factory=dict)


STOCK = Arm("stock")
AGAIN = Arm("stock-again")


@dataclass(frozen=True)
class Made:
    """Parameters of a made-up run. `baseline` are the arms declared to be that together.

    `drift` 0.05 lets times go from 5 % below to 5 % above their level from first to last cell.
    """

    arms: Sequence[Arm] = (STOCK, AGAIN)
    workloads: Sequence[str] = ("cnn_train",)
    primaries: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    blocks: int = 6
    steps: int = 12
    warmup: int = 2
    base_s: float = 0.040
    run_cv: float = 0.01
    step_cv: float = 0.02
    drift: float = 0.0
    margin: float = 0.03
    seed: int = 1
    interleaved: bool = True
    baseline: Sequence[str] = ()


def saved_run(made: Made = Made()) -> JSON:
    rng = np.random.default_rng(made.seed)
    laid_out: list[tuple[int, str, Arm]] = []
    if made.interleaved:
        for block in range(1, made.blocks + 1):
            layer = [(block, workload, arm) for workload in made.workloads for arm in made.arms]
            laid_out += [layer[index] for index in rng.permutation(len(layer))]
    else:
        laid_out = [
            (block, workload, arm)
            for workload in made.workloads
            for arm in made.arms
            for block in range(1, made.blocks + 1)
        ]
    cells: list[JSON] = []
    benchmarks: list[JSON] = []
    for order, (block, workload, arm) in enumerate(laid_out):
        outcome, reason = arm.broken.get(block, ("measured", None))
        name = f"{workload}-{arm.name}-b{block}"
        cell = {
            "id": name,
            "study": "made_up",
            "workload": workload,
            "tweakset": arm.name,
            "block": block,
            "order": order,
        }
        cells.append(
            {
                **cell,
                "outcome": outcome,
                "reason": reason,
                "fullname": f"benchmarks/bench_made_up.py::bench[{name}]",
            }
        )
        if outcome == "measured":
            late = order / max(1, len(laid_out) - 1) * 2 - 1
            level_s = (
                made.base_s
                * (1 + made.drift * late)
                * float(np.exp(rng.normal(0, made.run_cv)))
                / (1 + arm.gain)
            )
            level_s /= 1 + arm.odd.get(block, 0.0)
            wall_s = (
                level_s * np.exp(rng.normal(0, made.step_cv, made.steps + made.warmup))
            ).tolist()
            benchmarks.append(_benchmark(cell, arm, wall_s, made))
    return {
        "machine_info": {
            "node": "made-up",
            "system": "Linux",
            "deeptweak": {"kernel_release": "6.18.0", "cpu_model": "Made-up CPU"},
        },
        "commit_info": {"id": "unversioned"},
        "benchmarks": benchmarks,
        "datetime": "2026-01-01T00:10:00+00:00",
        "version": "5.3.1",
        "deeptweak": _ours(made, cells),
    }


def saved_file(folder: Path, made: Made = Made(), name: str = "run.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(saved_run(made)), encoding="utf-8")
    return path


def in_turns(saved: JSON, slice_steps: int = 4) -> JSON:
    """Let a block's cells take turns in the order of the arms, in slices of `slice_steps`.

    A step follows the one before without a pause, whoever made it; blocks are a minute apart.
    """
    saved["deeptweak"]["design"]["kind"] = "turns"
    for workload in saved["deeptweak"]["workloads"].values():
        workload["primary"] = {"name": "step_time_round_adjusted_s", "better": "lower"}
    blocks: dict[tuple[str, int], list[JSON]] = {}
    for record in (benchmark["extra_info"] for benchmark in saved["benchmarks"]):
        blocks.setdefault((record["workload"], record["block"]), []).append(record)
    for (_, block), records in blocks.items():
        steps, clock_s = records[0]["steps"], 60.0 * block
        firsts = range(steps["warmup"], len(steps["wall_s"]), slice_steps)
        for record in records:
            record["turns"] = [
                {"round": at, "first": first, "steps": slice_steps}
                for at, first in enumerate(firsts, 1)
            ]
        for first in firsts:
            for steps in (record["steps"] for record in records):
                for at in range(first, first + slice_steps):
                    steps["start_monotonic_s"][at] = clock_s
                    clock_s += steps["wall_s"][at]
    return saved


def _ours(made: Made, cells: list[JSON]) -> JSON:
    return {
        "schema_version": 1,
        "run_id": f"made-up-{made.seed}",
        "started_utc": (START + timedelta(minutes=10 * made.seed)).isoformat(),
        "ended_utc": (START + timedelta(minutes=10 * made.seed + 10)).isoformat(),
        "interrupted": False,
        "studies": {
            "made_up": {
                "question": "Does a made-up tweak make made-up work faster?",
                "margin": made.margin,
                "blocks": made.blocks,
                "primary": {"name": "throughput_samples_per_s", "better": "higher"},
                **({"baseline": list(made.baseline)} if made.baseline else {}),
            }
        },
        "design": {
            "seed": made.seed,
            "blocks": made.blocks,
            "steps": made.steps,
            "order": [cell["id"] for cell in cells],
            "kind": "matrix",
            "factors": [],
            "points": {},
            "notes": {},
        },
        "workloads": {name: _workload(name, made) for name in made.workloads},
        "tweaksets": {arm.name: _tweakset(arm) for arm in made.arms},
        "cells": cells,
        "telemetry_file": None,
        "machine_check": {"changed": {}, "restored": True},
    }


def _workload(name: str, made: Made) -> JSON:
    workload: JSON = {"params": {"batch": 8}, "description": f"made-up {name}"}
    if name in made.primaries:
        metric, better = made.primaries[name]
        workload["primary"] = {"name": metric, "better": better}
    return workload


def _tweakset(arm: Arm) -> JSON:
    return {
        "path": f"data/tweaks/{arm.name}.yaml" if arm.requested else None,
        "sha256": "0" * 64 if arm.requested else None,
        "description": "",
        "requested": [
            {"kind": arm.kind, "key": key, "value": value, "package": "tuning"}
            for key, value in arm.requested.items()
        ],
        "scripts": [
            {"package": f"script-{at}", "stage": "apply", "sha256": "1" * 64}
            for at in range(arm.scripts)
        ],
        "warnings": list(arm.warnings),
    }


def _benchmark(cell: JSON, arm: Arm, wall_s: list[float], made: Made) -> JSON:
    count = len(wall_s)
    measured = wall_s[made.warmup :]
    # The block's seed gives every arm the same samples: that is what makes a block a pair.
    tokens = np.random.default_rng([made.seed, cell["block"]]).integers(64, 512, count).tolist()
    starts = np.cumsum([0.0, *wall_s[:-1]]).tolist()
    total_s = float(np.sum(measured))
    written = dict(arm.requested) if arm.kind == "sysctl" else {}
    params = {name: cell[name] for name in ("workload", "tweakset", "block")}
    record = {
        "schema_version": 1,
        **cell,
        "seed": made.seed * 1000 + cell["block"],
        "target": "local",
        "node": "made-up",
        "outcome": "measured",
        "reason": None,
        "started_utc": "2026-01-01T00:00:01+00:00",
        "duration_s": total_s + 1,
        "tweak": {
            "requested": written,
            "before": dict.fromkeys(written, "0"),
            "observed": dict(written if arm.observed is None else arm.observed),
            "restored": dict.fromkeys(written, "0"),
            "side_effects": dict(arm.side_effects),
            "already_in_force": list(arm.already_in_force),
            "apply_s": 0.002,
            "restore_s": 0.002,
        },
        "workload_facts": {
            "device": "cpu",
            "torch": "2.15.0",
            "threads": 2,
            "parameters": 1000,
            "data_crc32": f"{cell['block']:08x}",
        },
        "limits": {"memlock": [8388608, 8388608]},
        "steps": {
            "wall_s": wall_s,
            "cpu_s": [1.9 * value for value in wall_s],
            "samples": [8] * count,
            "tokens": tokens,
            "loss": [2.0] * count,
            "start_monotonic_s": starts,
            "warmup": made.warmup,
        },
        "telemetry": {
            "summary": {"cpu_busy_percent_mean": 97.0},
            "missing": {"nvml": "no NVIDIA driver"},
            "hz": 10.0,
            "samples": 20,
            "sampler_cpu_s": 0.01,
        },
        "environment": {
            "boot_id": "made-up",
            "uptime_s": 1000.0,
            "load_1min": 0.2,
            "uname_release": "6.18.0-made-up",
        },
        "metrics": {
            "throughput_samples_per_s": 8 * len(measured) / total_s,
            "throughput_tokens_per_s": sum(tokens[made.warmup :]) / total_s,
            "step_time_p10_s": float(np.quantile(measured, 0.1)),
            "step_time_median_s": float(np.median(measured)),
            "step_time_mean_s": total_s / len(measured),
            "cpu_s_per_step": 1.9 * total_s / len(measured),
        },
    }
    return {
        "group": cell["workload"],
        "name": f"bench[{cell['id']}]",
        "fullname": f"benchmarks/bench_made_up.py::bench[{cell['id']}]",
        "params": params,
        "param": None,
        "extra_info": record,
        "options": {},
        "stats": {
            "min": min(measured),
            "mean": total_s / len(measured),
            "rounds": len(measured),
            "data": measured,
        },
    }
