"""Run gpu_grid as a process on a stand-in GPU (stand_in.py): protocol, report, CUDA's refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fixtures.studies.gpu.workloads import gpu_grid
from tests.gpu.stand_in import HOUSE, built, environment

pytestmark = pytest.mark.needs("cc", "nvrtc")

UUID = "GPU-00000000-0000-0000-0000-000000000000"
SHARES = {"gract": 0.9, "smact": 0.455, "smocc": 0.2025, "tensor": 0.0, "dram": 0.01125}


@dataclass(frozen=True)
class Ran:
    """A process that has ended: its lines of the protocol, by event."""

    code: int
    events: list[dict[str, Any]]

    def all(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["event"] == event]

    def report(self, name: str) -> dict[str, Any]:
        (told,) = (one["value"] for one in self.all("report") if one["name"] == name)
        assert isinstance(told, dict)
        return told

    @property
    def why(self) -> str:
        (refused,) = self.all("refused")
        return str(refused["why"])


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def run(both: Path, tmp_path: Path) -> Callable[..., Ran]:
    """Run it for one warm-up step and two that count."""

    def ran(*, segments: bool = False, **settings: object) -> Ran:
        options = [
            "--steps=2",
            "--warmup=1",
            "--seed=7",
            f"--scratch={tmp_path}",
            '--params={"blocks": 132, "threads": 1024}',
        ]
        options += ["--segments=1"] if segments else []
        command = [sys.executable, "-m", "fixtures.workloads.gpu_grid", *options]
        around = environment(both, **settings)
        done = subprocess.run(
            command,
            cwd=HOUSE,
            env=around,
            input="\n" * 9,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return Ran(done.returncode, [json.loads(line) for line in done.stdout.splitlines()])

    return ran


def test_it_tells_what_it_ran_and_what_was_sampled_meanwhile(run: Callable[..., Ran]) -> None:
    """132 SMs, 2048 threads each: 64 warps.

    132 blocks of 1024 threads are one wave on this stand-in, 2 ns a squaring.
    """
    ran = run()
    assert ran.code == 0
    (ready,) = ran.all("ready")
    assert ready["facts"]["gpu_uuids"] == [UUID]
    assert ready["facts"]["architecture"] == "sm_90"
    assert ready["facts"]["allocated_bytes"] == 4 * 132 * 1024
    steps = ran.all("step")
    assert [step["warmup"] for step in steps] == [True, False, False]

    told = ran.report("gpu_metrics")
    launches = 2 * ready["facts"]["launches_per_step"]
    assert {
        name: told.pop(name)
        for name in ("sms", "max_warps_per_sm", "device", "launches", "source", "missing")
    } == {
        "sms": 132,
        "max_warps_per_sm": 64,
        "device": "Stand-in GPU 0",
        "launches": launches,
        "source": "gpm",
        "missing": {},
    }
    assert set(told) == {"duty", "kernel_s", "launch_interval_s"}
    assert told["kernel_s"] >= gpu_grid.KERNEL_S
    assert told["kernel_s"] >= 2e-9 * ready["facts"]["squarings"]
    assert told["duty"] == pytest.approx(min(1.0, told["kernel_s"] / told["launch_interval_s"]))

    samples = ran.report("samples")
    assert set(samples) == {"t_monotonic_s", "utilization_percent", *SHARES}
    times = samples["t_monotonic_s"]
    first, last = steps[1]["start_monotonic_s"], steps[2]["start_monotonic_s"] + steps[2]["wall_s"]
    assert times == sorted(times)
    assert all(first < at <= last for at in times)
    assert set(samples["utilization_percent"]) == {50.0}
    assert {name: set(samples[name]) for name in SHARES} == {
        name: {value} for name, value in SHARES.items()
    }


def test_segments_are_told_once_and_whole(run: Callable[..., Ran]) -> None:
    """Two segments go through one batch each: the batches' numbers come twice, the report once."""
    ran = run(segments=True)
    assert ran.code == 0
    assert (
        ran.report("gpu_metrics")["launches"]
        == 2 * ran.all("ready")[0]["facts"]["launches_per_step"]
    )


def test_a_gpu_before_gpm_has_utilisation_alone_and_says_why(run: Callable[..., Ran]) -> None:
    ran = run(FAKE_NVML_GPM=0)
    told, samples = ran.report("gpu_metrics"), ran.report("samples")
    assert told["source"] == "nvml"
    assert told["missing"] == dict.fromkeys(SHARES, "this GPU has no GPM, which came with Hopper")
    assert set(samples["utilization_percent"]) == {50.0}
    assert all(set(samples[name]) == {None} for name in SHARES)


def test_without_nvml_the_kernel_runs_and_nothing_is_sampled(run: Callable[..., Ran]) -> None:
    ran = run(FAKE_NVML_INIT=9)
    told, samples = ran.report("gpu_metrics"), ran.report("samples")
    assert told["missing"] == dict.fromkeys(
        ("utilization_percent", *SHARES), f"{UUID}: NVML: Driver Not Loaded"
    )
    assert samples == {name: [] for name in ("t_monotonic_s", "utilization_percent", *SHARES)}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"FAKE_CUDA_GPUS": 0}, "CUDA: cuDeviceGet: "),
        (
            {"FAKE_CUDA_FAIL": "cuInit"},
            "CUDA: cuInit: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)",
        ),
        ({"FAKE_CUDA_FAIL": "cuLaunchKernel"}, "CUDA: cuLaunchKernel: an illegal memory access"),
        ({"FAKE_CUDA_MAJOR": 2}, "kernel.cu does not compile for sm_20"),
        (
            {"FAKE_CUDA_MEMORY": 1000},
            (
                "132 blocks of 1024 threads need 540672 bytes on Stand-in GPU 0: CUDA: "
                "cuMemAlloc: out of memory"
            ),
        ),
        ({"FAKE_CUDA_LAZY": 135167}, "Not all of 135168 threads squared their element"),
        ({"FAKE_CUDA_STRAY": 1}, "A thread wrote beyond the 135168 elements"),
    ],
    ids=lambda value: (
        "-".join(f"{one}" for one in value.values()) if isinstance(value, dict) else ""
    ),
)
def test_what_cuda_refuses_is_a_sentence_and_no_measurement(
    run: Callable[..., Ran], settings: dict[str, object], sentence: str
) -> None:
    ran = run(**settings)
    assert ran.code == 1
    assert ran.why.startswith(sentence)
    assert not ran.all("ready")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"FAKE_NVML_INIT": 9}, "no NVIDIA GPU: NVML: Driver Not Loaded"),
        ({"FAKE_NVML_GPUS": 0}, "no NVIDIA GPU: the driver reports none"),
        ({}, "None"),
    ],
    ids=["no driver", "no GPU", "one GPU"],
)
def test_a_missing_gpu_is_distinct_from_missing_cuda_or_torch(
    both: Path, settings: dict[str, object], reason: str
) -> None:
    """For hundreds of cells: asked once, and neither framework nor CUDA is loaded for it."""
    program = """
import sys
from fixtures import workloads
print({workloads.of(f"gpu_grid:blocks={n}:threads=8").unavailable_reason() for n in range(1, 200)})
assert not {"torch", "cuda.bindings.driver", "cuda.bindings.nvrtc"} & set(sys.modules)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command,
        cwd=HOUSE,
        env=environment(both, **settings),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert reason in done.stdout
    assert "," not in done.stdout


def test_of_two_gpus_the_one_used_is_the_one_watched(run: Callable[..., Ran]) -> None:
    """GPU 1 would be 51 % busy; a context on it is refused by the stand-in."""
    ran = run(FAKE_CUDA_GPUS=2, FAKE_NVML_GPUS=2)
    assert ran.all("ready")[0]["facts"]["gpu_uuids"] == [UUID]
    assert set(ran.report("samples")["utilization_percent"]) == {50.0}
