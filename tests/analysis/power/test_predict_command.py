"""`power predict`: settings typed or out of a file, on a page or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.power import parameters
from tests.analysis.power import made_cpu
from tests.analysis.power.made_reference import reference

if TYPE_CHECKING:
    from pathlib import Path

SETTING = ["--shares", "25,25", "--batches", "16,16", "--sm", "900,1950"]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    place = tmp_path / "parameters"
    place.mkdir()
    for model in (reference("one"), reference("one", mem_mhz=9501.0), reference("two", gpu="A100", mem_mhz=1215.0)):
        parameters.write(model, place / parameters.file_name(model), "reference")
    return place


def test_a_page_has_a_line_a_clock(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two processes: 60 + 0.1·100 = 70 % of the SMs, 30 + 0.1·200 = 50 % of the memory; 600 + 0.1·3000 = 900 images/s at 1950 MHz."""
    assert main(["power", "predict", str(made), "--network", "one", "--mem", "5001", *SETTING]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "one on 3080Ti"
    assert lines[1].split() == ["processes", "SM", "mem", "SM", "%", "mem", "%", "images/s", "W"]
    assert lines[2].startswith("2 × 25 % b16   900  5001  70.0   50.0")
    assert lines[3].startswith("2 × 25 % b16  1950  5001  70.0   50.0     900.0")
    assert len(lines) == 4


def test_programs_get_every_number(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "predict", str(made), "--gpu", "A100", *SETTING, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["setting"]["sm_mhz"] for one in said["predictions"]] == [900, 1950]
    assert said["predictions"][0]["network"] == "two"
    assert said["predictions"][1]["throughput_images_per_s"] == pytest.approx(900)
    assert said["predictions"][1]["beyond"] == ["clock 1950 is no state of A100; the nearest is 1410"]


def test_a_model_without_watts_and_clocks_says_what_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half the time of a whole core's share: 0.02·100·0.5 = 1 CPU second per second."""
    asked = ["power", "predict", str(made_cpu.folder(tmp_path)), "--shares", "100", "--batches", "8", "--sm", "0.5,2"]
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["processes", "throttle", "mem", "SM", "%", "mem", "%", "images/s", "CPU", "s/s"]
    assert float(lines[2].split()[-1]) == pytest.approx(1.0, rel=0.05)
    assert lines[-1] == "[1] throttle 2 lies outside 0.25 to 1, where the model was fitted."
    assert main([*asked, "--json"]) == 0
    one = json.loads(capsys.readouterr().out)["predictions"][0]
    assert (one["cap_unit"], one["clock"]) == ("cpu_s_per_s", "throttle")
    assert one["cpu_s_per_s"] == pytest.approx(1.0, rel=0.05)
    assert one["setting"]["throttle"] == 0.5
    assert "power_w" not in one
    assert "sm_mhz" not in one["setting"]


def test_rows_of_a_file_are_predicted_each_by_its_model(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Measured or not, and whether the clock was recorded or only asked for; idle rows are left out."""
    (tmp_path / "t.csv").write_text(
        "model_name,p_list,b_list,target_freq,mem_freq,sm_freq,throughput_total,outcome\n"
        'one,"[25, 25]","[16, 16]",,9501,1950,880,\n'
        "two,[25],[16],810,1215,,,oom\n"
        "static,[],[],210,5001,210,0,\n"
        "one,[25],[16],,5001,1950,500,\n"
    )
    assert main(["power", "predict", str(made), "--csv", str(tmp_path / "t.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    assert [(one["network"], one["setting"]["mem_mhz"], one["setting"]["sm_mhz"]) for one in found] == [
        ("one", 9501, 1950),
        ("two", 1215, 810),
        ("one", 5001, 1950),
    ]
    assert [one["throughput_images_per_s"] for one in found][::2] == pytest.approx([900, 600])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--network", "three", *SETTING], "three: no models; there are one on 3080Ti; two on A100. Say which"),
        (SETTING, "any: 2 models; there are one on 3080Ti; two on A100"),
        (["--network", "one", *SETTING], "models of memory clocks 5001, 9501 MHz; say which with --mem"),
        (["--network", "one", "--mem", "810", *SETTING], "no model of a memory clock of 810 MHz"),
        (["--network", "two", "--shares", "25", "--sm", "900"], "--batches: missing"),
        (["--network", "two", "--shares", "25", "--batches", "8,8", "--sm", "900"], "1 shares and 2 batches"),
        (["--sm", "900", "--csv", "t.csv"], "--sm is what the rows of --csv say"),
    ],
)
def test_what_cannot_be_predicted_is_said(made: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "predict", str(made), *words]) == 2
    assert says in capsys.readouterr().err


def test_a_file_without_clocks_is_refused(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("model_name,p_list,b_list\ntwo,[25],[16]\n")
    assert main(["power", "predict", str(made), "--csv", str(tmp_path / "t.csv")]) == 2
    assert "line 2: no clock, neither sm_freq nor target_freq" in capsys.readouterr().err
