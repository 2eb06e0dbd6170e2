"""`power fit`: traces in, parameters out, with caveats."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.studies.power import traces
from tests.analysis.studies.power import made_traces
from tests.analysis.studies.power.command import Power, model_at, refusals
from tests.analysis.studies.power.test_fit_own import gpu_rows

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files from a profile: one with failed rows, one with clocks and idle rows."""
    rows = [row for row in gpu_rows() if len(row.shares) < 4 and row.shares[:1] != (40.0,)]
    failed = replace(
        rows[0],
        outcome="oom",
        reason="CUDA out of memory",
        throughput_images_per_s=None,
        power_max_w=None,
    )
    anchors = [row for row in rows if row.network == "net" and row.target_mhz is None]
    place = tmp_path / "traces"
    place.mkdir()
    (place / "anchors.csv").write_text(traces.as_csv([*anchors, failed]), encoding="utf-8")
    (place / "sweep.csv").write_text(
        traces.as_csv([row for row in rows if row not in anchors]), encoding="utf-8"
    )
    return place


def test_a_folder_of_traces_becomes_parameters_and_a_page(
    folder: Path, power: Power, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(folder.parent)  # a page is 100 wide, but for paths that are longer
    page = power("fit", folder.name, "--gpu", "3080Ti", "-o", "out").page
    assert (
        re.sub(r"(?m)^(  (?:partition|share|batch|processes|clock)  +\w+).*", r"\1 …", page)
        == snapshot
    )
    assert model_at(folder.parent / "out", "net", "3080Ti", 5001.0).sm_range_mhz == (300.0, 1950.0)


def test_json_has_the_errors_and_files_name_their_sources(
    folder: Path, tmp_path: Path, power: Power
) -> None:
    (said,) = power("fit", folder, "--gpu", "3080Ti", "-o", tmp_path, "--json").json["fits"]
    assert set(said["held_out"]) == {"partition", "share", "batch", "processes", "clock"}
    given = said["held_out_given_mem_util"]
    assert set(given) == {"partition", "share", "batch", "processes"}
    assert set(given["batch"]) == {"throughput_images_per_s"}
    written = json.loads((tmp_path / "net_3080Ti_mem5001.json").read_text())
    assert "held_out_given_mem_util" not in written
    assert [one["name"] for one in written["sources"]["files"]] == ["anchors.csv", "sweep.csv"]
    assert written["sources"]["left_out"] == {"oom": 1}


def test_the_originals_procedure_is_asked_for_by_name(
    tmp_path: Path, power: Power, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a page is 100 wide, but for paths that are longer
    Path("made.csv").write_text(traces.as_csv(made_traces.rows()), encoding="utf-8")
    assert (
        "in-sample"
        in power("fit", "made.csv", "--gpu", "3080Ti", "-o", ".", "--as", "original").page
    )
    assert json.loads(Path("made_3080Ti_mem5001.json").read_text())["kind"] == "reference"


def test_refusals(
    folder: Path, power: Power, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """Before anything is written; a pipe is not waited for."""
    monkeypatch.chdir(folder.parent)
    Path("bad.csv").write_bytes(b"\xff\xfe\x00")
    os.mkfifo("pipe.csv")
    named = [
        ["traces", "--network", "nets"],
        *([name] for name in ("none.csv", "bad.csv", "pipe.csv")),
    ]
    calls = [[*args, "--gpu", "3080Ti"] for args in named] + [
        ["traces", "--gpu", gpu] for gpu in ("", " ", "a\0b")
    ]
    assert refusals(power, "fit", [[*args, "-o", "out"] for args in calls]) == snapshot
    assert not Path("out").exists()
