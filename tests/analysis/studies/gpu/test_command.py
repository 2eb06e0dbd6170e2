"""The command: its page, its JSON, its files and its exit codes; and that pictures say what they show."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.plots.scene import NothingToDraw
from analysis.studies.gpu import pictures as gpu_metrics
from analysis.studies.gpu.sources import read_grids
from tests.analysis.plots.reading import faults, said
from tests.analysis.studies.gpu.made import dcgmi, fitting, nvsm, pair, saved_grid

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.gpu.findings import Findings

PICTURES = {gpu_metrics.GRID_TITLE: gpu_metrics.draw_grid, gpu_metrics.RELATIONS_TITLE: gpu_metrics.draw_relations}
SMACT = {1: 0.002, 128: 0.22, 1024: 0.14, 4096: 0.5}
GRACT = {1: 0.953, 128: 0.946, 1024: 0.962, 4096: 0.938}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `logs`: a grid of two block sizes, launch-bound at first; one cell ran a quarter of what its neighbour leaves it."""
    place = tmp_path_factory.mktemp("made")
    (place / "logs").mkdir()
    for blocks, smact in SMACT.items():
        for threads in (32, 1024):
            samples = max(6, blocks // 100)
            smocc = min(0.4 * smact, blocks / 108 / 64)
            pair(place / "logs", blocks, threads, samples=samples, smact=smact, smocc=smocc, gract=GRACT[blocks])
    pair(place / "logs", 3000, 1024, samples=7, smact=0.5, smocc=0.2)
    return place


@pytest.fixture
def place(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which `logs` lies, which the process works in."""
    monkeypatch.chdir(made)
    return made


@pytest.fixture(scope="module")
def grid(made: Path) -> Findings:
    (only,) = read_grids([str(made / "logs")]).grids
    return only


def test_a_page_of_logs(place: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:  # noqa: ARG001  # works there
    assert main(["gpu-metrics", "logs", "--all"]) == 0
    page = capsys.readouterr().out
    assert page == snapshot
    assert max(map(len, page.splitlines())) <= 100
    assert "\x1b" not in page


def test_a_page_of_logs_that_lack_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    """Cut, ended early, without work, without its other half, another's work, numbered otherwise, damaged, of no size."""
    monkeypatch.chdir(tmp_path)
    for blocks, smact in ((1, 0.2), (2, 0.18), (16, 0.25)):
        pair(tmp_path, blocks, 32, smact=smact)
    pair(tmp_path, 4, 32, samples=40)
    pair(tmp_path, 8, 32, busy=2)
    (tmp_path / "2.32.nvsm.txt").unlink()
    (tmp_path / "4.32.nvsm.txt").write_text(nvsm([(90, 419)] * 5))
    (tmp_path / "16.32.nvsm.txt").write_text("Segmentation fault\n")
    (tmp_path / "16.32.dcgmi.txt").write_text((tmp_path / "1.32.dcgmi.txt").read_text()[:-200])
    (tmp_path / "32.32.dcgmi.txt").write_text(dcgmi([[0] * 7] * 5))
    (tmp_path / "0.32.dcgmi.txt").write_text("")
    assert main(["gpu-metrics", ".", "--all"]) == 0
    assert tuple(capsys.readouterr()) == snapshot


def test_a_page_of_a_saved_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    """A size busier than its blocks allow, one of other launches, one without SMACT, a cell that failed and one that is damaged."""
    monkeypatch.chdir(tmp_path)
    sizes = {(blocks, 32): fitting(blocks) for blocks in (1, 66, 132, 264)}
    sizes |= {(30, 32): fitting(30) | {"launches": 8}, (40, 32): fitting(40) | {"smact": 0.6}}
    sizes |= {(50, 32): fitting(50) | {"smact": [None] * 6, "missing": {"smact": "no GPM on this GPU"}}}
    saved = saved_grid(sizes, arms=("stock", "nvidia_smi"))
    saved["benchmarks"][0]["extra_info"]["report"]["gpu_metrics"][0]["duty"] = 1.5
    lost = saved["benchmarks"].pop()["extra_info"]["id"]
    next(one for one in saved["deeptweak"]["cells"] if one["id"] == lost).update(outcome="failed", reason="the GPU fell off the bus")
    (tmp_path / "run.json").write_text(json.dumps(saved))
    assert main(["gpu-metrics", "run.json", "--all"]) == 0
    assert tuple(capsys.readouterr()) == snapshot


def test_json_says_the_same_for_programs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001  # works there
    assert main(["gpu-metrics", "logs", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["grids"]
    assert len(found["cells"]) == 9
    assert found["cells"][0]["metrics"]["smact"]["max"] == 0.002
    odd = found["did_not_run_what_others_ran"]["samples"]
    assert [(one["size"], one["rival"]) for one in odd] == [([3000, 1024], [4096, 1024]), ([4096, 1024], [3000, 1024])]
    assert found["bounds"]["violations"] == []
    assert {one["y"] for one in found["lines"]} >= {"100 × gract", "smact", "smocc", "memory_used_mib"}
    assert found["chip"]["sms"] == 108


def test_tables_are_written_agree_with_their_logs_and_are_a_grid_by_themselves(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "here"))
    assert main(["gpu-metrics", "logs", "--tables", "logs/tables", "--plot", "logs/tables"]) == 0
    page = capsys.readouterr().out
    names = {path.name for path in (tmp_path / "here/logs/tables").iterdir()}
    assert names == {"mean.csv", "median.csv", "max.csv", "active.csv", "gpu_metrics_grid.png", "gpu_metrics_relations.png"}
    assert all(name in page for name in names)
    rows = list(csv.DictReader((tmp_path / "here/logs/tables/max.csv").read_text().splitlines()))
    assert (len(rows), rows[0]["#Thread Blocks"], rows[0]["SMACT"]) == (9, "1", "0.002")
    (found,) = read_grids(["logs"]).grids
    assert [one.compared for one in found.agreements] == [9 * 6] * 3  # max, mean, median: active.csv is no table of the study's
    assert not any(one.differing for one in found.agreements)
    assert main(["gpu-metrics", "logs/tables/max.csv"]) == 0
    assert capsys.readouterr().out == snapshot


def test_pictures_lie_within_their_page_and_name_the_odd_cell(grid: Findings) -> None:
    figures = {title: draw(grid) for title, draw in PICTURES.items()}
    assert [faults(figure) for figure in figures.values()] == [[], []]
    assert all(title in said(figure) for title, figure in figures.items())
    assert all("108 SMs" in said(figure) for figure in figures.values())
    assert "3000 × 1024" in said(figures[gpu_metrics.GRID_TITLE])


def test_a_saved_run_has_its_name_in_the_picture(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved_grid({(blocks, threads): fitting(blocks) for blocks in (1, 66, 132) for threads in (32, 64)})))
    (found,) = read_grids([str(path)]).grids
    for draw in PICTURES.values():
        figure = draw(found)
        assert faults(figure) == []
        assert "made-up-1" in said(figure)


def test_what_cannot_be_drawn_is_left_out_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved_grid({(1, 32): {"dram": 0.5}})))
    with pytest.raises(NothingToDraw, match="utilisation"):
        gpu_metrics.draw_grid(read_grids([str(path)]).grids[0])
    assert main(["gpu-metrics", str(path), "--plot", str(tmp_path)]) == 0
    assert "gpu_metrics_grid: not drawn" in capsys.readouterr().out


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    """Each in one line with code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1.1.dcgmi.txt").write_text("x\n")
    (tmp_path / "empty").mkdir()
    pair(tmp_path, 128, 32)
    without = saved_grid({(66, 32): fitting(66)})
    for one in without["benchmarks"]:
        del one["extra_info"]["report"]
    (tmp_path / "run.json").write_text(json.dumps(without))
    messages = {}
    for args in (["nowhere"], ["--sms", "0", "."], ["--sms", "many", "."], ["1.1.dcgmi.txt"], ["empty"], ["--gpu", "7", "."], ["run.json"]):
        try:
            code = main(["gpu-metrics", *args])
        except SystemExit as stopped:  # argparse's
            code = int(stopped.code or 0)
        assert code == 2
        messages[" ".join(args)] = capsys.readouterr().err.splitlines()[-1]
    assert messages == snapshot
