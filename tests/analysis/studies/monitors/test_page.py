"""The command `overhead`: text of 100 columns, JSON with everything, and helpful errors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.__main__ import main
from analysis.load import from_json
from analysis.render.text import render
from analysis.studies.monitors.answers import answer
from analysis.studies.monitors.study import overheads
from tests.made_monitoring import MONITORS, PERF, MadeMonitoring, Monitor, monitored_run
from tests.synthetic import saved_file

if TYPE_CHECKING:
    import pytest
    from syrupy.assertion import SnapshotAssertion


SMALL = MadeMonitoring(blocks=6)


def saved(folder: Path, made: MadeMonitoring = SMALL) -> str:
    path = folder / "monitors.json"
    path.write_text(json.dumps(monitored_run(made)), encoding="utf-8")
    return str(path)


def test_a_page(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    """A quiet and a noisy workload; skipped and failed monitors; energy for one workload."""
    monkeypatch.chdir(tmp_path)
    lost = Monitor(
        "nsys", "around", broken=dict.fromkeys(range(1, 7), ("skipped", "no nsys in PATH; " * 10))
    )
    flooded = replace(PERF, broken={2: ("failed", "it flooded its log")})
    quiet = MadeMonitoring(monitors=(*MONITORS[:-1], flooded, lost), blocks=6, energy_w=10.0)
    for made, name in (
        (quiet, "quiet"),
        (replace(quiet, monitors=MONITORS[3:5], cell_sd=0.05, seed=3, energy_w=None), "noisy"),
    ):
        saved(tmp_path, made)
        assert main(["overhead", "monitors.json", "--all"]) == 0
        page = capsys.readouterr().out
        assert page == snapshot(name=name)
        assert max(map(len, page.splitlines())) <= 100
        assert "\x1b" not in page


def test_loud_where_the_a_a_differs() -> None:
    run = from_json(monitored_run(MadeMonitoring(again=0.05, blocks=6)), "made.json")
    page = render(answer(run, overheads(run)), color=True)
    assert "\x1b[1;31mA/A DIFFERS" in page


def test_json_has_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overhead", saved(tmp_path), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (workload,) = run["workloads"]
    assert {"control", "arms", "family", "base"} <= workload.keys()
    words = {one["verdict"] for one in workload["arms"]}
    assert words <= {"improved", "regressed", "equivalent", "inconclusive", "not comparable"}
    dear = next(one for one in workload["arms"] if one["tweakset"] == "cprofile")
    assert dear["cpu"]["low"] > 0.5
    assert dear["cpu"]["p_adjusted"] < 0.05
    assert dear["load"]["value"] > 0


def test_another_run_is_refused_and_the_others_are_shown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, name="other.json")
    saved(tmp_path)
    assert main(["overhead", "other.json"]) == 2
    messages = [capsys.readouterr().err]
    assert main(["overhead", "other.json", "monitors.json"]) == 0
    out, error = capsys.readouterr()
    assert "cprofile" in out
    assert [*messages, error] == snapshot
