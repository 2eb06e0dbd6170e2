"""`python -m analysis depend`: output streams and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from analysis.__main__ import main
from tests.analysis.answers import data, refusals, width
from tests.analysis.studies.jobs.dependability.made_faults import (
    Faulty,
    faulty_run,
    report,
    told_run,
)
from tests.analysis.studies.jobs.dependability.test_network import MadeLine, root, saved

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

COLUMNS = 100
KILLS = ":retries=1000:fault=kill:fault_rate_per_s=1"
ARMS = (
    Faulty(),
    Faulty(":fault=cpu_hog", "cpu_hog", slower=1.5),
    Faulty(":fault=io_hog", "io_hog", slower=1.001),
    Faulty(":fault=flood", "flood", flood=40),
    Faulty(KILLS, "kill", mtbf_s=3.0, restart_s=0.012),
)


def poisoned(name: str, many: int, block: int) -> dict[str, list[dict[str, Any]]]:
    rows = report(Faulty(jobs=10), block)
    rows["stream"][0]["classes"] = [
        {"name": "small", "kind": "federated", "params": {"aggregation": name, "poisoned": many}}
    ]
    for row in rows["job"]:
        row["result"] = {"accuracy": 0.9 - 0.05 * many + 0.01 * block}
    return rows


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    here = tmp_path_factory.mktemp("depend")
    classes = {
        "federated": ("fedavg", 0),
        "federated_poisoned": ("fedavg", 4),
        "federated_median": ("median", 3),
    }
    clients = {
        (f"job_stream:classes={at}", block): poisoned(*how, block)
        for at, how in classes.items()
        for block in (1, 2, 3)
    }
    runs = {
        "arms.json": faulty_run(ARMS),
        "near.json": faulty_run((Faulty(), Faulty(":fault=io_hog", "io_hog", slower=1.03))),
        "plain.json": faulty_run((Faulty(jobs=20),), blocks=1),
        "one_block.json": faulty_run(ARMS[:2], blocks=1),
        "no_twin.json": faulty_run(ARMS[1:2], blocks=1),
        "poisoned.json": told_run(clients),
        "other.json": told_run({("cnn_train", 1): {}}),
    }
    lines = {
        "lines.json": MadeLine(root, losses=(0.0, 1.0, 3.0)),
        "short_trips.json": MadeLine(root, losses=(1.0, 15.0), congestion="cubic", rtt_s=1e-4),
        "lossless.json": MadeLine(root, losses=(0.0,)),
    }
    for name, made in lines.items():
        saved(here, made)
        (here / "run.json").rename(here / name)
    for name, run in runs.items():
        (here / name).write_text(json.dumps(run))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        yield


@pytest.mark.parametrize(
    "words",
    [
        "report arms.json",
        "report plain.json",
        "report one_block.json",
        "report no_twin.json",
        "report poisoned.json",
        "network lines.json",
        "network short_trips.json",
    ],
)
def test_pages(words: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert main(["depend", *words.split()]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert width(out) <= COLUMNS
    assert out == snapshot


def test_refusals_are_one_line_on_stderr_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    asked = (
        "report other.json",
        "report near.json --margin 0.1",
        "network other.json",
        "network lossless.json",
    )
    found = refusals(capsys, {words: ("depend", *words.split()) for words in asked})
    assert found == snapshot


def test_a_report_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "depend report arms.json")
    arms = {arm["fault"]: arm for arm in found["arms"]}
    assert list(arms) == ["", "cpu_hog", "flood", "io_hog", "kill"]
    assert [arm["isolation"] for arm in arms.values()] == [
        None,
        "not isolated",
        "not isolated",
        "isolated",
        None,
    ]
    # The time in service alone, and waits grow more.
    assert arms["cpu_hog"]["slowdown"]["low"] > 1.5
    assert arms["kill"]["figures"]["useful"]["value"] < 1
    assert arms["kill"]["figures"]["restart_s"]["value"] == pytest.approx(0.012)
    # Of the flood's own jobs none is in the slowdown, but all are done.
    assert arms["flood"]["outcomes"] == {"done": 800}
    assert (found["margin"], found["refused"]) == (0.1, [])


@pytest.mark.parametrize(("margin", "word"), [("30%", "isolated"), ("1%", "not isolated")])
def test_the_margin_is_what_is_asked_for(
    margin: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, hog = data(capsys, f"depend report near.json --margin {margin}")["arms"]
    assert hog["isolation"] == word
