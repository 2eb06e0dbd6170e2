"""Saved runs under a power cap made from a seed, with known throughputs and violations.

An algorithm draws `level` times the cap once it has settled, scattered by `sd_w` of 130 from
reading to reading (ten a second), and `overshoot` more just after a change, of which each iteration
leaves a half. Its images/s are `rate` · the draw's part of the cap · the block's level · the cell's
scatter. Reports are those of `fixtures/studies/power/capped.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.synthetic import AGAIN, JSON, STOCK, Made, saved_run

SAMPLES_PER_S, MEASURED_S = 10, 3.0


@dataclass(frozen=True)
class Algorithm:
    """An arm.

    `foresight` is predicted ÷ true throughput, None where it predicts nothing; `broken` is why a
    block was not measured.

    `refused` and `lost` are sentences of every iteration; `infeasible` is told once, at its end.
    """

    name: str
    rate: float = 1000.0
    level: float = 0.97
    sd_w: float = 1.0
    overshoot: float = 0.3
    shadow: bool = False
    foresight: float | None = 1.0
    broken: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    refused: Sequence[str] = ()
    lost: Sequence[str] = ()
    infeasible: str = ""


STEADY = Algorithm("steady", 1050.0, 0.96, foresight=1.03)
MORAK = Algorithm("morak", 1000.0, 1.01, 3.0, foresight=None)
POWERCAP = Algorithm("powercap", 900.0, 0.98, foresight=None)
PCTODL = Algorithm("pctodl", 1040.0, 1.0, 2.0)
ALGORITHMS = (STEADY, MORAK, POWERCAP, PCTODL)


@dataclass(frozen=True)
class MadeCapped:
    """Parameters of such a run.

    `tasks` has the caps of each: (from this iteration on, cap). `again`: every arm has its copy.
    """

    tasks: Mapping[int, Sequence[tuple[int, float]]] = field(
        default_factory=lambda: {6: ((0, 130.0),), 13: ((0, 170.0),)}
    )
    algorithms: Sequence[Algorithm] = ALGORITHMS
    backends: Sequence[str] = ("replay",)
    unit: str = "W"
    power_source: str = "simulated"
    slo_ms: float | None = 100.0
    blocks: int = 8
    iterations: int = 20
    block_sd: float = 0.02
    cell_sd: float = 0.003
    again: bool = True
    alike: bool = False
    margin: float = 0.03
    seed: int = 1


def capped_run(made: MadeCapped = MadeCapped()) -> JSON:
    """Make the JSON of one saved run."""
    rng = np.random.default_rng(made.seed)
    arms = {
        _name(task, one, backend): (task, one, backend)
        for task in made.tasks
        for one in made.algorithms
        for backend in made.backends
    }
    stocks = (STOCK, AGAIN) if made.again else (STOCK,)
    saved = saved_run(
        Made(
            arms=stocks,
            workloads=list(arms),
            blocks=made.blocks,
            steps=made.iterations,
            warmup=0,
            margin=made.margin,
            seed=made.seed,
        )
    )
    ours = saved["deeptweak"]
    for study in ours["studies"].values():
        study["question"] = "Who holds the cap, and what is got out of it?"
    for name, (task, one, backend) in arms.items():
        shadow = "on" if one.shadow else "off"
        ours["workloads"][name]["params"] = {
            "task": str(task),
            "algorithm": one.name,
            "backend": backend,
            "shadow": shadow,
            "margin": "0",
        }
    levels = rng.normal(0, made.block_sd, made.blocks + 1)
    kept = []
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        task, one, backend = arms[record["workload"]]
        if record["block"] in one.broken:
            outcome, reason = one.broken[record["block"]]
            next(cell for cell in ours["cells"] if cell["id"] == record["id"]).update(
                outcome=outcome, reason=reason
            )
            continue
        scatter = 0.0 if made.alike else made.cell_sd * float(rng.normal())
        told = np.random.default_rng([made.seed, record["block"]]) if made.alike else rng
        _tell(record, made, (task, one, backend), float(levels[record["block"]]) + scatter, told)
        kept.append(benchmark)
    saved["benchmarks"] = kept
    return saved


def _name(task: int, one: Algorithm, backend: str) -> str:
    return (
        f"capped_inference:task={task}:algorithm={one.name}"
        f":backend={backend}{':shadow=on' if one.shadow else ''}"
    )


def _tell(
    record: JSON,
    made: MadeCapped,
    what: tuple[int, Algorithm, str],
    log: float,
    rng: np.random.Generator,
) -> None:
    task, one, backend = what
    rows = [_row(number, made, what, log, rng) for number in range(made.iterations)]
    walls = [row["measured_s"] + 1e-6 * float(rng.random()) for row in rows]
    record["steps"] |= {
        "wall_s": walls,
        "cpu_s": [0.0] * len(rows),
        "samples": [round(sum(each["images"] for each in row["tenants"])) for row in rows],
        "tokens": [0] * len(rows),
        "loss": [2.0] * len(rows),
        "start_monotonic_s": np.cumsum([0.0, *walls[:-1]]).tolist(),
        "warmup": 0,
    }
    record["metrics"] = {}
    record["workload_facts"] = {"backend": backend}
    facts = {
        "task": task,
        "gpu": "3080Ti",
        "gpu_of_parameters": "3080Ti",
        "model": "resnet50",
        "dataset": "imagenet",
    }
    facts |= {
        "caps": [list(cap) for cap in made.tasks[task]],
        "cap_unit": made.unit,
        "slo_ms": made.slo_ms,
        "backend": backend,
    }
    record["report"] = {
        "iteration": rows,
        "task": [{**facts, "algorithm": one.name, "shadow": one.shadow, "knobs": {}}],
    }
    if one.infeasible:
        record["report"]["infeasible"] = [
            {"iteration": 5, "cap": 60.0, "sentence": one.infeasible, "smallest_cap": 68.2}
        ]


def _row(
    number: int,
    made: MadeCapped,
    what: tuple[int, Algorithm, str],
    log: float,
    rng: np.random.Generator,
) -> dict[str, Any]:
    task, one, backend = what
    since, cap = max((begins, cap) for begins, cap in made.tasks[task] if begins <= number)
    level = one.level + one.overshoot * 0.5 ** (number - since)
    draw = cap * level + one.sd_w * cap / 130 * rng.normal(0, 1, round(SAMPLES_PER_S * MEASURED_S))
    sensed = made.power_source != "none" or made.unit != "W"
    rate = one.rate * level * math.exp(log) * cap / 130
    clock = 15.0 * round((800 + 600 * level) / 15)
    setting = {
        "tenants": [{"share_percent": 50.0, "batch": 16}] * 2,
        "sm_mhz": clock,
        "mem_mhz": 5001.0,
        "power_limit_w": None,
        "throttle": None,
    }
    latency_ms = 1000 * 16 / (rate / 2)
    tenant = {
        "images": rate / 2 * MEASURED_S,
        "latency_p50_ms": latency_ms,
        "latency_p95_ms": 1.2 * latency_ms,
        "latency_p99_ms": 1.3 * latency_ms,
        "latency_mean_ms": latency_ms,
        "over_slo_share": None if made.slo_ms is None else float(latency_ms > made.slo_ms),
    }
    predicted = (
        None
        if one.foresight is None
        else {"throughput_images_per_s": rate * one.foresight, "power_w": float(draw.max())}
    )
    return {
        "iteration": number,
        "t_s": 4.0 * number,
        "cap": cap,
        "cap_unit": made.unit,
        "cap_source": "schedule",
        "power_source": made.power_source,
        "backend": backend,
        "asked": setting,
        "actual": setting,
        "refused": list(one.refused),
        "throughput_images_per_s": rate,
        **(_sensed(draw, cap) if sensed else dict.fromkeys(_sensed(draw, cap))),
        "energy_j": float(draw.mean()) * MEASURED_S if sensed and made.unit == "W" else None,
        "measured_s": MEASURED_S,
        "cpu_s_per_s": None,
        "sm_util_percent": 90.0,
        "mem_util_percent": 60.0,
        "throttled_percent": None,
        "tenants": [tenant, tenant],
        "oom": list(one.lost),
        "crashed": [],
        "decision_s": 0.01,
        "why": "made up",
        "predicted": predicted,
    }


def _sensed(draw: np.ndarray, cap: float) -> dict[str, float]:
    """The excess over the cap; a reading stands for its tenth of a second."""
    over = np.maximum(0.0, draw - cap)
    longest = run = 0
    for above in over > 0:
        run = run + 1 if above else 0
        longest = max(longest, run)
    each_s = 1 / SAMPLES_PER_S
    return {
        "power_mean": float(draw.mean()),
        "power_max": float(draw.max()),
        "above_cap_s": each_s * int((over > 0).sum()),
        "above_cap_unit_s": each_s * float(over.sum()),
        "above_cap_longest_s": each_s * longest,
        "above_cap_worst": float(over.max()),
        "above_102_s": each_s * int((draw > 1.02 * cap).sum()),
    }
