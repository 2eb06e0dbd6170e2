"""The command: its page, its JSON, its files and its exit codes; and that pictures say what they show."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.gpu_metrics.asked import gathered
from analysis.plots import gpu_metrics_grid, gpu_metrics_relations
from analysis.plots.scene import NothingToDraw
from tests.analysis.gpu_metrics.made import fitting, pair, saved_grid
from tests.analysis.plots.reading import faults, said

if TYPE_CHECKING:
    from pathlib import Path

SMACT = {1: 0.002, 128: 0.22, 1024: 0.14, 8192: 0.33, 16384: 0.58}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A grid of three block sizes, launch-bound at first; one cell ran a quarter of what the others ran."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for blocks, smact in SMACT.items():
        for threads in (32, 256, 1024):
            samples = max(6, blocks // 100)
            pair(folder, blocks, threads, samples=samples, smact=smact, smocc=min(0.4 * smact, blocks / 108 / 64), gract=0.95)
    pair(folder, 12000, 1024, samples=30, smact=0.5, smocc=0.2)
    return folder


def test_the_page_says_what_was_found_in_100_columns(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-metrics", str(logs)]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 100
    assert "\x1b" not in page
    flat = " ".join(page.split())
    assert "it reaches 90 % in 16 of 16 cells" in flat
    assert "12000 × 1024 did not run what the others ran: 30 active samples" in flat
    assert "More blocks are not more SMACT: it is not monotone at 3 of 3 block sizes" in flat
    assert "All 7 bounds hold in all 16 cells" in flat


def test_json_says_the_same_for_programs(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-metrics", str(logs), "--json"]) == 0
    (grid,) = json.loads(capsys.readouterr().out)["grids"]
    assert len(grid["cells"]) == 16
    assert grid["cells"][0]["metrics"]["smact"]["max"] == 0.002
    assert [one["size"] for one in grid["did_not_run_what_others_ran"]["samples"]] == [[12000, 1024]]
    assert grid["bounds"]["violations"] == []
    assert {one["y"] for one in grid["lines"]} >= {"100 × gract", "smact", "smocc", "memory_used_mib"}
    assert grid["chip"]["sms"] == 108


def test_tables_and_pictures_are_written_and_named(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-metrics", str(logs), "--csv", str(tmp_path / "out"), "--plot", str(tmp_path / "out")]) == 0
    page = capsys.readouterr().out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"mean.csv", "median.csv", "max.csv", "active.csv", "gpu_metrics_grid.png", "gpu_metrics_relations.png"}
    assert all(name in page for name in names)
    rows = list(csv.DictReader((tmp_path / "out/max.csv").read_text().splitlines()))
    assert (len(rows), rows[0]["#Thread Blocks"], rows[0]["SMACT"]) == (16, "1", "0.002")


def test_the_tables_that_were_written_agree_with_their_logs(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-metrics", str(logs), "--csv", str(logs / "summary_files")]) == 0
    (found,) = gathered([str(logs)]).grids
    assert [one.compared for one in found.agreements] == [16 * 6] * 3  # max, mean, median: active.csv is no table of the study's
    assert not any(one.differing for one in found.agreements)
    capsys.readouterr()


def test_tables_alone_are_a_grid_without_logs(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["gpu-metrics", str(logs), "--csv", str(tmp_path / "tables")])
    capsys.readouterr()
    assert main(["gpu-metrics", str(tmp_path / "tables/max.csv")]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "only summary tables are here and no logs" in page.lower()
    assert "it reaches 90 % in 16 of 16 cells" in page


def test_pictures_lie_within_their_page_and_name_the_odd_cell(logs: Path) -> None:
    (found,) = gathered([str(logs)]).grids
    for picture in (gpu_metrics_grid, gpu_metrics_relations):
        figure = picture.draw(found)
        assert faults(figure) == []
        assert picture.TITLE in said(figure)
        assert "NVIDIA A100-SXM4-40GB, 108 SMs" in said(figure)
    assert "did not run what the others ran (12000 × 1024)" in said(gpu_metrics_grid.draw(found)).replace("\n", " ")


def test_a_saved_run_has_its_prediction_on_the_page_and_its_name_in_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved_grid({(blocks, threads): fitting(blocks) for blocks in (1, 66, 132, 264) for threads in (32, 64)})))
    assert main(["gpu-metrics", str(path)]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "SMACT = min(b, SMs) / SMs × duty holds within ± .020 in 8 of 8 cells" in page
    assert "SMACT never falls with more blocks" in page
    (found,) = gathered([str(path)]).grids
    for picture in (gpu_metrics_grid, gpu_metrics_relations):
        assert faults(picture.draw(found)) == []
        assert "Run made-up-1" in said(picture.draw(found))


def test_what_cannot_be_drawn_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = {"dram": 0.5}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved_grid({(1, 32): only})))
    with pytest.raises(NothingToDraw, match="no cell has utilisation"):
        gpu_metrics_grid.draw(gathered([str(path)]).grids[0])
    assert main(["gpu-metrics", str(path), "--plot", str(tmp_path)]) == 0
    assert "gpu_metrics_grid: not drawn: no cell has" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (["nowhere"], "no such file"),
        (["--sms", "0", "."], "--sms"),
        (["--sms", "many", "."], "--sms"),
        (["1.1.dcgmi.txt"], "name the folder"),
        (["empty"], "no saved run"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_with_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: list[str], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1.1.dcgmi.txt").write_text("x\n")
    (tmp_path / "empty").mkdir()
    try:
        code = main(["gpu-metrics", *asked])
    except SystemExit as stopped:  # argparse's
        code = int(stopped.code or 0)
    assert code == 2
    assert why in capsys.readouterr().err
