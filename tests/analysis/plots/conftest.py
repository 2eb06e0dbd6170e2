"""One synthetic run and all its pictures, drawn once for this folder because drawing is slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.load import load
from analysis.plots import fitting
from analysis.plots.scene import Scene, scene_of
from tests.made_telemetry import sampled_file
from tests.synthetic import AGAIN, STOCK, Arm, Made

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TCP = Arm("tcp-cubic", gain=0.10, requested={"net.ipv4.tcp_congestion_control": "cubic"})
BUNDLE = Arm(
    "bundle",
    gain=-0.08,
    requested={"vm.swappiness": "1", "vm.dirty_ratio": "8"},
    broken={2: ("failed", "out of memory")},
)
SCRIPT = Arm(
    "script",
    scripts=1,
    side_effects={"/sys/kernel/mm/thp/enabled": ["madvise", "always"], "/sys/gone": ["1", None]},
)
WRONG = Arm("not-in-force", requested={"vm.swappiness": "7"}, observed={"vm.swappiness": "60"})
MADE = Made(
    arms=(STOCK, AGAIN, TCP, BUNDLE, SCRIPT, WRONG),
    workloads=("cnn_train", "lora_finetune"),
    primaries={"lora_finetune": ("step_time_p10_s", "lower")},
    blocks=5,
    steps=10,
    warmup=2,
    seed=3,
)
NAME = "a-very-long-name-of-a-tweak-set-that-nobody-would-choose-but-somebody-will"


@pytest.fixture(scope="package")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Two workloads, six tweak sets, five blocks, two 60 W GPUs; a failed cell, a set not held."""
    return scene_of(
        [load(sampled_file(tmp_path_factory.mktemp("made"), MADE, gpus=2, power_w=60.0))]
    )


@pytest.fixture(scope="package")
def drawings(scene: Scene) -> dict[str, Figure]:
    """Every picture of that run; those of designs over keys have their own tests."""
    return {name: module.draw(scene) for name, module in fitting(scene.runs).items()}


@pytest.fixture(scope="package")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """24 tweak sets and a workload with names too long to print, some alike when cut, and a $."""
    arms = [
        Arm(f"{NAME}-{at}", gain=at / 100, requested={f"vm.{NAME}.{at % 5}": "$1 134217728 4096"})
        for at in range(22)
    ]
    made = Made(
        arms=(STOCK, AGAIN, *arms), workloads=(NAME * 2,), blocks=4, steps=4, warmup=1, seed=4
    )
    return scene_of([load(sampled_file(tmp_path_factory.mktemp("crowded"), made))])
