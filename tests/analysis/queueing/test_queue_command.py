"""`python -m analysis queue`: what is printed where, and with which exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from analysis.__main__ import main
from tests.analysis.queueing.made_streams import MadeStream, as_csv, rows, streamed_run

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = 100


@pytest.fixture
def run(tmp_path: Path) -> str:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(streamed_run(runs=3)))
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The page, which fits its width; nothing beside it."""
    assert main(["queue", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= COLUMNS
    return out


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:  # noqa: ANN401  # JSON
    assert main(["queue", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["queue", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_a_fit_on_a_page(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "fit", run)
    for words in ("1800 jobs in 3 runs; engine pool, 2 slots, policy fifo", "rate λ", "Little's law holds on 3 of 3 runs", "not refused"):
        assert words in out


def test_a_fit_for_programs(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    (fit,) = told(capsys, "fit", run)["fits"]
    assert fit["units"]["kind"] == "runs"
    assert fit["rate_per_s"]["low"] < 6 < fit["rate_per_s"]["high"]
    assert len(fit["laws"]) == 3


def test_a_validation_on_a_page_and_for_programs(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "validate", run, "--margin", "30%")
    assert "margin ±30 %" in out
    assert "M/M/2" in out
    (found,) = told(capsys, "validate", run, "--rate", "6", "--service", "0.2")["validations"]
    assert found["held"][0]["predicted_s"] == pytest.approx(0.1125)
    assert abs(found["held"][0]["z"]) < 3
    assert "planned rate and service time were given" in said(capsys, "validate", run, "--rate", "6", "--service", "0.2")


def test_a_list_of_jobs_needs_to_be_told_its_slots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(as_csv(rows()))
    assert "nothing tells how many slots" in said(capsys, "validate", str(path))
    assert "no verdict: 3 runs or more" in said(capsys, "validate", str(path), "--servers", "2")
    assert "say it with --servers" in refused(capsys, "predict", str(path))


def test_simulated_jobs_are_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(streamed_run(MadeStream(engine="simulated"), 3)))
    for step in ("fit", "validate", "predict"):
        assert "SIMULATED" in said(capsys, step, str(path))


def test_too_much_work_is_no_error_and_no_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(streamed_run(MadeStream(rate_per_s=12), 3)))
    assert "UNSTABLE: as much work comes as can be done" in " ".join(said(capsys, "fit", str(path)).split())
    out = " ".join(said(capsys, "validate", str(path)).split())
    assert "there is no stationary figure" in out
    assert "each job waited" in out
    assert "there is no stationary figure" in " ".join(said(capsys, "predict", str(path)).split())
    assert "M/M/3" in said(capsys, "predict", str(path), "--servers", "3")


def test_a_closed_stream_is_no_open_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = streamed_run(MadeStream(rate_per_s=12), 3)
    for one in run["benchmarks"]:
        one["extra_info"]["report"]["stream"][0]["arrivals"] = {"kind": "closed", "seed": 1}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run))
    for step in ("fit", "validate", "predict"):
        out = " ".join(said(capsys, step, str(path)).split())
        assert "CLOSED: a job comes when another ends" in out
        assert "UNSTABLE" not in out
    assert told(capsys, "validate", str(path))["validations"][0]["held"] == []


def test_predictions_from_what_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "predict", "--rate", "6", "--service", "0.2", "--servers", "1,2")
    assert "UNSTABLE" in out
    assert "M/M/2" in out
    (found,) = told(capsys, "predict", "--rate", "0.8", "--service", "1", "--scv-service", "4")["predictions"]
    assert {one["queue"]["model"]: one["queue"]["wait_s"] for one in found["models"]} == pytest.approx(
        {"M/M/1": 4, "M/G/1": 10, "G/G/1 Kingman": 10}
    )


def test_predictions_with_room_for_some(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "predict", "--rate", "20", "--service", "0.2", "--servers", "2", "--room", "4")
    assert "M/M/2/4" in out
    assert "turned away" in out
    (found,) = told(capsys, "predict", "--rate", "20", "--service", "0.2", "--servers", "2", "--room", "2")["predictions"]
    assert found["models"][0]["wait_tails_s"] == {"0.9": 0, "0.99": 0}  # who is let in is served at once


def test_percentiles_of_the_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "predict", "--rate", "125", "--service", "0.002", "--percentiles", "90")
    assert "responses 90 % within 6.14 ms." in " ".join(out.split())


def test_predictions_of_a_run_with_intervals(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "predict", run, "--servers", "2,3", "--percentiles", "95")
    assert "M/M/2: waits 95 % within " in out
    assert "is what the data leave standing" in " ".join(out.split())
    (two, three) = told(capsys, "predict", run, "--servers", "2,3")["predictions"]
    assert two["models"][0]["wait_s"]["low"] < 0.1125 < two["models"][0]["wait_s"]["high"]
    assert three["models"][0]["wait_s"]["value"] < two["models"][0]["wait_s"]["low"]


def test_predictions_by_priority(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "predict", "--class", "1:0.3:1", "--class", "2:0.5:1", "--class", "3:0.5:1")
    assert "has no stationary wait" in out
    found = told(capsys, "predict", "--class", "1:0.3:1", "--class", "2:0.5:1:1", "--preemptive")
    first, second = found["answers"][0]["classes"]
    assert (first["response_s"], second["response_s"]) == pytest.approx((1 / 0.7, 1 / 0.7 + 0.8 / 0.14))
    assert "pushed aside" in said(capsys, "predict", "--class", "1:0.3:1", "--class", "2:0.5:1", "--preemptive")


def test_a_closed_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert "disk busy" in said(capsys, "closed", "--users", "1,10", "--think", "5", "--demand", "cpu=0.05", "--demand", "disk=0.08")
    found = told(capsys, "closed", "--users", "2", "--demand", "cpu=1", "--demand", "disk=2")
    assert found["answers"][0]["rate_per_s"] == pytest.approx(3 / 7)


def test_what_cannot_be_used_is_said_and_the_rest_is_done(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wrong.csv").write_text("no list")
    for words in (["fit"], ["validate"], ["predict"]):
        assert main(["queue", *words, run, str(tmp_path / "wrong.csv")]) == 0
        out, err = capsys.readouterr()
        assert out
        assert err.startswith("refused: ")
        assert "no column job, submit_s" in err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["predict"], "--rate, --service: missing"),
        (["predict", "--rate", "1"], "--service: missing"),
        (["predict", "--rate", "nan", "--service", "1"], "a rate of nan"),
        (["predict", "--rate", "1", "--service", "1", "--servers", "0"], "0 servers"),
        (["predict", "--rate", "1", "--service", "1", "--servers", "2", "--room", "1"], "room for 1 jobs"),
        (["predict", "--rate", "1", "--service", "0.1", "--preemptive"], "--preemptive is of several --class"),
        (["predict", "--class", "1:2"], "is no class of jobs; write PRIORITY:RATE:S"),
        (["predict", "--class", "1:x:2"], "all its parts are numbers"),
        (["predict", "--class", "1:2:0.1", "--rate", "3"], "leave the others out"),
        (["predict", "{run}", "--rate", "3"], "--rate: is of typed inputs"),
        (["predict", "gone.csv"], "gone.csv"),
        (["fit", "gone.json"], "no such file"),
        (["fit", "{other}"], "no cell of it tells of a stream of jobs"),
        (["validate", "{run}", "--rate", "3"], "--rate and --service are planned together"),
        (["validate", "{run}", "--margin", "3"], "no percentage"),
        (["closed", "--users", "3", "--demand", "disk"], "such as disk=0.08"),
        (["closed", "--users", "3", "--demand", "a=1", "--demand", "a=2"], "one name of its own"),
        (["closed", "--users", "0", "--demand", "a=1"], "0 users"),
    ],
)
def test_a_bad_request_is_one_line_on_stderr_and_exit_code_2(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], what: str
) -> None:
    from tests.synthetic import saved_file  # noqa: PLC0415  # one case of many needs it

    known = {"{run}": run, "{other}": str(saved_file(tmp_path, name="other.json")) if "{other}" in words else ""}
    assert what in refused(capsys, *(known.get(word, word) for word in words))


def test_groups_of_which_one_cannot_be_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A list of one job is refused beside others, and alone."""
    (tmp_path / "one.csv").write_text("job,submit_s\n0,1\n")
    for step in ("fit", "validate"):
        assert "fewer than two jobs" in refused(capsys, step, str(tmp_path / "one.csv"))


def test_names_of_foreign_files_cannot_change_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = streamed_run(replace(MadeStream(jobs=50), policy="\x1b[31mred"), 3)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(made))
    for step in ("fit", "validate", "predict"):
        assert "\x1b" not in said(capsys, step, str(path))


@pytest.mark.parametrize("step", ["fit", "predict", "validate", "closed"])
def test_help_of_every_step_shows_an_example(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["queue", step, "--help"])
    assert f"python -m analysis queue {step}" in capsys.readouterr().out


def test_bad_percentiles_are_bad_usage() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["queue", "predict", "--rate", "1", "--service", "0.1", "--percentiles", "100"])
