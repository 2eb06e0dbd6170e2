"""Saved runs of monitors with known overheads, made from a seed, for all of `tests/`.

CPU seconds per step are set: base · (1 + cost of the arm) · drift over the run · level of the
block · scatter of the cell. Wall time is that of one busy core. A monitor beside the workload takes
`core` of a core while the steps run, `start_cpu_s` before them and `stop_cpu_s` after; the use of
one inside counts as the workload's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_run


@dataclass(frozen=True)
class Monitor:
    """A monitor of a made-up run; `cost` 0.13 takes 13 % more CPU a step."""

    name: str
    kind: str = "inside"
    cost: float = 0.0
    core: float = 0.0
    params: Mapping[str, object] = field(default_factory=dict)
    memory_bytes: int = 20 * 2**20
    written_bytes: int = 100_000
    start_s: float = 0.1
    start_cpu_s: float = 0.0
    stop_s: float = 0.05
    stop_cpu_s: float = 0.0
    broken: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    says: Mapping[str, object] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The name without parameters."""
        return self.name.partition(":")[0]


THREADS = tuple(
    Monitor(
        f"psutil_thread:interval_s={each:g}" if each != 1 else "psutil_thread",
        cost=cost,
        params={"interval_s": each},
    )
    for each, cost in ((1.0, 0.001), (0.1, 0.015), (0.01, 0.13))
)
PROCESSES = tuple(
    Monitor(
        f"psutil_process:interval_s={each:g}" if each != 1 else "psutil_process",
        "beside",
        cost,
        core,
        params={"interval_s": each},
    )
    for each, cost, core in ((1.0, 0.0, 0.01), (0.01, 0.01, 0.15))
)
PLACEBO = Monitor("placebo")
PROFILE = Monitor("cprofile", cost=0.60, memory_bytes=2**20, stop_s=0.2)
SAMPLER = Monitor("sampler", "beside", core=0.003, params={"hz": 10.0})
PERF = Monitor(
    "perf_record", "beside", 0.004, 0.02, params={"hz": 99}, written_bytes=3_000_000, stop_s=0.4
)
MONITORS = (PLACEBO, *THREADS, PROFILE, *PROCESSES, SAMPLER, PERF)


@dataclass(frozen=True)
class MadeMonitoring:
    """Parameters of such a run.

    `again` is what none again costs; `tails`: degrees of freedom of Student's t for cells, None is
    Gaussian.

    `energy_w` is the power, None where no meter is readable.
    """

    monitors: Sequence[Monitor] = MONITORS
    workloads: Sequence[str] = ("python_loop",)
    blocks: int = 20
    base_s: float = 0.5
    steps: int = 10
    cell_sd: float = 0.004
    block_sd: float = 0.03
    drift: float = 0.0
    tails: int | None = None
    again: float = 0.0
    margin: float = 0.01
    energy_w: float | None = None
    seed: int = 1
    none: bool = True


def monitored_run(made: MadeMonitoring = MadeMonitoring()) -> JSON:
    rng = np.random.default_rng(made.seed)
    known = {one.name: one for one in made.monitors}
    stocks = (STOCK, AGAIN) if made.none else (STOCK,)
    arms = [*stocks, *(Arm(one.name, broken=one.broken) for one in made.monitors)]
    saved = saved_run(
        Made(
            arms=arms,
            workloads=made.workloads,
            blocks=made.blocks,
            steps=made.steps,
            warmup=1,
            margin=made.margin,
            seed=made.seed,
        )
    )
    ours = saved["deeptweak"]
    for study in ours["studies"].values():
        study |= {"primary": {"name": "cpu_s_per_step", "better": "lower"}, "monitors": list(known)}
        study["question"] = "What does watching cost?"
    for name in known:
        ours["tweaksets"][name]["monitor"] = name
    levels = rng.normal(0, made.block_sd, made.blocks + 1)
    width = len(arms) * len(made.workloads)
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        monitor = known.get(record["tweakset"])
        late = record["order"] / (width * made.blocks)
        cost = made.again if record["tweakset"] == AGAIN.name else monitor.cost if monitor else 0.0
        scatter = rng.normal() if made.tails is None else rng.standard_t(made.tails)
        log = np.log1p(cost) + levels[record["block"]] + made.drift * late + made.cell_sd * scatter
        _tell(record, monitor, made, made.base_s * float(np.exp(log)), rng)
    return saved


def _tell(
    record: JSON,
    monitor: Monitor | None,
    made: MadeMonitoring,
    step_s: float,
    rng: np.random.Generator,
) -> None:
    count = len(record["steps"]["wall_s"])
    cpu_s = step_s * np.exp(rng.normal(0, 1e-4, count))
    wall_s = cpu_s * np.exp(rng.normal(0.02, 0.01, count))
    record["steps"] |= {
        "cpu_s": cpu_s.tolist(),
        "wall_s": wall_s.tolist(),
        "start_monotonic_s": np.cumsum([0.0, *wall_s[:-1]]).tolist(),
    }
    record["metrics"] = {}
    steps_wall_s, steps_cpu_s = float(wall_s[1:].sum()), float(cpu_s[1:].sum())
    outside_s = 1.0 + ((monitor.start_s + monitor.stop_s) if monitor else 0.0)
    grown = monitor.memory_bytes if monitor and monitor.kind == "inside" else 0
    record["usage"] = {
        "wall_s": steps_wall_s + outside_s,
        "cpu_s": steps_cpu_s + 0.8 * float(np.exp(rng.normal(0, 0.002))),
        "steps_wall_s": steps_wall_s,
        "steps_cpu_s": steps_cpu_s,
        "peak_rss_bytes": 50 * 2**20 + grown,
        "written_bytes": 4096,
        "load_average_1min": 0.8 + 0.4 * float(rng.random()),
        "energy_j": None if made.energy_w is None else made.energy_w * steps_wall_s,
        "missing": {"energy_j": "no RAPL counter is readable"} if made.energy_w is None else {},
    }
    record["monitor"] = _monitor(monitor, steps_wall_s)


def _monitor(monitor: Monitor | None, wall_s: float) -> dict[str, Any]:
    if monitor is None:
        gone = (
            "name",
            "base",
            "kind",
            "version",
            "cpu_s",
            "wall_s",
            "peak_rss_bytes",
            "written_bytes",
            "samples",
            "start_s",
            "stop_s",
        )
        return {
            **dict.fromkeys(gone),
            "params": {},
            "told": {},
            "missing": {"monitor": "this arm has none"},
        }
    inside = monitor.kind == "inside"
    rate = next(
        (
            1 / float(str(value)) if name == "interval_s" else float(str(value))
            for name, value in monitor.params.items()
        ),
        None,
    )
    life_s = wall_s + monitor.start_s + monitor.stop_s
    missing = (
        {
            "cpu_s": "it is in the workload's process",
            "peak_rss_bytes": "it is in the workload's process",
        }
        if inside
        else {}
    )
    return {
        "name": monitor.name,
        "base": monitor.base,
        "kind": monitor.kind,
        "params": dict(monitor.params),
        "version": "1.0",
        "cpu_s": None
        if inside
        else monitor.core * wall_s + monitor.start_cpu_s + monitor.stop_cpu_s,
        "wall_s": life_s,
        "peak_rss_bytes": None if inside else monitor.memory_bytes,
        "written_bytes": monitor.written_bytes,
        "samples": None if rate is None else round(rate * wall_s),
        "start_s": monitor.start_s,
        "stop_s": monitor.stop_s,
        "told": {}
        if inside
        else {"start_cpu_s": monitor.start_cpu_s, "stop_cpu_s": monitor.stop_cpu_s},
        "missing": missing,
        **monitor.says,
    }
