"""Contract over all workloads: real frameworks, three steps, on the CPU."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fixtures import workloads
from fixtures.targets._process import run
from fixtures.terms import Order, WorkloadRun
from fixtures.workloads import load
from tests.waiting import alive, children, until

pytestmark = pytest.mark.needs("torch")


# Steps of these are spans of time with an unknown amount of work: tests/power.
STRETCHES = ("capped_inference", "power_profile")
# One that reads a data set is tried on small ones: test_io_train.py. What runs on a GPU alone is
# tried in tests/gpu, jobs in tests/jobs.
ELSEWHERE = {"gpu_grid", "job_stream", *STRETCHES}
ALONE = [
    name
    for name in workloads.names()
    if not workloads.of(name).reads_data and name not in ELSEWHERE
]
# All but the one that only waits, which the harness uses to measure itself, and the one that only
# prepares samples.
TRAINING = [name for name in ALONE if name not in {"idle", "python_loop"}]


@pytest.fixture(autouse=True, scope="module")
def on_the_cpu() -> Iterator[None]:
    """Only there is every sum of a step taken in the same order twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        yield


@cache
def seeds_5_5_6(name: str) -> tuple[WorkloadRun, WorkloadRun, WorkloadRun]:
    """Run 1 warm-up and 3 steps (checkpoint_train writes once) with the seeds 5, 5 and 6."""
    if why := workloads.of(name).unavailable_reason():
        pytest.skip(why)
    with tempfile.TemporaryDirectory() as scratch:
        first, again, other = (
            run(Order(load(name), steps=3, warmup_steps=1, seed=seed, scratch=Path(scratch)))
            for seed in (5, 5, 6)
        )
        assert list(Path(scratch).iterdir()) == [], "what a workload wrote it takes away again"
    return first, again, other


@pytest.mark.parametrize("name", ALONE)
def test_every_workload_runs_the_samples_its_seed_names(name: str) -> None:
    """The plug-in contract: samples follow from the seed in every process, and differ by seed."""
    first, again, other = seeds_5_5_6(name)
    for result in (first, again, other):
        assert result.error is None, result.last_lines
        assert [step.warmup for step in result.steps] == [True, False, False, False]
    assert first.facts["data_crc32"] == again.facts["data_crc32"] != other.facts["data_crc32"]
    assert [(s.samples, s.tokens, s.loss) for s in first.steps] == [
        (s.samples, s.tokens, s.loss) for s in again.steps
    ]
    assert first.facts["seed"] == 5
    assert "device" in first.facts


@pytest.mark.parametrize("name", TRAINING)
def test_a_training_workload_trains(name: str) -> None:
    """Its loss depends on the seed and changes per step; its facts give its kind of computing."""
    first, _, other = seeds_5_5_6(name)
    assert first.facts["device"] == "cpu"
    assert {
        "torch",
        "threads",
        "parameters",
        "trainable_parameters",
        "dtype",
        "cpu_s_covers",
    } <= set(first.facts)
    assert "gpu_uuids" not in first.facts
    assert all(step.cpu_s > 0 for step in first.steps)
    losses = {step.loss for step in first.steps}
    assert len(losses) == 4
    assert not losses & {step.loss for step in other.steps}


@pytest.mark.parametrize("name", TRAINING)
def test_a_training_workload_names_its_batch(name: str) -> None:
    assert {step.samples for step in seeds_5_5_6(name)[0].steps} == {
        workloads.load(name).params["batch_size"]
    }


def test_24_steps_of_lora_finetune_are_one_shuffled_deck(tmp_path: Path) -> None:
    result = run(Order(load("lora_finetune"), steps=24, warmup_steps=1, seed=1, scratch=tmp_path))
    tokens = [step.tokens for step in result.steps[1:]]
    # 9 steps of 32 tokens, 6 of 48, 4 of 64, 2 of 96, 2 of 128, 1 of 192, in batches of 4.
    deck = [128] * 9 + [192] * 6 + [256] * 4 + [384] * 2 + [512] * 2 + [768]
    assert sorted(tokens) == deck
    assert tokens != deck


@pytest.mark.parametrize("victim", ["first", "second"])
def test_no_rank_outlives_the_other(victim: str, tmp_path: Path) -> None:
    options = ("--steps=1000", "--warmup=1", "--seed=1", f"--scratch={tmp_path}")
    process = subprocess.Popen(
        (sys.executable, "-m", "fixtures.workloads.ddp_train", *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with process:
        assert process.stdout is not None
        assert b"ready" in process.stdout.readline()
        (second,) = children(process.pid)
        os.kill(process.pid if victim == "first" else second, signal.SIGKILL)
        process.stdout.read()
    assert process.returncode == (-signal.SIGKILL if victim == "first" else 1)
    until(lambda: not alive(second))


@pytest.mark.needs("gpu")
def test_a_workload_names_the_gpus_it_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    result = run(Order(load("cnn_train"), steps=1, warmup_steps=1, seed=1, scratch=tmp_path))
    assert result.error is None, result.last_lines
    assert result.facts["gpu_uuids"] == re.findall(r"UUID: (GPU-[0-9a-f-]+)", listed)
