"""GPM through the real nvidia-ml-py and ctypes, on our libnvidia-ml.so.1 (fake_nvml.c): no GPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.terms import Telemetry
from tests.programs import python
from tests.telemetry.test_nvml import library, of_gpus, sampled_for

METRICS = ("gract", "smact", "smocc", "tensor", "dram")

pytestmark = pytest.mark.needs("cc")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def before_gpm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("before_gpm"), "-DOLD_DRIVER", "-DNO_GPM")


@pytest.fixture
def sampled(driver: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Telemetry]:
    """Sample a machine with the given GPUs for long enough that every GPU gave values."""

    def sample(folder: Path = driver, **settings: str | int) -> Telemetry:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
        for name, value in settings.items():
            monkeypatch.setenv(f"FAKE_NVML_{name}", str(value))
        return sampled_for(0.3)

    return sample


def columns(gpu: int) -> list[str]:
    return [f"gpu{gpu}_{metric}_percent" for metric in METRICS]


def test_each_gpu_has_what_its_own_counters_added(sampled: Callable[..., Telemetry]) -> None:
    """GPU i: engine 90 + i percent, SMs 45.5 + i, warps 20.25 + i, tensor i, memory 1.125 + i."""
    told = sampled(GPUS=2)
    for i in range(2):
        for column, percent in zip(columns(i), (90.0, 45.5, 20.25, 0.0, 1.125), strict=True):
            assert set(told.columns[column]) == {None, percent + i}
            assert told.summary[f"{column}_mean"] == pytest.approx(percent + i)
    assert of_gpus(told.missing) == {}


def test_there_is_no_value_before_the_counters_can_have_moved(
    sampled: Callable[..., Telemetry],
) -> None:
    """At 50 Hz; two readings within 100 ms would be 0 and no number, as on an H200; none is."""
    told = sampled()
    assert told.columns["gpu0_smact_percent"][0] is None
    assert set(told.columns["gpu0_smact_percent"]) == {None, 45.5}
    assert of_gpus(told.missing) == {}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"GPM": 0}, "this GPU has no GPM, which came with Hopper"),
        ({"UNSUPPORTED": "gpm"}, "GPM: Not Supported"),
        ({"UNSUPPORTED": "counters"}, "GPM: Not Supported"),
    ],
)
def test_a_gpu_without_gpm_says_so_and_has_the_rest(
    sampled: Callable[..., Telemetry], settings: dict[str, str | int], reason: str
) -> None:
    told = sampled(**settings)
    assert of_gpus(told.missing) == dict.fromkeys(columns(0), reason)
    assert set(told.columns["gpu0_util_percent"]) == {50.0}
    assert not any(name.startswith(tuple(columns(0))) for name in (*told.columns, *told.summary))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"GPM_MISSING": 5}, "Not Supported"), ({"GPM_NAN": 5}, "NVML answers nan")],
    ids=["absent", "no number"],
)
def test_one_quantity_that_is_missing_is_missing_alone(
    sampled: Callable[..., Telemetry], settings: dict[str, int], reason: str
) -> None:
    """Metric 5 is the tensor cores'. Missing is no zero."""
    told = sampled(**settings)
    assert of_gpus(told.missing) == {"gpu0_tensor_percent": reason}
    assert set(told.columns["gpu0_smact_percent"]) == {None, 45.5}


def test_each_value_is_of_the_time_since_the_one_before(driver: Path) -> None:
    """The GPU rests from the first value on: the second is 0; since the start it would be more."""
    program = """
import json, os, time
from pathlib import Path
from fixtures.telemetry.sampler import SOURCES
source = SOURCES["gpm"]()
source.open(Path("/"), None)
rows = []
for idle in "01":
    os.environ["FAKE_NVML_GPM_IDLE"] = idle
    time.sleep(0.2)
    rows.append(source.sample())
print(json.dumps(rows))
"""
    run = python(program, LD_LIBRARY_PATH=str(driver))
    first, second = json.loads(run.stdout)
    assert first[0] > 0
    assert second == [0] * len(METRICS)


def test_no_buffer_is_left_behind(driver: Path) -> None:
    """Two per GPU while a cell is measured, none after; also where a GPU's first reading fails."""
    program = """
import ctypes, json, sys
from pathlib import Path
from fixtures.telemetry.sampler import SOURCES
source, held = SOURCES["gpm"](), []
for _ in range(3):
    source.open(Path("/"), None)
    held.append(ctypes.CDLL("libnvidia-ml.so.1").fake_nvml_gpm_samples())
    source.close()
    held.append(ctypes.CDLL("libnvidia-ml.so.1").fake_nvml_gpm_samples())
print(json.dumps(held))
"""

    def held(**settings: str) -> object:
        run = python(program, LD_LIBRARY_PATH=str(driver), **settings)
        return json.loads(run.stdout)

    assert held(FAKE_NVML_GPUS="2") == [4, 0] * 3
    assert held(FAKE_NVML_UNSUPPORTED="counters") == [0, 0] * 3
