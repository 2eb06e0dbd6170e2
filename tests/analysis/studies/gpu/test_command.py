"""The command: page, JSON and exit codes; and self-describing pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.plots.scene import NothingToDraw
from analysis.studies.gpu import pictures as gpu_metrics
from tests.analysis.plots.reading import faults, said
from tests.analysis.studies.gpu.made import fitting, read_grids, saved_grid

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


def test_a_page_of_a_saved_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    """Sizes too busy, with other launches or without SMACT; a failed and a damaged cell."""
    monkeypatch.chdir(tmp_path)
    sizes = {(blocks, 32): fitting(blocks) for blocks in (1, 66, 132, 264)}
    sizes |= {(30, 32): fitting(30) | {"launches": 8}, (40, 32): fitting(40) | {"smact": 0.6}}
    sizes |= {
        (50, 32): fitting(50) | {"smact": [None] * 6, "missing": {"smact": "no GPM on this GPU"}}
    }
    saved = saved_grid(sizes, arms=("stock", "nvidia_smi"))
    saved["benchmarks"][0]["extra_info"]["report"]["gpu_metrics"][0]["duty"] = 1.5
    lost = saved["benchmarks"].pop()["extra_info"]["id"]
    next(one for one in saved["deeptweak"]["cells"] if one["id"] == lost).update(
        outcome="failed", reason="the GPU fell off the bus"
    )
    (tmp_path / "run.json").write_text(json.dumps(saved))
    assert main(["gpu-metrics", "run.json", "--all"]) == 0
    assert tuple(capsys.readouterr()) == snapshot


def test_json_says_the_same_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text(
        json.dumps(saved_grid({(blocks, 32): fitting(blocks) for blocks in (1, 66, 132)}))
    )
    assert main(["gpu-metrics", str(path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["grids"]
    assert len(found["cells"]) == 6
    assert found["cells"][0]["figures"]["smact_max"] == pytest.approx(0.99 / 132)
    assert found["bounds"]["violations"] == []
    assert {one["y"] for one in found["lines"]} >= {"100 × gract", "smact", "smocc"}
    assert found["chip"]["sms"] == 132


def test_a_picture_fits_the_page_and_names_run_and_gpu(tmp_path: Path) -> None:
    sizes = {(blocks, threads): fitting(blocks) for blocks in (1, 66, 132) for threads in (32, 64)}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved_grid(sizes)))
    ((found,), _) = read_grids(path)
    figure = gpu_metrics.draw_grid(found)
    assert faults(figure) == []
    assert all(text in said(figure) for text in (gpu_metrics.GRID_TITLE, "made-up-1", "132 SMs"))


def test_what_cannot_be_drawn_is_left_out_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved_grid({(1, 32): {"dram": 0.5}})))
    with pytest.raises(NothingToDraw, match="utilisation"):
        gpu_metrics.draw_grid(read_grids(path)[0][0])
    assert main(["gpu-metrics", str(path), "--plot", str(tmp_path)]) == 0
    assert "gpu_metrics_grid: not drawn" in capsys.readouterr().out


def test_refusals(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    """Each in one line with code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    without = saved_grid({(66, 32): fitting(66)})
    for one in without["benchmarks"]:
        del one["extra_info"]["report"]
    (tmp_path / "run.json").write_text(json.dumps(without))
    messages = {}
    for args in (
        ["nowhere"],
        ["--sms", "0", "run.json"],
        ["--sms", "many", "run.json"],
        ["empty"],
        ["run.json"],
    ):
        try:
            code = main(["gpu-metrics", *args])
        except SystemExit as stopped:  # argparse's
            code = int(stopped.code or 0)
        assert code == 2
        messages[" ".join(args)] = capsys.readouterr().err.splitlines()[-1]
    assert messages == snapshot
