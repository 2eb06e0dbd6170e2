"""`python -m analysis queue`: output streams and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from tests.analysis.answers import data, refusals, width
from tests.analysis.studies.jobs.queues.made_streams import (
    MadeStream,
    as_csv,
    rows,
    streamed_run,
    without_rounding,
)
from tests.synthetic import Made, saved_file

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

COLUMNS = 100
RUNS = {
    "run.json": MadeStream(),
    "simulated.json": MadeStream(jobs=100, engine="simulated"),
    "full.json": MadeStream(jobs=200, rate_per_s=12),
    "closed.json": MadeStream(jobs=100, rate_per_s=12),
    "hostile.json": MadeStream(jobs=50, policy="\x1b[31mred"),
}


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    here = tmp_path_factory.mktemp("queue")
    for name, made in RUNS.items():
        run = streamed_run(made, 3)
        if name == "closed.json":
            for one in run["benchmarks"]:
                one["extra_info"]["report"]["stream"][0]["arrivals"] = {"kind": "closed", "seed": 1}
        (here / name).write_text(json.dumps(run))
    (here / "jobs.csv").write_text(as_csv(rows(MadeStream(jobs=200))))
    (here / "one.csv").write_text("job,submit_s\n0,1\n")
    (here / "wrong.csv").write_text("no list")
    saved_file(here, Made(blocks=1), name="other.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        yield


def page(capsys: pytest.CaptureFixture[str], words: str) -> str:
    assert main(["queue", *words.split()]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert width(out) <= COLUMNS
    assert "\x1b" not in out
    return out


@pytest.mark.parametrize(
    "words",
    [
        "fit full.json",
        "validate run.json --margin 30% --rate 6 --service 0.2",
        "validate full.json",
        "validate jobs.csv",
        "predict run.json --servers 2,3 --percentiles 95",
        # Jain's gateway: 90 % within 6.14 ms
        "predict --rate 125 --service 0.002 --percentiles 90",
        "predict --rate 6 --service 0.2 --servers 1,2",
        "predict --rate 20 --service 0.2 --servers 2 --room 4",
        "predict --class 1:0.3:1 --class 2:0.5:1 --class 3:0.5:1",
        "closed --users 1,10 --think 5 --demand cpu=0.05 --demand disk=0.08",
    ],
)
def test_pages(words: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert without_rounding(page(capsys, words)) == snapshot


@pytest.mark.parametrize(
    ("name", "steps", "word"),
    [
        ("simulated", ("fit", "validate", "predict"), "SIMULATED"),
        ("full", ("fit", "validate", "predict"), "UNSTABLE"),
        ("closed", ("fit", "validate", "predict"), "CLOSED"),
        ("hostile", ("fit", "validate"), r"policy \x1b[31mred"),
    ],
)
def test_what_no_reader_may_overlook_stands_on_every_page(
    name: str, steps: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [word in page(capsys, f"{step} {name}.json") for step in steps] == [True] * len(steps)


def test_a_list_of_jobs_has_a_verdict_only_with_known_slots(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "M/M/2" not in page(capsys, "validate jobs.csv")
    assert "M/M/2" in page(capsys, "validate jobs.csv --servers 2")


def test_refusals_are_one_line_on_stderr_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    asked = (
        "predict",
        "predict --rate 1",
        "predict --rate nan --service 1",
        "predict --rate 1 --service 1 --servers 0",
        "predict --rate 1 --service 1 --servers 2 --room 1",
        "predict --class 1:2",
        "predict --class 1:x:2",
        "predict --class 1:2:0.1 --rate 3",
        "predict run.json --rate 3",
        "predict gone.csv",
        "predict jobs.csv",
        "fit gone.json",
        "fit other.json",
        "fit one.csv",
        "validate one.csv",
        "validate run.json --rate 3",
        "validate run.json --margin 3",
        "closed --users 3 --demand disk",
        "closed --users 3 --demand a=1 --demand a=2",
        "closed --users 0 --demand a=1",
    )
    found = refusals(capsys, {words: ("queue", *words.split()) for words in asked})
    assert found == snapshot


def test_fits_and_validations_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    (fit,) = data(capsys, "queue fit run.json")["fits"]
    assert (fit["intervals"], len(fit["laws"])) == ("are from 3 runs, which are the replicates", 3)
    assert fit["rate_per_s"]["low"] < 6 < fit["rate_per_s"]["high"]
    (found,) = data(capsys, "queue validate run.json --rate 6 --service 0.2")["validations"]
    assert found["held"][0]["predicted_s"] == pytest.approx(0.1125)
    assert abs(found["held"][0]["z"]) < 3
    assert data(capsys, "queue validate closed.json")["validations"][0]["held"] == []


def test_predictions_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = data(capsys, "queue predict --rate 0.8 --service 1 --scv-service 4")["predictions"]
    waits = {one["queue"]["model"]: one["queue"]["wait_s"] for one in found["models"]}
    assert waits == pytest.approx({"M/M/1": 4, "M/G/1": 10, "G/G/1 Kingman": 10})
    two, three = (
        one["models"][0]["wait_s"]
        for one in data(capsys, "queue predict run.json --servers 2,3")["predictions"]
    )
    assert two["low"] < 0.1125 < two["high"]
    assert three["value"] < two["low"]
    first, second = data(capsys, "queue predict --class 1:0.3:1 --class 2:0.5:1:1")["answers"][0][
        "classes"
    ]
    assert (first["wait_s"], second["wait_s"]) == pytest.approx((0.8 / 0.7, 0.8 / 0.14))
    found = data(capsys, "queue closed --users 2 --demand cpu=1 --demand disk=2")
    assert found["answers"][0]["rate_per_s"] == pytest.approx(3 / 7)


@pytest.mark.parametrize("step", ["fit", "validate", "predict"])
def test_what_cannot_be_used_is_refused_and_the_rest_is_done(
    step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["queue", step, "simulated.json", "wrong.csv"]) == 0
    out, err = capsys.readouterr()
    assert out
    assert err.startswith("refused: wrong.csv")


@pytest.mark.parametrize(
    ("rows_of_csv", "what"),
    [
        ("0,0,5\n1,5,9", "gaps between arrivals"),
        ("0,0,0\n1,1,1\n3,3,3", "service times are 0"),
        ("0,,\n1,,\n3,,", "when jobs held a slot"),
    ],
    ids=["two jobs", "jobs of no time", "a trace of arrivals"],
)
@pytest.mark.parametrize("step", ["validate", "predict"])
def test_why_no_model_applies(
    step: str, rows_of_csv: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = enumerate(rows_of_csv.splitlines(), 1)
    Path("few.csv").write_text(
        "\n".join(["job,submit_s,start_s,end_s", *(f"{at},{row}" for at, row in lines)])
    )
    assert main(["queue", step, "few.csv", "--servers", "1"]) == 0
    answer = " ".join(capsys.readouterr().out.split())  # lines are folded
    assert what in answer.partition("no model applies")[0]
