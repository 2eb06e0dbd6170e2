"""`power partition` by names or task, with our search or the original's, as a page or JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.studies.power import parameters
from tests.analysis.studies.power import made_cpu
from tests.analysis.studies.power.command import Power, refusals
from tests.analysis.studies.power.made_reference import reference

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


@pytest.fixture
def made(tmp_path: Path) -> Path:
    place = tmp_path / "parameters"
    place.mkdir()
    for model in (
        reference("resnet50"),
        reference("resnet50", mem_mhz=9501.0),
        reference("resnet50", gpu="A100", mem_mhz=1215.0),
    ):
        parameters.write(model, place / parameters.file_name(model))
    return place


def said(power: Power, folder: Path, *options: str) -> Any:
    return power("partition", folder, *options, "--json").json


def test_pages(made: Path, tmp_path: Path, power: Power, snapshot: SnapshotAssertion) -> None:

    def page(folder: Path, *options: str) -> str:
        return re.sub(r"\d+\.\d+", "#.#", power("partition", folder, *options).page)

    a100 = ["--network", "resnet50", "--gpu", "A100"]
    assert page(made, *a100, "--cap", "130") == snapshot(name="watts")
    above = page(made, *a100, "--cap", "118.25", "--greedy", "fast")
    assert above == snapshot(name="above the cap")
    assert page(made_cpu.folder(tmp_path / "cpu"), "--cap", "1.2", *LADDER) == snapshot(
        name="CPU seconds"
    )


LADDER = ["--clocks", "0.25,0.5,1"]


def test_programs_get_the_setting_and_every_number(made: Path, power: Power) -> None:
    found = said(power, made, "--gpu", "3080Ti", "--cap", "130")
    assert (found["network"], found["gpu"], found["cap_unit"]) == ("resnet50", "3080Ti", "W")
    (one,) = found["answers"]
    assert one["feasible"]
    assert one["power_w"] <= one["cap_w"] == 130
    assert one["setting"]["sm_mhz"] % 15 == 0
    assert set(one["setting"]["partition"]) == {"shares", "batches"}


def test_a_task_names_network_gpu_and_caps(made: Path, power: Power) -> None:
    assert [one["cap_w"] for one in said(power, made, "--task", "6")["answers"]] == [130]
    found = said(power, made, "--task", "29", "--gpu", "A100")
    assert [one["cap_w"] for one in found["answers"]] == [200, 160, 120]
    assert found["gpu"] == "A100"


def test_tasks_may_be_ones_own(made: Path, tmp_path: Path, power: Power) -> None:
    (tmp_path / "own.yaml").write_text(
        "tasks: [{id: 7, gpu: A100, model: resnet50, dataset: mine, cap_w: 111}]\n"
    )
    found = said(power, made, "--tasks", str(tmp_path / "own.yaml"), "--task", "7")
    assert [one["cap_w"] for one in found["answers"]] == [111]


def test_an_unlisted_device_is_searched_on_the_given_clocks(tmp_path: Path, power: Power) -> None:
    model = replace(reference("resnet50"), gpu="somebody's", mem_mhz=0.0)
    parameters.write(model, tmp_path / "one.json")
    assert "is unknown" in power("partition", tmp_path, "--cap", "400").err
    (one,) = said(power, tmp_path, "--cap", "400", "--clocks", "900,1500,300")["answers"]
    assert one["setting"]["sm_mhz"] in {300, 900, 1500}


def test_a_model_without_watts_is_searched_under_its_unit_of_cap(
    tmp_path: Path, power: Power
) -> None:
    found = said(power, made_cpu.folder(tmp_path), "--cap", "1.2", *LADDER)
    (one,) = found["answers"]
    assert found["cap_unit"] == "cpu_s_per_s"
    assert one["cpu_s_per_s"] <= one["cap_cpu_s_per_s"] == 1.2
    assert one["setting"]["throttle"] in {0.25, 0.5, 1}
    assert not {"power_w", "cap_w"} & one.keys()


def test_refusals(
    made: Path,
    tmp_path: Path,
    power: Power,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """1.2 W is no 1.2 CPU s/s, and neither is 130 CPU s/s a cap of 130 W."""
    monkeypatch.chdir(tmp_path)
    made_cpu.folder(tmp_path / "cpu")
    (tmp_path / "own.yaml").write_text(
        "tasks:\n- {id: 1, gpu: cpu, model: resnet50, dataset: d, cap_w: 1.2}\n"
        "- {id: 2, gpu: any, model: resnet50, dataset: d, cap_cpu_s_per_s: 130}\n"
    )
    a100 = ["--gpu", "A100"]
    capped = [[*a100, "--cap", cap] for cap in ("nan", "-5", "30")]
    capped += [
        [*a100, "--cap", "100", *more] for more in (["--margin", "inf"], ["--tasks", "t.yaml"])
    ]
    of_task = [
        ["--task", "6", "--network", "resnet50"],
        ["--task", "6", *a100],
        ["--task", "99"],
        ["--task", "1"],
    ]
    of_task += [["--tasks", "own.yaml", "--task", "2", *a100]]
    calls = [["parameters", *more] for more in (["--cap", "130"], *capped, *of_task)]
    calls += [
        ["cpu", "--cap", "0.01", *LADDER],
        ["cpu", "--tasks", "own.yaml", "--task", "1", *LADDER],
    ]
    calls += [["parameters", *a100], ["parameters", *a100, "--cap", "130", "--task", "6"]]
    messages = refusals(power, "partition", calls)
    assert {
        name: re.sub(r"\d+\.\d{2,}", "#.#", said) for name, said in messages.items()
    } == snapshot
    assert made.name == "parameters"
