"""`cells`: a row per cell, whose parameters, settings and telemetry are columns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import deeptweak
from analysis.cells import cells
from analysis.load import load
from analysis.terms import Refused
from tests.synthetic import saved_run

RUNS = Path("data/runs")
JOBS = RUNS / "cluster-scheduling_2026-11-22_amd-epyc-2cpu.json"
GATE = RUNS / "2026-11-21_gate_amd-epyc-2cpu.json"


def test_a_cell_is_a_row_in_the_order_in_which_it_ran() -> None:
    run = load(str(GATE))
    frame = cells([run])
    assert list(frame["order"]) == sorted(cell.order for cell in run.cells)
    assert frame.groupby("tweakset").size().to_dict() == {"stock": 16, "stock-again": 16, "tcp-buffers-tiny": 16}
    first = min(run.cells, key=lambda cell: cell.order)
    assert frame.loc[0, "step_time_median_s"] == first.metrics["step_time_median_s"]
    assert frame.loc[0, "machine.kernel_release"] == run.machine["kernel_release"]


def test_parameters_are_columns() -> None:
    assert set(cells([load(str(JOBS))])["param.policy"]) == {"fifo", "sjf", "least_slack", "fair_share", "priority"}


def test_what_was_in_force_is_a_column() -> None:
    frame = cells([load(str(GATE))])
    tiny = frame[frame["tweakset"] == "tcp-buffers-tiny"]
    assert tiny["setting.net.ipv4.tcp_rmem"].nunique() == 1
    assert frame.loc[frame["tweakset"] == "stock", "setting.net.ipv4.tcp_rmem"].isna().all()


def test_a_study_adds_its_figures_or_leaves_a_cell_out() -> None:
    run = load(str(GATE))
    frame = cells([run], lambda _, cell: {"twice": 2.0} if cell.block == 1 else None)
    assert (set(frame["block"]), set(frame["twice"])) == ({1}, {2.0})


def test_the_door_for_a_notebook_reads_files_and_folders(tmp_path: Path) -> None:
    assert len(deeptweak.load(GATE, JOBS)) == len(load(str(GATE)).cells) + len(load(str(JOBS)).cells)
    with pytest.raises(Refused, match=str(tmp_path)):
        deeptweak.load(tmp_path)


def test_another_module_of_that_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "analysis.py").write_text("")
    code = "import analysis, deeptweak; deeptweak.load('x.json')"
    found = os.environ | {"PYTHONPATH": f"{tmp_path}:{Path.cwd()}"}
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=found, capture_output=True, text=True, check=False)
    assert (ended.returncode, f"{tmp_path / 'analysis.py'} is imported as 'analysis'" in ended.stderr) == (1, True), ended.stderr


def test_what_casts_doubt_on_a_run_is_a_warning_and_a_copy_is_refused(tmp_path: Path) -> None:
    saved = saved_run()
    saved["deeptweak"]["interrupted"] = True
    (tmp_path / "one.json").write_text(json.dumps(saved))
    with pytest.warns(UserWarning, match="one.json: the run was interrupted"):
        deeptweak.load(tmp_path)
    saved["deeptweak"]["run_id"] = "another"
    (tmp_path / "two.json").write_text(json.dumps(saved))
    with pytest.raises(Refused, match="very times"):
        deeptweak.load(tmp_path)


def test_of_the_files_of_one_run_the_longest_is_read(tmp_path: Path) -> None:
    """As `--resume` leaves them, in one folder or named one by one."""
    saved = saved_run()
    (tmp_path / "whole.json").write_text(json.dumps(saved))
    saved["benchmarks"], saved["deeptweak"]["cells"] = saved["benchmarks"][:4], saved["deeptweak"]["cells"][:4]
    saved["deeptweak"]["design"]["order"] = saved["deeptweak"]["design"]["order"][:4]
    (tmp_path / "part.json").write_text(json.dumps(saved))
    for paths in ([tmp_path], [tmp_path / "whole.json", tmp_path / "part.json"], [tmp_path / "part.json", tmp_path / "whole.json"]):
        with pytest.warns(UserWarning, match="is the same run as"):
            assert len(deeptweak.load(*paths)) == 12
