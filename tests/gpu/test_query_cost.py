"""bench_nvml_query_cost as somebody would call it, on a GPU that is none (stand_in.py), and on a machine without one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.stand_in import built
from tests.sessions import WITHOUT, Done, Place

pytestmark = [pytest.mark.slow, pytest.mark.needs("cc")]
COUNTERS = ("util_percent+mem_util_percent", "energy_j", "gpm")


def session(folder: Path, *options: str, **settings: str) -> Done:
    libraries = folder / "libraries"
    libraries.mkdir()
    place = Place(folder, environment={"LD_LIBRARY_PATH": str(built(libraries)), **settings})
    fixed = [f"--benchmark-storage={place.storage}", *(word for plugin in WITHOUT for word in ("-p", f"no:{plugin}"))]
    return place.call(sys.executable, "-m", "pytest", "benchmarks/bench_nvml_query_cost.py", *fixed, *options)


@pytest.mark.needs("nvrtc")
def test_each_query_has_its_cost_and_its_period_or_why_not(tmp_path: Path) -> None:
    """The stand-in's energy goes up at each look, so its period is that of the looks; its utilisation never changes."""
    saved = tmp_path / "saved.json"
    done = session(tmp_path, f"--benchmark-json={saved}", "-k", " or ".join(one.partition("+")[0] for one in COUNTERS))
    assert done.code == 0, done.out
    found: dict[str, dict[str, Any]] = {one["param"]: one for one in json.loads(saved.read_text())["benchmarks"]}
    assert set(COUNTERS) <= set(found)
    assert all(one["stats"]["rounds"] == 300 and one["stats"]["min"] > 0 for one in found.values())
    energy = found["energy_j"]["extra_info"]["updates"]
    assert energy["missing"] == {}
    assert energy["changes"] == energy["polls"] - 1
    still = found["util_percent+mem_util_percent"]["extra_info"]["updates"]
    assert (still["changes"], still["period_s"]) == (0, None)
    assert still["missing"] == {"period_s": "its value changed 0 times in 5 s"}


def test_without_cuda_it_is_measured_and_said_that_nothing_ran(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    done = session(tmp_path, f"--benchmark-json={saved}", "-k", "energy", FAKE_CUDA_GPUS="0")
    assert done.code == 0, done.out
    (energy,) = json.loads(saved.read_text())["benchmarks"]
    assert energy["extra_info"]["updates"]["missing"]["load"]


def test_what_a_gpu_has_not_is_skipped_alone(tmp_path: Path) -> None:
    done = session(tmp_path, "-rs", "-k", "power or gpm", FAKE_NVML_UNSUPPORTED="power,gpm")
    assert done.code == 0, done.out
    assert "this GPU has no power_w: Not Supported" in done.out
    assert "GPM: Not Supported" in done.out


def test_without_a_gpu_all_of_it_is_skipped_with_the_reason(tmp_path: Path) -> None:
    done = session(tmp_path, "-rs", FAKE_NVML_INIT="9")
    assert done.code == 0, done.out
    assert "10 skipped" in done.out
    assert "no NVIDIA GPU: NVML: Driver Not Loaded" in done.out
