"""`python -m analysis predict`: what is printed, and with which exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from analysis.__main__ import main
from fixtures.jobs.classes import read as read_classes
from tests.analysis.predicting.made import as_csv, law, rows, streams

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = 100
CLASSES = """\
description: two classes
classes:
  - {name: short, kind: sleep, probability: 0.6, size: {law: exponential, mean: 0.2}, predicted_s_per_work: 9, prediction_scv: 0.5}
  - {name: long, kind: spin, probability: 0.4, size: {law: exponential, mean: 0.2}, replicas: 2}
"""


@pytest.fixture
def measured(tmp_path: Path) -> str:
    path = tmp_path / "measured.csv"
    path.write_text(as_csv(rows(runs=12)), encoding="utf-8")
    return str(path)


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    path = tmp_path / "classes.yaml"
    path.write_text(CLASSES, encoding="utf-8")
    return path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["predict", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= COLUMNS
    return " ".join(out.split())


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:  # noqa: ANN401  # JSON
    assert main(["predict", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["predict", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_a_validation_on_a_page(measured: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "cv", measured, "--models", "ridge", "--level", "80%")
    for words in (
        "144 rows; varied: cache, batch",
        "12 configurations left out in 10 folds",
        "12 runs left out in 10 folds",
        "better",
        "CV+ over groups",
    ):
        assert words in out


def test_a_validation_for_programs_holds_every_prediction_of_a_row_left_out(measured: str, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = told(capsys, "cv", measured, "--by", "run", "--models", "ridge")["validations"]
    assert [model["model"] for model in one["models"]] == ["mean", "ridge"]
    assert one["models"][0]["difference"] is None
    ridge = one["held_out"]["ridge"]
    assert len(ridge["predicted"]) == len(one["measured"]) == len(one["units"]) == 144
    assert all(low < value < high for low, value, high in zip(ridge["low"], ridge["predicted"], ridge["high"], strict=True))


def test_too_few_groups_are_refused_one_way_and_said_beside_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.csv"
    path.write_text(as_csv(rows(runs=2)), encoding="utf-8")
    assert "time_s by run: 2 groups; leaving groups out takes 5 at least." in said(capsys, "cv", str(path), "--models", "ridge")
    assert "time_s by run: 2 groups" in refused(capsys, "cv", str(path), "--by", "run")


def test_what_a_model_leans_on_and_how_far_it_may_be_trusted(measured: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "fit", measured)
    assert "factor taken from another row, ridge moves typically by batch" in out
    assert "time_s of 12 configurations left out in 10 folds: ridge is typically" in out
    assert "shown to be better" in out
    leans = told(capsys, "fit", measured)["leans_on"]
    assert leans["batch"] > leans["cache"] > 0.5


def test_a_point_is_predicted_with_an_interval_and_extrapolations_are_named(measured: str, capsys: pytest.CaptureFixture[str]) -> None:
    inside, beyond = told(capsys, "show", measured, "--at", "batch=4", "cache=cold", "--at", "batch=64", "cache=hot")["predictions"]
    assert inside["value"] == pytest.approx(law(4, "cold"), rel=0.03)
    assert inside["low"] < inside["value"] < inside["high"]
    assert inside["beyond"] == []
    assert beyond["beyond"] == ["batch=64 was measured from 1 to 32", "cache=hot was never measured (cold, warm were)"]
    assert "EXTRAPOLATED: batch=64 was measured from 1 to 32" in said(capsys, "show", measured, "--at", "batch=64", "cache=cold")


def test_without_enough_groups_there_is_no_interval_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.csv"
    path.write_text(as_csv([one for one in rows(runs=2) if one.factors["cache"] == "cold"]), encoding="utf-8")
    (found,) = told(capsys, "show", str(path), "--at", "batch=4")["predictions"]
    assert (found["low"], found["high"]) == (None, None)
    assert "no interval: too few groups" in said(capsys, "show", str(path), "--at", "batch=4")


def test_points_of_a_file_and_the_commonest_value_where_one_is_not_said(
    measured: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = tmp_path / "points.csv"
    points.write_text("batch\n8\n16\n", encoding="utf-8")
    found = told(capsys, "show", measured, "--points", str(points))["predictions"]
    assert [one["factors"] for one in found] == [{"batch": 8, "cache": "cold"}, {"batch": 16, "cache": "cold"}]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "which points?"),
        (("--at", "batch"), "'batch': a factor is given as name=value."),
        (("--at", "size=3"), "size: is no factor that varied; there are batch, cache."),
        (("--at", "batch=many"), "batch: 'many' is no number"),
        (("--at", "batch=4", "--model", "forest"), "forest: is no model of these rows; there are ridge, trees, gp."),
        (("--at", "batch=4", "--level", "90"), "is no percentage"),
    ],
)
def test_points_that_are_none_are_refused(measured: str, words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert why in refused(capsys, "show", measured, *words)


def test_a_factor_that_stands_for_another_too_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "measured.csv"
    path.write_text(
        "".join(f"{line},{'twin' if at == 0 else line.split(',')[0] + 'x'}\n" for at, line in enumerate(as_csv(rows()).splitlines()))
    )
    why = refused(capsys, "show", str(path), "--at", "twin=4x")
    assert "twin: these rows cannot tell it from batch, which stands for both; give batch." in why


def test_predicted_times_go_back_to_the_scheduler(tmp_path: Path, classes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`long` takes 2 s a unit of work on one replica and ran on two; `short` 1 s and 0.05 s a job."""
    out = tmp_path / "predicted.yaml"
    page = said(capsys, "service", streams(tmp_path), "--classes", str(classes), "-o", str(out))
    assert "pairs in order" in page
    written = yaml.safe_load(out.read_text(encoding="utf-8"))
    short, long = written["classes"]
    assert long["predicted_s_per_work"] == pytest.approx(2, rel=0.1)
    assert short["predicted_s_per_work"] == pytest.approx(1 + 0.05 / 0.21, rel=0.15)
    assert "prediction_scv" not in short
    assert [one.predicted_s_per_work for one in read_classes(out)] == [short["predicted_s_per_work"], long["predicted_s_per_work"]]
    assert (written["description"], long["replicas"]) == ("two classes", 2)


def test_a_law_that_cannot_tell_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = streams(tmp_path)
    inside, unknown = told(capsys, "show", run, "--model", "work", "--at", "class=short", "work=1", "--at", "class=huge", "work=1")[
        "predictions"
    ]
    assert inside["value"] == pytest.approx(1.05, rel=0.05)
    assert (unknown["value"], unknown["low"]) == (None, None)
    assert "– this law cannot tell:" in said(capsys, "show", run, "--model", "work", "--at", "class=huge", "work=1")


def test_predicted_times_for_programs_say_how_far_off_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "service", streams(tmp_path), "--model", "work")
    short, long = sorted(found["classes"], key=lambda one: -one["jobs"])
    assert (short["name"], long["name"]) == ("short", "long")
    assert short["off"] < 0.05
    assert short["ordered"] > 0.95
    assert long["predicted_s_per_work"] == pytest.approx(long["measured_s_per_work"], rel=0.05)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "is no YAML"),
        ("classes: 3", "has no list of classes with names"),
        ("classes: [{name: other}]", "class other was not measured"),
    ],
)
def test_a_file_of_classes_that_is_none_or_of_others_is_refused(
    tmp_path: Path, classes: Path, text: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    classes.write_text(text, encoding="utf-8")
    assert why in refused(capsys, "service", streams(tmp_path), "--classes", str(classes))


def test_no_file_is_written_over(tmp_path: Path, classes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = streams(tmp_path)
    assert "is what is read" in refused(capsys, "service", run, "--classes", str(classes), "-o", str(classes))
    assert "--classes says which" in refused(capsys, "service", run, "-o", str(tmp_path / "new.yaml"))


def test_jobs_without_class_or_work_cannot_be_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job,submit_s,start_s,end_s,class\n" + "".join(f"{at},0,0,{at + 1},a\n" for at in range(9)), encoding="utf-8")
    assert "9 of 9 jobs tell no class or no work" in refused(capsys, "service", str(path))
