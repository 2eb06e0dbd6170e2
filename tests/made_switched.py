"""Saved runs from a seed, with a known truth and settings alternated inside processes.

A step takes base · work of its batch · drift · exp(noise), where the noise of neighbouring steps is
correlated and some steps stall. The tweak set makes it faster by `gain`, with a standard deviation
of `gain_sd` between processes; 63 % of a switch act after `memory` steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

JSON = dict[str, Any]


@dataclass(frozen=True)
class Switched:
    """Parameters of such a run; every arm beside stock-again has its own processes."""

    arms: Sequence[Arm] = field(default=(AGAIN,))
    processes: int = 2
    pairs: int = 16
    steps: int = 8
    settle: int = 2
    warmup: int = 2
    base_s: float = 0.04
    step_cv: float = 0.03
    neighbours: float = 0.5
    drift: float = 0.1
    stalled: float = 0.01
    gain_sd: float = 0.0
    memory: float = 0.0
    margin: float = 0.03
    seed: int = 1


def switched_run(made: Switched = Switched()) -> JSON:
    rng = np.random.default_rng(made.seed)
    total = 2 * made.pairs * (made.settle + made.steps)
    gains = {arm.name: arm.gain for arm in made.arms}
    saved = saved_run(
        Made(
            arms=made.arms,
            blocks=made.processes,
            steps=total,
            warmup=made.warmup,
            margin=made.margin,
            seed=made.seed,
            run_cv=0.02,
        )
    )
    stock = saved_run(Made(arms=(STOCK,), blocks=1))["deeptweak"]["tweaksets"]
    ours = saved["deeptweak"]
    ours["tweaksets"] = stock | ours["tweaksets"]
    ours["design"] |= {"kind": "switch", "steps": made.steps}
    for one in saved["benchmarks"]:
        record = one["extra_info"]
        _alternate(record, made, gains[record["tweakset"]], rng)
    return saved


def _alternate(record: JSON, made: Switched, gain: float, rng: np.random.Generator) -> None:
    each = made.settle + made.steps
    first = rng.permutation([0, 1] * (made.pairs // 2) + [0] * (made.pairs % 2))
    arms = [arm for one in first for arm in (one, 1 - one)]
    count = made.warmup + len(arms) * each
    noise = rng.normal(0, made.step_cv, count)
    for at in range(1, count):
        noise[at] = made.neighbours * noise[at - 1] + math.sqrt(1 - made.neighbours**2) * noise[at]
    batches = np.random.default_rng([made.seed, record["block"]])
    work = [batches.integers(64, 512, each) for _ in range(made.pairs)]
    tokens = np.concatenate(
        [batches.integers(64, 512, made.warmup), *(work[n // 2] for n in range(len(arms)))]
    )
    log_gain = math.log1p(gain) + rng.normal(0, made.gain_sd) if made.gain_sd else math.log1p(gain)
    in_force, acting = (
        np.concatenate([np.full(made.warmup, arms[0]), np.repeat(arms, each)]),
        np.zeros(count),
    )
    acting[0] = in_force[0]
    for at in range(1, count):
        new = 1.0 if made.memory == 0 else 1 - math.exp(-1 / made.memory)
        acting[at] = acting[at - 1] + new * (in_force[at] - acting[at - 1])
    drift = 1 + made.drift * np.linspace(-1, 1, count)
    wall_s = made.base_s * (0.5 + tokens / 512) * drift * np.exp(noise - log_gain * acting)
    wall_s[rng.random(count) < made.stalled] *= 10
    segments = [
        {
            "pair": n // 2 + 1,
            "arm": ("found", "set")[arm],
            "first": made.warmup + n * each,
            "settle": made.settle,
            "steps": made.steps,
        }
        for n, arm in enumerate(arms)
    ]
    record["segments"] = segments
    record["steps"] |= {
        "wall_s": wall_s.tolist(),
        "cpu_s": (1.9 * wall_s).tolist(),
        "samples": [8] * count,
        "tokens": tokens.tolist(),
        "loss": [2.0] * count,
        "start_monotonic_s": np.cumsum([0.0, *wall_s[:-1]]).tolist(),
    }
    record["metrics"] = {}
