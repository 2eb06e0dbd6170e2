"""torch.profiler inside a real training: a Chrome trace of every operator."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fixtures.monitors.catalogue.python import TRACE

ROOT = Path(__file__).parents[2]
STEPS = 3


def profiled(
    workload: str, monitor: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, gpu: bool = False
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Three steps of a workload as its target starts it.

    Returns: what the monitor told, and the events of its trace.
    """
    if gpu:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    options = (
        f"--steps={STEPS - 1}",
        "--warmup=1",
        "--seed=1",
        f"--scratch={folder}",
        f"--monitor={monitor}",
        f"--monitor-folder={folder}",
    )
    command = (sys.executable, "-m", f"fixtures.workloads.{workload}", *options)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (said,) = (
        one["value"]
        for one in map(json.loads, done.stdout.splitlines())
        if one["event"] == "monitor"
    )
    return said["told"], json.loads((folder / TRACE).read_text(errors="replace"))["traceEvents"]


@pytest.mark.needs("torch")
@pytest.mark.parametrize("switches", ["", ":record_shapes=on:with_stack=on"])
def test_every_operator_of_a_training_is_in_its_trace(
    switches: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two convolutions a step, and Adam; shapes and Python's calls where they were asked for.

    cnn_train has stand-ins where the compiler is, of which the profiler asks something.
    """
    told, events = profiled("cnn_train", f"torch_profiler{switches}", tmp_path, monkeypatch)
    spans = [one for one in events if one["ph"] == "X"]
    assert told == {"activities": ["CPU"], "events": len(spans)}
    names = Counter(one["name"] for one in spans)
    assert names["aten::conv2d"] == 2 * STEPS
    assert names["Optimizer.step#Adam.step"] == STEPS
    shapes = [
        one["args"]["Input Dims"][0]
        for one in spans
        if one["name"] == "aten::conv2d" and "Input Dims" in one["args"]
    ]
    assert shapes == ([[64, 1, 28, 28], [64, 32, 26, 26]] * STEPS if switches else [])
    assert any(one["cat"] == "python_function" for one in spans) is bool(switches)


@pytest.mark.needs("torch")
@pytest.mark.needs("gpu")
def test_kernels_of_a_gpu_are_in_its_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, events = profiled("cnn_train", "torch_profiler", tmp_path, monkeypatch, gpu=True)
    assert told["activities"] == ["CPU", "CUDA"]
    assert any(one.get("cat") == "kernel" for one in events)
