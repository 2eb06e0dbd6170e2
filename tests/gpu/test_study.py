"""Run bench_gpu_metrics through to the saved run, on a stand-in GPU and a machine in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import jsonschema
import pytest

from analysis.load import load
from tests.gpu.stand_in import built
from tests.sessions import HOUSE, WITHOUT, Done, Place
from tests.spread.fleet import FLEET, FLEET_HALT
from tests.test_session import SCHEMA

pytestmark = [pytest.mark.slow, pytest.mark.needs("cc")]


def session(folder: Path, *options: str, **settings: str) -> tuple[Place, Done]:
    """The study, alone, with the stand-ins as libraries."""
    libraries = folder / "libraries"
    libraries.mkdir()
    around = {
        FLEET: str(folder / "fleet"),
        FLEET_HALT: str(folder / "halt"),
        "PYTHONPATH": str(HOUSE),
    }
    place = Place(
        folder, environment={**around, "LD_LIBRARY_PATH": str(built(libraries)), **settings}
    )
    fixed = [
        f"--benchmark-storage={place.storage}",
        "-p",
        "tests.spread.plugin",
        "--target=fleet",
        "--benchmark-save=one",
    ]
    fixed += [word for plugin in WITHOUT for word in ("-p", f"no:{plugin}")]
    return place, place.call(
        sys.executable, "-m", "pytest", "benchmarks/bench_gpu_metrics.py", *fixed, *options
    )


@pytest.mark.needs("nvrtc")
def test_what_the_kernel_tells_is_saved_and_read_back(tmp_path: Path) -> None:
    """Two sizes, stock and stock-again: four cells, each with one report of each kind."""
    sizes = ("gpu_grid:blocks=1:threads=32", "gpu_grid:blocks=264:threads=1024")
    place, done = session(tmp_path, f"--workloads={','.join(sizes)}", "--steps=2", "--blocks=1")
    assert done.code == 0, done.out
    saved = place.saved()
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    assert {
        name: (one["params"]["blocks"], one["params"]["threads"])
        for name, one in saved["deeptweak"]["workloads"].items()
    } == {
        sizes[0]: (1, 32),
        sizes[1]: (264, 1024),
    }
    assert [cell.outcome for cell in load(place.files()[-1]).cells] == ["measured"] * 4
    for report in (one["extra_info"]["report"] for one in saved["benchmarks"]):
        (told,), (samples,) = report["gpu_metrics"], report["samples"]
        assert told["source"] == "gpm"
        assert told["sms"] == 132
        assert 0 < told["duty"] <= 1
        assert {len(column) for column in samples.values()} == {len(samples["t_monotonic_s"])}
        assert set(samples["smact"]) == {0.455}


def test_without_a_gpu_every_cell_is_skipped_with_the_reason(
    tmp_path: Path,
) -> None:
    """84 sizes of the paper and 12 around the number of SMs, stock and stock-again."""
    place, done = session(tmp_path, "--blocks=1", FAKE_NVML_INIT="9")
    assert done.code == 0, done.out
    assert "192 skipped" in done.out
    cells = place.saved()["deeptweak"]["cells"]
    assert len({cell["workload"] for cell in cells}) == 96
    reasons = {(cell["outcome"], cell["reason"].partition(":")[0]) for cell in cells}
    assert reasons <= {("skipped", "no NVIDIA GPU"), ("skipped", "cuda-bindings is not installed")}
