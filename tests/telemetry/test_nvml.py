"""The real nvidia-ml-py and ctypes, on a libnvidia-ml.so.1 compiled here (fake_nvml.c)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.telemetry import client as telemetry
from fixtures.telemetry import nvml
from fixtures.telemetry.client import Sampler
from fixtures.terms import Telemetry
from tests.programs import python
from tests.waiting import PATIENCE_S

HERE = Path(__file__).parent

pytestmark = pytest.mark.needs("cc")


def library(folder: Path, *flags: str) -> Path:
    """Compile the fake library under the name by which nvidia-ml-py loads the real one."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: the fake NVML library cannot be built")
    command = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *flags]
    subprocess.run(
        [*command, "-o", str(folder / "libnvidia-ml.so.1"), str(HERE / "fake_nvml.c")], check=True
    )
    return folder


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def old_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("old_driver"), "-DOLD_DRIVER")


@pytest.fixture
def sampled(driver: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Telemetry]:
    """Sample a machine with the given GPUs until it has been sampled a few times."""

    def sample(folder: Path = driver, **settings: str | int) -> Telemetry:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
        for name, value in settings.items():
            monkeypatch.setenv(f"FAKE_NVML_{name}", str(value))
        return sampled_for(0.15)

    return sample


def sampled_for(wait_s: float) -> Telemetry:
    """Sample for `wait_s`, or twice as long each time until this machine has taken some samples."""
    with Sampler(hz=50) as sampler:
        sampler.begin(os.getpid())
        time.sleep(wait_s)
        told = at_its_ticks(sampler.end())
    assert wait_s < PATIENCE_S
    return (
        told
        if not told.columns or len(told.columns["t_monotonic_s"]) >= 6
        else sampled_for(2 * wait_s)
    )


def of_gpus(missing: Mapping[str, str]) -> dict[str, str]:
    """Without what this machine lacks beside."""
    return {
        name: why for name, why in missing.items() if name.startswith(("gpu", "nvml", "sampler"))
    }


def at_its_ticks(told: Telemetry) -> Telemetry:
    """Drop the reading at the cell's end that left out the GPUs, as they had just been read."""
    ends = {column[-1] for name, column in told.columns.items() if name.startswith("gpu")}
    return (
        told
        if ends != {None}
        else replace(told, columns={name: column[:-1] for name, column in told.columns.items()})
    )


def test_each_gpu_has_its_own_columns_and_uuid(
    sampled: Callable[..., Telemetry],
) -> None:
    """GPU i is 50 + i percent busy, draws 61 250 + i mW, uses 3 of 16 GiB; the driver uses 1."""
    told = sampled(GPUS=3)
    assert told.devices == {f"gpu{i}": f"GPU-00000000-0000-0000-0000-{i:012}" for i in range(3)}
    for i in range(3):
        assert set(told.columns[f"gpu{i}_util_percent"]) == {50.0 + i}
        assert set(told.columns[f"gpu{i}_mem_util_percent"]) == {20.0 + i}
        assert set(told.columns[f"gpu{i}_power_w"]) == {61.25 + i / 1000}
        assert set(told.columns[f"gpu{i}_mem_used_bytes"]) == {3.0 * 2**30}
        assert set(told.columns[f"gpu{i}_temperature_c"]) == {55.0}
        assert set(told.columns[f"gpu{i}_sm_clock_mhz"]) == {1380.0}
        assert set(told.columns[f"gpu{i}_mem_clock_mhz"]) == {877.0}
        assert set(told.columns[f"gpu{i}_throttle_reasons_bitmask"]) == {1.0}
    assert of_gpus(told.missing) == {}
    assert not any(name.startswith("gpu3") for name in told.columns)


def test_energy_is_what_the_counter_added_since_the_cell_began(
    sampled: Callable[..., Telemetry],
) -> None:
    """The counter is at 5 GJ and rises by 6 J per reading: k readings after the first are 6 k J."""
    energy = sampled().columns["gpu0_energy_j"]
    assert energy == [None, *(6.0 * k for k in range(1, len(energy)))]


def test_a_reset_energy_counter_adds_nothing_in_that_interval(
    sampled: Callable[..., Telemetry],
) -> None:
    """Two readings at the sampler's start, one on trial; the 6th is the cell's third sample."""
    told = sampled(RESET_ENERGY=6)
    assert told.columns["gpu0_energy_j"][:5] == [None, 6.0, None, 12.0, 18.0]
    assert told.summary["gpu0_energy_j_total"] == 6.0 * (len(told.columns["t_monotonic_s"]) - 2)


def test_a_sensor_the_gpu_lacks_is_missing_with_its_reason(
    sampled: Callable[..., Telemetry],
) -> None:
    told = sampled(UNSUPPORTED="power,energy")
    assert of_gpus(told.missing) == {
        "gpu0_power_w": "Not Supported",
        "gpu0_energy_j": "Not Supported",
    }
    assert "gpu0_energy_j_total" not in told.summary
    assert "gpu0_power_w_mean" not in told.summary
    assert set(told.columns["gpu0_util_percent"]) == {50.0}


def test_a_sensor_that_fails_now_and_then_has_no_value_then(
    sampled: Callable[..., Telemetry],
) -> None:
    told = sampled(FLAKY="temperature")
    assert set(told.columns["gpu0_temperature_c"]) == {None, 55.0}
    assert of_gpus(told.missing) == {"gpu0_temperature_c": "Unknown Error"}
    assert None not in told.columns["gpu0_power_w"]


def test_a_lost_gpu_has_no_more_values_and_the_other_goes_on(
    sampled: Callable[..., Telemetry],
) -> None:
    """Lost at its 6th power reading, in the third or fourth sample; then not asked in this cell."""
    told = sampled(GPUS=2, LOSE="1:6")
    lost, other = told.columns["gpu1_power_w"], told.columns["gpu0_power_w"]
    assert lost[:2] == [61.251, 61.251]
    assert set(lost[3:]) == {None}
    assert None not in other
    assert told.missing["gpu1"] == "GPU is lost"


def test_an_old_driver_is_asked_in_the_way_it_knows(
    sampled: Callable[..., Telemetry], old_driver: Path
) -> None:
    """Before driver 535: memory has the driver's part; temperature and throttling by old calls."""
    told = sampled(old_driver)
    assert set(told.columns["gpu0_mem_used_bytes"]) == {4.0 * 2**30}
    assert set(told.columns["gpu0_temperature_c"]) == {54.0}
    assert set(told.columns["gpu0_throttle_reasons_bitmask"]) == {4.0}
    assert told.summary["gpu0_throttled_percent"] == 100.0
    assert of_gpus(told.missing) == {}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"INIT": 9}, "NVML: Driver Not Loaded"),
        ({"GPUS": 0}, "the NVIDIA driver reports no GPU"),
        ({"INIT": 18}, "NVML: RM has detected"),
    ],
)
def test_a_driver_that_shows_no_gpu_is_a_reason_and_no_column(
    sampled: Callable[..., Telemetry], settings: dict[str, int], reason: str
) -> None:
    told = sampled(**settings)
    assert set(of_gpus(told.missing)) == {"nvml"}
    assert told.missing["nvml"].startswith(reason)
    assert not any(name.startswith("gpu") for name in (*told.columns, *told.summary))
    assert told.devices == {}


def test_a_hanging_driver_call_costs_the_cell_only_its_columns(
    sampled: Callable[..., Telemetry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "ANSWER_WITHIN_S", 0.5)
    told = sampled(HANG=5)
    assert told.columns == {}
    assert told.missing == {"sampler": "the sampler was silent for 0.5 s"}


def facts(folder: Path, **settings: str) -> object:
    """Return gpu_facts from a process of its own."""
    program = (
        "import json; from fixtures.telemetry.nvml import gpu_facts; print(json.dumps(gpu_facts()))"
    )
    run = python(program, LD_LIBRARY_PATH=str(folder), **settings)
    return json.loads(run.stdout)


def test_facts_name_each_gpu(driver: Path) -> None:
    told = facts(driver, FAKE_NVML_GPUS="2", FAKE_NVML_UNSUPPORTED="limit")
    assert told == [
        {
            "index": i,
            "uuid": f"GPU-00000000-0000-0000-0000-{i:012}",
            "name": "Fake GPU",
            "driver_version": "999.10.1",
            "memory_total_bytes": 16 * 2**30,
        }
        for i in range(2)
    ]


def test_a_python_without_nvidia_ml_py_has_a_reason_and_no_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvml.gpu_facts() == "nvidia-ml-py is not installed: pip install nvidia-ml-py"
