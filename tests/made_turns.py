"""Saved runs of monitors that took turns with none inside processes, at a known cost.

Beside the steps of `made_switched`, each cell of a monitor reports `core` of a core while the
monitor worked, apart from a start of 0.1 CPU seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.made_switched import Switched, switched_run
from tests.synthetic import AGAIN, Arm

JSON = dict[str, Any]
START_CPU_S = 0.1


def turned_run(costs: Mapping[str, float], *, core: float = 0.003, **how: Any) -> JSON:
    """Make the JSON of a saved run; `costs` is each monitor's share of the workload's CPU time."""
    arms = (AGAIN, *(Arm(name, gain=1 / (1 + cost) - 1) for name, cost in costs.items()))
    made = Switched(
        **{
            "arms": arms,
            "processes": 6,
            "pairs": 32,
            "steps": 4,
            "settle": 1,
            "stalled": 0.0,
            "margin": 0.01,
            **how,
        }
    )
    saved = switched_run(made)
    ours = saved["deeptweak"]
    for study in ours["studies"].values():
        study |= {"primary": {"name": "cpu_s_per_step", "better": "lower"}, "monitors": list(costs)}
    for name in costs:
        ours["tweaksets"][name]["monitor"] = name
    for one in saved["benchmarks"]:
        _tell(one["extra_info"], core)
    return saved


def _tell(record: JSON, core: float) -> None:
    steps, name = record["steps"], record["tweakset"]
    wall_s, cpu_s = (sum(steps[column][steps["warmup"] :]) for column in ("wall_s", "cpu_s"))
    record["usage"] = {
        "wall_s": wall_s + 1.0,
        "cpu_s": cpu_s + 0.5,
        "steps_wall_s": wall_s,
        "steps_cpu_s": cpu_s,
        "peak_rss_bytes": 50 * 2**20,
        "written_bytes": 4096,
        "load_average_1min": 1.0,
        "energy_j": None,
        "missing": {"energy_j": "no RAPL counter is readable"},
    }
    numbers = ("cpu_s", "wall_s", "peak_rss_bytes", "written_bytes", "samples", "start_s", "stop_s")
    if name == AGAIN.name:
        gone = dict.fromkeys(("name", "base", "kind", "version", *numbers))
        record["monitor"] = {
            **gone,
            "params": {},
            "told": {},
            "missing": {"monitor": "no monitor in this arm"},
        }
        return
    base, _, rate = name.partition(":hz=")
    at_work_s, hz = wall_s / 2, float(rate or 10)
    record["monitor"] = {
        "name": name,
        "base": base,
        "kind": "beside",
        "params": {"hz": hz},
        "version": None,
        "cpu_s": START_CPU_S + core * at_work_s,
        "wall_s": wall_s + 0.2,
        "peak_rss_bytes": 18 * 2**20,
        "written_bytes": 20_000,
        "samples": round(hz * at_work_s),
        "start_s": 0.15,
        "stop_s": 0.05,
        "told": {"start_cpu_s": START_CPU_S, "stop_cpu_s": 0.0, "at_work_s": at_work_s},
        "missing": {"version": "the monitor does not say"},
    }
