"""`python -m analysis calibrate`: what is printed where, and with which exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from tests.synthetic import Made, saved_file

if TYPE_CHECKING:
    from pathlib import Path

MADE = Made(workloads=("cnn_train", "a_workload_with_a_name_that_is_long"), blocks=6)


@pytest.fixture(autouse=True)
def _two_contrasts_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """Families of fifty take seconds, and say nothing of how they are printed."""
    monkeypatch.setattr("analysis.calibrating.rates.family_rates.__defaults__", ((2, 3),))


def test_tables_fit_a_hundred_columns_and_every_rule_is_in_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(saved_file(tmp_path, MADE)), "--trials", "100"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 100
    assert "…" not in out
    for said in ("ours, throughput ", "conbench ", "A/A cells of run made-up-1", "a_workload_with_a_name_that_is_long ", "seed 1"):
        assert said in out
    assert "\x1b[" not in out


def test_without_a_run_there_are_only_simulated_sessions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--trials", "100", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    assert "100 simulated sessions a column, seed 3" in out
    assert "A/A cells" not in out


def test_json_holds_every_share_as_a_fraction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And null, not 0, where a rule needs more runs than there are."""
    path = saved_file(tmp_path, MADE)
    assert main(["calibrate", str(path), "--trials", "100", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["seed"], said["trials"], said["margin"]) == (1, 100, 0.03)
    single, families, words = said["tables"]
    assert single["shares"]["ours, throughput"]["+10 %"] == 1.0
    assert set(families["shares"]["benchstat"]) == {"of 2", "of 3"}
    assert sum(words["shares"]["A/A"][word] for word in ("improved", "regressed", "equivalent", "inconclusive")) == pytest.approx(1)
    (run,) = said["runs"]
    assert (run["run_id"], run["origin"]) == ("made-up-1", str(path))
    assert run["shares"]["conbench"] == {"swapped": None, "any of 2": None, "A then B": None}
    assert [one["workload"] for one in run["steadiness"]] == list(MADE.workloads)
    assert run["steadiness"][0]["again"].keys() == {"gain", "low", "high", "p"}


def test_markdown_names_each_rule_with_its_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(saved_file(tmp_path, MADE)), "--trials", "100", "--markdown"]) == 0
    out = capsys.readouterr().out
    tables = [block for block in out.split("\n\n") if block.startswith("|")]
    for table in tables:
        assert len({line.count(" | ") for line in table.splitlines()}) == 1
    assert "| pyperf compare_to | Student's t on 3 values of each run" in tables[-1]
    assert "`psf/pyperf@ab7fd04: pyperf/_utils.py" in tables[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trials", "99"], "99 trials show no rate of 5 %; at least 100"),
        (["--trials", "many"], "'many' is no whole number from 0 up"),
        (["--seed=-1"], "'-1' is no whole number from 0 up"),
    ],
)
def test_bad_usage_is_answered_with_what_is_wanted(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["calibrate", *arguments])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_a_run_without_equals_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved_file(tmp_path, Made(blocks=3))
    assert main(["calibrate", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {path}: no workload has 5 blocks of both stock and stock-again")
