"""The command `overhead`: text of 100 columns, JSON with everything, and errors that say what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from analysis.__main__ import main
from analysis.load import from_json
from analysis.overhead.page import render
from analysis.overhead.study import overheads
from analysis.overhead.terms import Figure
from analysis.overhead.words import whole
from tests.made_monitoring import MONITORS, PERF, MadeMonitoring, Monitor, monitored_run
from tests.synthetic import saved_file

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


SMALL = MadeMonitoring(blocks=6)


def saved(folder: Path, made: MadeMonitoring = SMALL) -> str:
    path = folder / "monitors.json"
    path.write_text(json.dumps(monitored_run(made)), encoding="utf-8")
    return str(path)


def test_the_page_fits_100_columns_and_has_no_colour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = Monitor("nsys", "around", broken=dict.fromkeys(range(1, 7), ("skipped", "no nsys in PATH; " * 10)))
    made = MadeMonitoring(monitors=(*MONITORS, lost), blocks=6, workloads=("python_loop", "cnn_train"), energy_w=10.0, cell_sd=0.05)
    assert main(["overhead", saved(tmp_path, made)]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    assert "\x1b" not in said
    assert "…" not in said
    for words in (
        "UNDERPOWERED",
        "nsys: 6 skipped: no nsys in PATH",
        "against the placebo",
        "energy +%",
        "What such a study must show",
        "load",
    ):
        assert words in said


def test_dear_and_cheap_monitors_are_both_read() -> None:
    assert whole(Figure(0.0012, -0.0004, 0.0028, 20, 0.1)) == "+0.12 [-0.04, 0.28]"
    assert whole(Figure(0.603, 0.58, 0.62, 20, 0.0)) == "+60.3 [58.0, 62.0]"


@given(st.floats(-0.99, 1e6), st.floats(0, 1), st.floats(0, 1))
def test_any_figure_fits_its_column(value: float, below: float, above: float) -> None:
    assert len(whole(Figure(value, max(-0.9999, value - below), value + above, 20, 0.5))) <= 30


def test_loud_where_the_a_a_differs() -> None:
    run = from_json(monitored_run(MadeMonitoring(again=0.05, blocks=6)), "made.json")
    text = render(run, overheads(run), color=True)
    assert "\x1b[1;31mA/A DIFFERS" in text
    assert "against the placebo" not in text
    assert "dose order" not in text


def test_json_has_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overhead", saved(tmp_path), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (workload,) = run["workloads"]
    assert {"control", "arms", "doses", "position", "checks", "answer", "family", "base"} <= workload.keys()
    words = {one["verdict"] for one in workload["arms"]}
    assert words <= {"improved", "regressed", "equivalent", "inconclusive", "not comparable"}
    dear = next(one for one in workload["arms"] if one["tweakset"] == "cprofile")
    assert dear["cpu"]["low"] > 0.5
    assert dear["cpu"]["p_adjusted"] < 0.05
    assert dear["load"][0] > 0


def test_names_out_of_a_file_are_shown_and_not_obeyed() -> None:
    made = monitored_run(MadeMonitoring(monitors=(replace(PERF, broken={1: ("failed", "\x1b[31mred\nline")}),), blocks=5))
    run = from_json(made, "made.json")
    text = render(run, overheads(run))
    assert "\x1b" not in text
    assert "\\x1b[31mred line" in text


def test_another_run_is_refused_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overhead", str(saved_file(tmp_path))]) == 2
    error = capsys.readouterr().err
    assert "no cell of it tells of a monitor" in error
    assert "bench_monitoring_overhead" in error


def test_of_several_runs_the_others_are_said_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = saved_file(tmp_path, name="other.json")
    assert main(["overhead", str(other), saved(tmp_path)]) == 0
    out, error = capsys.readouterr()
    assert "refused:" in error
    assert "cprofile" in out
