"""`python -m analysis predict`: output and exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from analysis.__main__ import main
from fixtures.studies.jobs.classes import read as read_classes
from tests.analysis.answers import data, refusals, width
from tests.analysis.studies.jobs.prediction.made import as_csv, law, rows, streams

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

COLUMNS = 100
CLASSES = """\
description: two classes
classes:
  - {name: short, kind: sleep, probability: 0.6, size: {law: exponential, mean: 0.2}, \
predicted_s_per_work: 9, prediction_scv: 0.5}
  - {name: long, kind: spin, probability: 0.4, size: {law: exponential, mean: 0.2}, replicas: 2}
"""


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    here = tmp_path_factory.mktemp("predict")
    measured = as_csv(rows(runs=12))
    twin = as_csv(rows()).splitlines()
    files = {
        "classes.yaml": CLASSES,
        "measured.csv": measured,
        "few.csv": as_csv(rows(runs=2)),
        "cold.csv": as_csv([one for one in rows(runs=2) if one.factors["cache"] == "cold"]),
        "tiny.csv": as_csv([one for one in rows(runs=2) if str(one.factors["batch"]) < "2"]),
        "alike.csv": "n,time_s\n" + "1,1\n" * 3,
        "twin.csv": "".join(
            f"{line},{'twin' if at == 0 else line.split(',')[0] + 'x'}\n"
            for at, line in enumerate(twin)
        ),
        "bare.csv": "job,submit_s,start_s,end_s,class\n"
        + "".join(f"{at},0,0,{at + 1},a\n" for at in range(9)),
        "broken.yaml": "a: [",
        "three.yaml": "classes: 3",
        "other.yaml": "classes: [{name: other}]",
    }
    for name, text in files.items():
        (here / name).write_text(text, encoding="utf-8")
    streams(here)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        yield


@pytest.mark.parametrize(
    "words",
    [
        "cv measured.csv --models ridge --level 80%",
        "cv few.csv --models ridge",
        "fit measured.csv",
        "show measured.csv --at batch=4 cache=cold --at batch=64 cache=hot",
        "show cold.csv --at batch=4",
        "show streams.json --model work --at class=short work=1 --at class=huge work=1",
        "service streams.json --model work",
    ],
)
def test_pages(words: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert main(["predict", *words.split()]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert width(out) <= COLUMNS
    assert out == snapshot


def test_refusals_are_one_line_on_stderr_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    asked = (
        "cv tiny.csv --models ridge",
        "cv alike.csv",
        "cv measured.csv --models forest",
        "cv measured.csv --response tim_s",
        "cv measured.csv --without bach",
        "show measured.csv --at batch",
        "show measured.csv --at size=3",
        "show measured.csv --at batch=many",
        "show measured.csv --at batch=4 --model forest",
        "show measured.csv --at batch=4 --level 90",
        "show twin.csv --at twin=4x",
        "service streams.json --classes broken.yaml",
        "service streams.json --classes three.yaml",
        "service streams.json --classes other.yaml --model work",
        "service streams.json --classes classes.yaml -o classes.yaml",
        "service streams.json -o new.yaml",
        "service bare.csv",
    )
    found = refusals(capsys, {words: ("predict", *words.split()) for words in asked})
    assert found == snapshot
    assert Path("classes.yaml").read_text(encoding="utf-8") == CLASSES


def test_json_of_a_validation_has_all_held_out_predictions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, one = data(capsys, "predict cv measured.csv --models ridge")["validations"]
    assert [model["model"] for model in one["scored"]] == ["mean", "ridge"]
    assert one["scored"][0]["difference"] is None
    ridge = one["held_out"]["ridge"]
    assert len(ridge["predicted"]) == len(one["measured"]) == len(one["units"]) == 144
    assert all(
        low < value < high
        for low, value, high in zip(ridge["low"], ridge["predicted"], ridge["high"], strict=True)
    )


def test_points_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    inside, beyond = data(
        capsys, "predict show measured.csv --at batch=4 cache=cold --at batch=64 cache=hot"
    )["predictions"]
    assert inside["value"] == pytest.approx(law(4, "cold"), rel=0.03)
    assert inside["low"] < inside["value"] < inside["high"]
    assert (inside["beyond"], len(beyond["beyond"])) == ([], 2)
    (lacking,) = data(capsys, "predict show measured.csv --at batch=8")["predictions"]
    assert lacking["factors"] == {"batch": 8, "cache": "cold"}
    (few,) = data(capsys, "predict show cold.csv --at batch=4")["predictions"]
    assert (few["low"], few["high"]) == (None, None)
    inside, unknown = data(
        capsys,
        "predict show streams.json --model work --at class=short work=1 --at class=huge work=1",
    )["predictions"]
    assert inside["value"] == pytest.approx(1.05, rel=0.05)
    assert (unknown["value"], unknown["low"]) == (None, None)


def test_predicted_times_go_back_to_the_scheduler() -> None:
    """Per unit of work, `long` takes 2 s (on two replicas), `short` 1 s, and 0.05 s per job."""
    out = Path("predicted.yaml")
    assert (
        main(["predict", "service", "streams.json", "--classes", "classes.yaml", "-o", str(out)])
        == 0
    )
    written = yaml.safe_load(out.read_text(encoding="utf-8"))
    short, long = written["classes"]
    assert long["predicted_s_per_work"] == pytest.approx(2, rel=0.1)
    assert short["predicted_s_per_work"] == pytest.approx(1 + 0.05 / 0.21, rel=0.15)
    assert "prediction_scv" not in short
    assert [one.predicted_s_per_work for one in read_classes(out)] == [
        short["predicted_s_per_work"],
        long["predicted_s_per_work"],
    ]
    assert (written["description"], long["replicas"]) == ("two classes", 2)
