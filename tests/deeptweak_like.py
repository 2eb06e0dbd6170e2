"""Make directories like DeepTweak's from a seed: its columns, habits and traps, none of its data.

A step takes as long as its sample's sequence does: about 25 narrow modes below a hard ceiling
(samples cut to the longest length). A run effect and a drift of the requested sizes come on top.
Nothing of the house is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

MODES, CEILING_S = 25, 2.2
GPU_BYTES = 16 * 2**30
HEADER = (
    "step,time_elapsed,step_time,tokens_per_sec,samples_per_sec,loss,learning_rate,batch_size,"
    "grad_norm,total_params,trainable_params,param_ratio,cpu_percent,mem_used,mem_available,"
    "swap_used,mem_percent,disk_read_MB,disk_write_MB,net_sent_KB,net_recv_KB,fd_count,gpu_util,"
    "gpu_mem_used,gpu_mem_total,gpu_power_W,gpu_temp_C,gpu_clock_MHz,gpu_mem_clock_MHz,gpu_mem_util"
)
NO_TWEAKS = "# No OS Tweaks applied"
SYSCTLS = """\
apiVersion: v1
kind: List
items:
- apiVersion: skyhook.nvidia.com/v1alpha1
  kind: Skyhook
  metadata:
    name: demo
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"spec":{"packages":{"tuning":{"configMap":{"ulimit.conf":"memlock: 128"},\
"image":"ghcr.io/x/tuning"}}}}
  spec:
    packages:
      tuning:
        version: 1.1.2
        image: ghcr.io/nvidia/skyhook-packages/tuning
        interrupt: {type: reboot}
        configMap:
          grub.conf: |-
            hugepagesz=1G hugepages=2
            hugepagesz=2M
            hugepages=64
          sysctl.conf: |-
            vm.swappiness = 10
            net.ipv4.tcp_rmem = 4096 87380 134217728
  status: {completeNodes: 1/1}
"""
SCRIPTS = """\
# Hand-written, für einen Knoten
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: gpu-opt}
spec:
  packages:
    tuning:
      image: ghcr.io/nvidia/skyhook-packages/tuning
      configMap:
        grub.conf: |-

        ulimit.conf: 'memlock: 128'
        service_containerd.conf: "[Service]\\nLimitSTACK=67108864"
    clocks:
      image: ghcr.io/nvidia/skyhook-packages/shellscript:1.1.0
      configMap: {apply.sh: nvidia-smi -pm 1, apply_check.sh: nvidia-smi -q}
"""


@dataclass(frozen=True)
class Like:
    """One configuration."""

    name: str
    steps: int = 60
    manifest: str | None = NO_TWEAKS
    run_effect: float = 0.0
    drift: float = 0.0
    batch: int = 1
    several_gpus: bool = False
    seed: int = 1
    without: Sequence[str] = ()
    empty: Sequence[str] = ()
    written_mib: float = 300.0
    cells: Mapping[tuple[int, str], str] = field(default_factory=dict)


def step_times(made: Like) -> list[float]:
    """Wall seconds of each step, to the millisecond as the logger rounds them."""
    rng = np.random.default_rng([made.seed, *made.name.encode()])
    modes_s = np.geomspace(0.39, 1.6, MODES)
    weights = np.linspace(3, 1, MODES)
    seconds = rng.choice(modes_s, made.steps, p=weights / weights.sum()) * np.exp(
        rng.normal(0, 0.004, made.steps)
    )
    seconds[rng.random(made.steps) < 0.013] = CEILING_S
    seconds *= (1 + made.run_effect) * (1 + made.drift * np.linspace(0, 1, made.steps))
    return [round(float(value), 3) for value in seconds]


def table(made: Like, first_step: int = 1) -> str:
    """Write one `benchmark.csv` without a final newline, as the logger may be stopped."""
    rng = np.random.default_rng([made.seed + 1, *made.name.encode()])
    wall_s = step_times(made)
    clock_s = 5.0 + np.cumsum(wall_s)
    lines = [[name for name in HEADER.split(",") if name not in made.without]]
    for at, seconds in enumerate(wall_s):
        step = first_step + at
        # The trainer logs every 20 steps here, and a row shows what was logged before it.
        logged = (step - 1) // 20 * 20
        used = 4.7e9 if not made.several_gpus else 3.6e9
        row = {
            "step": step,
            "time_elapsed": round(float(clock_s[at]), 2),
            "step_time": seconds,
            "tokens_per_sec": 0.0,
            "samples_per_sec": round(made.batch / seconds, 4),
            "loss": "" if not logged else round(2.2 - logged / 1000, 4),
            "learning_rate": "" if not logged else 5e-5 * (1 - logged / 3000),
            "batch_size": made.batch,
            "grad_norm": "" if not logged else 0.4,
            "total_params": 2_000_000,
            "trainable_params": 4_000,
            "param_ratio": 0.2,
            "cpu_percent": round(float(rng.normal(10, 1)), 1),
            "mem_used": 3_900_000_000 + int(rng.integers(0, 4096)) * 4096,
            "mem_available": 230_000_000_000,
            "swap_used": 0,
            "mem_percent": 2.5,
            "disk_read_MB": 2543.14,
            "disk_write_MB": round(made.written_mib + 0.1 * at, 2),
            "net_sent_KB": 0.0,
            "net_recv_KB": 0.0,
            "fd_count": 49,
            "gpu_util": float(rng.integers(80, 101)),
            "gpu_mem_used": used,
            "gpu_mem_total": float(GPU_BYTES),
            "gpu_power_W": "" if made.several_gpus else round(float(rng.normal(60, 4)), 1),
            "gpu_temp_C": 50.0,
            "gpu_clock_MHz": "" if made.several_gpus else 1380.0,
            "gpu_mem_clock_MHz": "" if made.several_gpus else 877.0,
            "gpu_mem_util": round(100 * used / GPU_BYTES, 1)
            if made.several_gpus
            else float(rng.integers(40, 60)),
        }
        row |= dict.fromkeys(made.empty, "")
        lines.append([made.cells.get((step, name), str(row[name])) for name in lines[0]])
    return "\n".join(",".join(line) for line in lines)


def directory(folder: Path, *configurations: Like) -> Path:
    """Write a node type's folder, with the configurations below it."""
    for made in configurations:
        place = folder / made.name
        place.mkdir(parents=True, exist_ok=True)
        (place / "benchmark.csv").write_text(table(made), encoding="utf-8")
        if made.manifest is not None:
            (place / "skyhook.yaml").write_text(made.manifest, encoding="utf-8")
    return folder
