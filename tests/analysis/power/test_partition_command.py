"""`power partition`: by names or by task, our own search or the original's, on a page or as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from analysis.__main__ import main
from analysis.power import parameters
from tests.analysis.power import made_cpu
from tests.analysis.power.made_reference import reference

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Path:
    place = tmp_path / "parameters"
    place.mkdir()
    for model in (reference("resnet50"), reference("resnet50", mem_mhz=9501.0), reference("resnet50", gpu="A100", mem_mhz=1215.0)):
        parameters.write(model, place / parameters.file_name(model), "reference")
    return place


def said(made: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Any:  # noqa: ANN401  # JSON
    assert main(["power", "partition", str(made), *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(made: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["power", "partition", str(made), *options]) == 2
    return capsys.readouterr().err


def test_a_page_says_what_is_predicted_and_by_how_much_asking(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "partition", str(made), "--network", "resnet50", "--gpu", "A100", "--cap", "130", "--profiled-only"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "resnet50 on A100, predicted"
    assert lines[2].split() == ["cap", "W", "partition", "SM", "mem", "images/s", "W", "SM", "%", "mem", "%"]
    assert lines[3].startswith("130    ")
    assert lines[-1] == "• The model was asked for 263 partitions, counted once a memory clock."


def test_programs_get_the_setting_and_every_number(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(made, capsys, "--gpu", "3080Ti", "--cap", "130")
    assert (found["network"], found["gpu"], found["cap_unit"]) == ("resnet50", "3080Ti", "W")
    (one,) = found["answers"]
    assert one["feasible"]
    assert one["power_w"] <= one["cap_w"] == 130
    assert one["setting"]["sm_mhz"] % 15 == 0
    assert set(one["setting"]["partition"]) == {"shares", "batches"}


def test_a_task_names_network_gpu_and_caps(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [one["cap_w"] for one in said(made, capsys, "--task", "6")["answers"]] == [130]
    found = said(made, capsys, "--task", "29", "--gpu", "A100")
    assert [one["cap_w"] for one in found["answers"]] == [200, 160, 120]
    assert found["gpu"] == "A100"


def test_tasks_may_be_ones_own(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.yaml").write_text("tasks: [{id: 7, gpu: A100, model: resnet50, dataset: mine, cap_w: 111}]\n")
    found = said(made, capsys, "--tasks", str(tmp_path / "own.yaml"), "--task", "7")
    assert [one["cap_w"] for one in found["answers"]] == [111]


def test_the_originals_search_may_end_above_the_cap_and_says_so(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It keeps a clock of 500 MHz or more while it searches, and hands out the share that is left whatever that costs."""
    low = ["--gpu", "A100", "--cap", "130"]
    slow, fast = (said(made, capsys, *low, "--greedy", mode)["answers"][0] for mode in ("slow", "fast"))
    assert fast["setting"]["sm_mhz"] % 15 == 0
    assert slow["evaluations"] > 0
    assert not fast["profiled"]
    smallest = refused(made, capsys, "--gpu", "A100", "--cap", "20", "--greedy", "fast").split("smallest cap is ")[1].split(" W")[0]
    assert main(["power", "partition", str(made), "--gpu", "A100", "--cap", smallest, "--greedy", "fast"]) == 0
    assert "above the cap of" in " ".join(capsys.readouterr().out.split())


def test_a_front_needs_no_cap(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(made, capsys, "--gpu", "A100", "--front", "--profiled-only")["answers"]
    powers = [one["power_w"] for one in found]
    assert powers == sorted(powers)
    assert len(found) > 3


def test_a_margin_is_kept_free(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = said(made, capsys, "--gpu", "A100", "--cap", "130", "--margin", "12")["answers"]
    assert one["power_w"] <= 118


def test_a_device_that_no_list_knows_is_searched_on_the_clocks_that_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = replace(reference("resnet50"), gpu="somebody's", mem_mhz=0.0)
    parameters.write(model, tmp_path / "one.json", "reference")
    assert "not known" in refused(tmp_path, capsys, "--cap", "400")
    (one,) = said(tmp_path, capsys, "--cap", "400", "--clocks", "900,1500,300")["answers"]
    assert one["setting"]["sm_mhz"] in {300, 900, 1500}


def test_a_model_without_watts_is_searched_under_a_cap_of_its_own_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, ladder = made_cpu.folder(tmp_path), ["--clocks", "0.25,0.5,1"]
    assert main(["power", "partition", str(place), "--cap", "1.2", *ladder]) == 0
    assert capsys.readouterr().out.splitlines()[2].split()[:6] == ["cap", "CPU", "s/s", "partition", "throttle", "mem"]
    found = said(place, capsys, "--cap", "1.2", *ladder)
    (one,) = found["answers"]
    assert found["cap_unit"] == "cpu_s_per_s"
    assert one["cpu_s_per_s"] <= one["cap_cpu_s_per_s"] == 1.2
    assert one["setting"]["throttle"] in {0.25, 0.5, 1}
    assert not {"power_w", "cap_w"} & one.keys()
    assert "within 0.01 CPU s/s; the smallest cap" in refused(place, capsys, "--cap", "0.01", *ladder)


def test_a_tasks_cap_is_of_the_models_unit(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1.2 W is no 1.2 CPU s/s, and neither is 130 CPU s/s a cap of 130 W."""
    own, place = tmp_path / "own.yaml", tmp_path / "cpu"
    place.mkdir()
    ladder = ["--clocks", "0.25,0.5,1"]
    own.write_text(
        "tasks:\n- {id: 1, gpu: cpu, model: resnet50, dataset: d, cap_w: 1.2}\n"
        "- {id: 2, gpu: any, model: resnet50, dataset: d, cap_cpu_s_per_s: 130}\n"
    )
    task = ["--tasks", str(own), "--task"]
    assert "task 1 has a cap in W; the model of resnet50 on cpu is in CPU s/s" in refused(
        made_cpu.folder(place), capsys, *task, "1", *ladder
    )
    assert "task 2 has a cap in CPU s/s; the model of resnet50 on A100 is in W" in refused(made, capsys, *task, "2", "--gpu", "A100")


def test_what_the_gate_finds_in_the_models_is_said_below(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An exponent on the bound of its fit: what it promises of other clocks is no measurement."""
    model = reference("resnet50", gpu="A100", mem_mhz=1215.0)
    parameters.write(replace(model, power=replace(model.power, gamma=1.0)), tmp_path / "one.json", "reference")
    assert main(["power", "partition", str(tmp_path), "--cap", "130", "--profiled-only"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "· quality of the model at 1215 MHz: gamma of power is 1, on the bound of its fit (1 to 5): it did not converge." in page
    found = said(tmp_path, capsys, "--cap", "130", "--profiled-only")["findings"]
    assert [one["kind"] for one in found] == ["bound"]


def test_a_cap_that_nothing_keeps_is_refused_with_the_smallest(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "the smallest cap that one would keep is" in refused(made, capsys, "--gpu", "A100", "--cap", "30")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--cap", "130"], "Say which with --network and --gpu"),
        (["--gpu", "A100", "--cap", "nan"], "--cap nan: it is a number of 0 or more"),
        (["--gpu", "A100", "--cap", "-5"], "--cap -5: it is a number of 0 or more"),
        (["--gpu", "A100", "--cap", "100", "--margin", "inf"], "--margin inf"),
        (["--gpu", "A100", "--cap", "100", "--most-processes", "0"], "at least one process runs"),
        (["--gpu", "A100", "--cap", "100", "--tasks", "t.yaml"], "say which one of them with --task"),
        (["--gpu", "A100", "--cap", "100", "--sds", "2"], "does not know how sure it is"),
        (["--gpu", "A100", "--cap", "100", "--sds", "2", "--greedy", "fast"], "are our own search's"),
        (["--gpu", "A100", "--front", "--greedy", "fast"], "are our own search's"),
        (["--task", "6", "--network", "resnet50"], "--network is what the task says"),
        (["--task", "6", "--gpu", "A100"], "task 6 is one of 3080Ti, not of A100"),
        (["--task", "99"], "task 99: there are 1, 2"),
        (["--task", "1"], "mnasnet"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_what_can(
    made: Path, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    assert says in refused(made, capsys, *options)
