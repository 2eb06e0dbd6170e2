"""The real kernel on a real GPU; skipped where there is none, and so far nowhere else."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.stand_in import HOUSE

pytestmark = [pytest.mark.needs("gpu", "nvrtc"), pytest.mark.slow]
ROUNDING = 0.002


@pytest.mark.parametrize(
    ("blocks", "threads"), [(1, 1), (1, 1024), (64, 32), (4096, 256), (131072, 1024)]
)
def test_the_metrics_of_a_kernel_keep_to_what_its_size_allows(
    blocks: int, threads: int, tmp_path: Path
) -> None:
    """That every thread squared its own element is checked before anything is measured.

    0 ≤ SMOCC ≤ SMACT ≤ GRACT ≤ 1, SMACT ≤ b / SMs.
    """
    size = ["--params", json.dumps({"blocks": blocks, "threads": threads})]
    command = [
        sys.executable,
        "-m",
        "fixtures.workloads.gpu_grid",
        "--steps=4",
        "--warmup=2",
        "--seed=1",
        f"--scratch={tmp_path}",
        *size,
    ]
    done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    told: dict[str, Any] = {one["name"]: one["value"] for one in events if one["event"] == "report"}
    work, samples = told["gpu_metrics"], told["samples"]
    assert 0 < work["duty"] <= 1
    assert work["launches"] > 0
    assert all(
        0 <= percent <= 100 for percent in samples["utilization_percent"] if percent is not None
    )
    warps = min(math.ceil(threads / 32), work["max_warps_per_sm"])
    for gract, smact, smocc in zip(
        samples["gract"], samples["smact"], samples["smocc"], strict=True
    ):
        if None in {gract, smact, smocc}:
            continue
        assert -ROUNDING <= smocc <= smact + ROUNDING
        assert smact <= gract + ROUNDING <= 1 + 2 * ROUNDING
        assert smact <= min(blocks, work["sms"]) / work["sms"] + ROUNDING
        assert smocc <= blocks * warps / work["sms"] / work["max_warps_per_sm"] + ROUNDING
    assert work["missing"] or samples["smact"]
