"""`python -m analysis calibrate`: what is printed where, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from tests.analysis.answers import printed, refused
from tests.synthetic import Made, saved_file

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

MADE = Made(workloads=("cnn_train", "a_workload_with_a_name_that_is_long"), blocks=6)


@pytest.fixture(autouse=True)
def _two_contrasts_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.studies.calibration.rates.family_rates.__defaults__", ((2, 3),))


def test_tables_name_every_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, MADE)
    text = printed(capsys, "calibrate", "run.json", "--trials", "100", "--all")
    assert max(map(len, text.splitlines())) <= 100
    assert not {"…", "\x1b"} & set(text)
    assert text == snapshot
    markdown = printed(capsys, "calibrate", "--trials", "100", "--seed", "3", "--markdown")
    tables = [block.strip().splitlines() for block in markdown.split("\n\n") if block.startswith("|")]
    assert all(len({line.count("|") for line in table}) == 1 for table in tables)
    assert tables[-1] == snapshot(name="sources")
    assert "A/A cells" not in markdown


def test_json_holds_every_share_as_a_fraction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved_file(tmp_path, MADE)
    assert main(["calibrate", str(path), "--trials", "100", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["seed"], said["trials"], said["margin"]) == (1, 100, 0.03)
    single, families, words, baselines, stopping = said["tables"]
    assert single["shares"]["ours, throughput"]["+10 %"] == 1.0
    assert set(families["shares"]["benchstat"]) == {"of 2", "of 3"}
    assert sum(words["shares"]["A/A"][word] for word in ("improved", "regressed", "equivalent", "inconclusive")) == pytest.approx(1)
    assert baselines["shares"]["stock alone"]["A/A, withheld"] == 0
    assert stopping["shares"]["24 blocks"]["of the, blocks"] == 1
    (run,) = said["runs"]
    assert (run["run_id"], run["origin"]) == ("made-up-1", str(path))
    assert run["shares"]["conbench"] == {"swapped": None, "any of 2": None, "A then B": None}
    assert [one["workload"] for one in run["steadiness"]] == list(MADE.workloads)
    assert run["steadiness"][0]["again"].keys() == {"gain", "low", "high", "p"}


def test_bad_usage_is_answered_with_what_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    complaints = []
    for words in (["--trials", "99"], ["--trials", "many"], ["--seed=-1"]):
        with pytest.raises(SystemExit, match="2"):
            main(["calibrate", *words])
        complaints.append(capsys.readouterr().err.splitlines()[-1].partition("error: ")[2])
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, Made(blocks=3))
    assert [*complaints, refused(capsys, "calibrate", "run.json")] == snapshot
