"""`power predict`: settings from options or a file, on a page or as JSON."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.studies.power import parameters
from tests.analysis.studies.power import made_cpu
from tests.analysis.studies.power.command import Power, refusals
from tests.analysis.studies.power.made_reference import reference

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


RUNS = Path(__file__).parents[4] / "data/runs"
SETTING = ["--shares", "25,25", "--batches", "16,16", "--sm", "900,1950"]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    place = tmp_path / "parameters"
    place.mkdir()
    for model in (
        reference("one"),
        reference("one", mem_mhz=9501.0),
        reference("two", gpu="A100", mem_mhz=1215.0),
    ):
        parameters.write(model, place / parameters.file_name(model))
    return place


def test_pages(made: Path, tmp_path: Path, power: Power, snapshot: SnapshotAssertion) -> None:
    """Two processes: 60 + 0.1·100 = 70 % SMs, 30 + 0.1·200 = 50 % memory, 900 images/s.

    And a model without watts and clocks, beyond what it was fitted to.
    """
    assert power("predict", made, "--network", "one", "--mem", "5001", *SETTING).page == snapshot(
        name="watts"
    )
    page = power(
        "predict", made_cpu.folder(tmp_path), "--shares", "100", "--batches", "8", "--sm", "0.5,2"
    ).page
    assert re.sub(r"\d+\.\d+", "#.#", page) == snapshot(name="CPU seconds")


def test_programs_get_every_number(made: Path, power: Power) -> None:
    said = power("predict", made, "--gpu", "A100", *SETTING, "--json").json
    assert [one["setting"]["sm_mhz"] for one in said["predictions"]] == [900, 1950]
    assert said["predictions"][0]["network"] == "two"
    assert said["predictions"][1]["throughput_images_per_s"] == pytest.approx(900)
    assert len(said["predictions"][1]["beyond"]) == 1


def test_a_profile_of_a_read_only_gpu_is_predicted_by_its_model(
    tmp_path: Path, power: Power
) -> None:
    """Rows have an SM clock and the throttle that was set; memory clocks average 3200.98 MHz."""
    (run,) = RUNS.glob("gpu-profile_*.json")
    traces, made = tmp_path / "traces", tmp_path / "parameters"
    power("traces", run, "-o", traces)
    power("fit", traces / "gpu-readonly", "--gpu", "H200", "-o", made)
    setting = ["--shares", "100", "--batches", "16", "--sm", "0.2,0.5,0.8,1"]
    found = power("predict", made, *setting, "--json").json["predictions"]
    assert {
        (one["clock"], one["setting"]["mem_mhz"], one["setting"]["throttle"]) for one in found
    } == {("throttle", 3201, throttle) for throttle in (0.2, 0.5, 0.8, 1)}
    assert all(78 < one["power_w"] < 700 for one in found)


@pytest.mark.parametrize(
    "more",
    [
        ["--network", "three", *SETTING],
        SETTING,
        ["--network", "one", *SETTING],
        ["--network", "one", "--mem", "810", *SETTING],
        ["--network", "two", "--shares", "25", "--batches", "8,8", "--sm", "900"],
    ],
    ids=["no such model", "two models", "two memory clocks", "no such clock", "two batches"],
)
def test_refusals(made: Path, power: Power, more: list[str]) -> None:
    refusals(power, "predict", [[made, *more]])
