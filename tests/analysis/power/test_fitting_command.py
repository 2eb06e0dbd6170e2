"""`power fit`: traces in, parameters out, and what is to be known of them said."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.power import parameters, traces
from tests.analysis.power import made_traces
from tests.analysis.power.test_fitting_own import gpu_rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files as a profile leaves them: one with rows that failed, one with clocks and idle rows."""
    rows = [row for row in gpu_rows() if len(row.shares) < 4 and row.shares[:1] != (40.0,)]
    failed = replace(rows[0], outcome="oom", reason="CUDA out of memory", throughput_images_per_s=None, power_max_w=None)
    anchors = [row for row in rows if row.network == "net" and row.target_mhz is None]
    place = tmp_path / "traces"
    place.mkdir()
    traces.write(place / "anchors.csv", [*anchors, failed])
    traces.write(place / "sweep.csv", [row for row in rows if row not in anchors])
    return place


def test_a_folder_of_traces_becomes_parameters_and_a_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "fit", str(folder), "--gpu", "3080Ti", "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "12 anchors at sm_mhz 1950, 12 rows at other clocks, 4 without work" in said
    assert "left out: 1 oom" in said
    assert "partition    throughput" in said
    assert said.index("throughput, given the measured memory utilisation") > said.index("clock        power")
    model = parameters.load(tmp_path / "out", "net", "3080Ti", 5001.0)
    assert model.sm_range_mhz == (300.0, 1950.0)


def test_as_json_it_has_the_errors_and_the_files_say_what_they_were_made_from(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["power", "fit", str(folder), "--gpu", "3080Ti", "-o", str(tmp_path), "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)
    assert set(said["held_out"]) == {"partition", "share", "batch", "processes", "clock"}
    given = said["held_out_given_mem_util"]
    assert set(given) == {"partition", "share", "batch", "processes"}
    assert set(given["batch"]) == {"throughput_images_per_s"}
    written = json.loads((tmp_path / "net_3080Ti_mem5001.json").read_text())
    assert "held_out_given_mem_util" not in written
    assert [one["name"] for one in written["sources"]["files"]] == ["anchors.csv", "sweep.csv"]
    assert written["sources"]["left_out"] == {"oom": 1}


def test_the_originals_procedure_is_asked_for_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces.write(tmp_path / "made.csv", made_traces.rows())
    assert main(["power", "fit", str(tmp_path / "made.csv"), "--gpu", "3080Ti", "-o", str(tmp_path), "--as", "original"]) == 0
    assert "in-sample" in capsys.readouterr().out
    assert json.loads((tmp_path / "made_3080Ti_mem5001.json").read_text())["kind"] == "reference"


def test_a_network_that_is_not_there_is_answered_with_those_that_are(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["power", "fit", str(folder), "--gpu", "3080Ti", "-o", str(tmp_path), "--network", "nets"]) == 2
    assert "networks there: net." in capsys.readouterr().err


def test_traces_that_are_copied_from_another_network_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [replace(row, network="other") for row in traces.read(folder / "anchors.csv")]
    traces.write(folder / "other.csv", rows)
    assert main(["power", "fit", str(folder), "--gpu", "3080Ti", "-o", str(tmp_path / "out")]) == 2
    assert "one is a copy of the other" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "fit", str(tmp_path / "none.csv"), "--gpu", "3080Ti", "-o", str(tmp_path)]) == 2
    assert "No such file" in capsys.readouterr().err
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00")
    assert main(["power", "fit", str(tmp_path / "bad.csv"), "--gpu", "3080Ti", "-o", str(tmp_path)]) == 2
    assert "no text in UTF-8" in capsys.readouterr().err


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert main(["power", "fit", str(tmp_path / "pipe.csv"), "--gpu", "3080Ti", "-o", str(tmp_path)]) == 2
    assert "It is a pipe or a device; name a file." in capsys.readouterr().err


@pytest.mark.parametrize("gpu", ["", " ", "a\0b"])
def test_a_gpu_without_a_name_is_refused_before_anything_is_written(
    folder: Path, tmp_path: Path, gpu: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["power", "fit", str(folder), "--gpu", gpu, "-o", str(tmp_path / "out")]) == 2
    assert "no name of a GPU." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
