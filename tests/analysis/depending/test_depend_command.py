"""`python -m analysis depend`: what is printed where, and with which exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from analysis.__main__ import main
from tests.analysis.depending.made_faults import Faulty, faulty_run, report, told_run
from tests.analysis.depending.test_network import MadeLine, root, saved

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = 100
KILLS = ":retries=1000:fault=kill:fault_rate_per_s=1"
LONG = Faulty(work_s=1.5, rate_per_s=0.5, jobs=40)
ARMS = (
    Faulty(),
    Faulty(":fault=cpu_hog", "cpu_hog", slower=1.5),
    Faulty(":fault=io_hog", "io_hog", slower=1.001),
    Faulty(":fault=flood", "flood", flood=40),
    Faulty(KILLS, "kill", mtbf_s=3.0),
)


def written(folder: Path, run: Any) -> str:  # noqa: ANN401  # JSON
    path = folder / "run.json"
    path.write_text(json.dumps(run))
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The page, which fits its width; nothing beside it."""
    assert main(["depend", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= COLUMNS
    return out


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:  # noqa: ANN401  # JSON
    assert main(["depend", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["depend", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_a_report_on_a_page_and_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, faulty_run(ARMS))
    out = said(capsys, "report", path)
    for words in ("cpu_hog: not isolated (margin 10 %", "io_hog: isolated", "flood: not isolated", "600/600", "100.00 %"):
        assert words in out
    found = told(capsys, "report", path)
    arms = {arm["label"]: arm for arm in found["arms"]}
    assert list(arms) == ["no fault", "cpu_hog", "flood", "io_hog", "kill rate_per_s=1"]
    assert arms["cpu_hog"]["slowdown"]["low"] > 1.5  # the time in service alone, and waits grow more
    assert arms["kill rate_per_s=1"]["useful"]["value"] < 1
    assert arms["kill rate_per_s=1"]["restart_s"]["value"] == pytest.approx(0.01)
    # Of the flood's own jobs none is in the slowdown, but all are done.
    assert arms["flood"]["outcomes"] == {"done": 800}
    assert (found["margin"], found["refused"]) == (0.1, [])


def test_the_margin_is_what_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, faulty_run((Faulty(), Faulty(":fault=io_hog", "io_hog", slower=1.03))))
    assert "io_hog: isolated" in said(capsys, "report", path, "--margin", "30%")
    assert "io_hog: not isolated" in said(capsys, "report", path, "--margin", "1%")
    assert "no percentage" in refused(capsys, "report", path, "--margin", "0.1")


def test_a_run_without_faults_and_one_of_a_single_block_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "No stream of these had a fault" in said(capsys, "report", written(tmp_path, faulty_run((Faulty(),))))
    out = said(capsys, "report", written(tmp_path, faulty_run(ARMS[:2], blocks=1)))
    assert "fewer than 3 blocks" in out
    assert "cpu_hog: not judged" in out


def test_what_a_fault_is_held_against_may_be_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "have no twin without faults" in " ".join(said(capsys, "report", written(tmp_path, faulty_run(ARMS[1:2]))).split())


def test_poisoned_clients_on_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def cell(name: str, block: int, poisoned: int) -> dict[str, list[dict[str, Any]]]:
        rows = report(replace(Faulty(), jobs=10), block)
        rows["stream"][0]["classes"] = [{"name": "small", "kind": "federated", "params": {"aggregation": name, "poisoned": poisoned}}]
        for row in rows["job"]:
            row["result"] = {"accuracy": 0.9 - 0.05 * poisoned + 0.01 * block}
        return rows

    arms = {"federated": ("fedavg", 0), "federated_poisoned": ("fedavg", 4), "federated_median": ("median", 2)}
    cells = {(f"job_stream:classes={name}", block): cell(how, block, bad) for name, (how, bad) in arms.items() for block in (1, 2, 3)}
    path = written(tmp_path, told_run(cells))
    out = said(capsys, "report", path)
    assert "accuracy of federated runs" in out
    assert "is held against aggregation=fedavg" in out
    drops = {(one["setting"], one["poisoned"]): one["drop"] for one in told(capsys, "report", path)["poisonings"]}
    assert drops["aggregation=fedavg", 0] is None
    assert drops["aggregation=fedavg", 4]["value"] == pytest.approx(0.2)
    assert drops["aggregation=median", 2]["value"] == pytest.approx(0.1)


def test_young_and_daly_on_a_page_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """5 min and a day, in minutes: 120 and 116.690."""
    out = said(capsys, "checkpoint", "--cost-s", "300", "--mtbf-s", "86400")
    assert "7200" in out
    assert "7001.39" in out
    advice = told(capsys, "checkpoint", "--cost-s", "5", "--mtbf-s", "1440")["advice"]
    assert (advice["young_s"], round(advice["daly_s"], 3)) == (120, 116.69)
    assert "do not hold" in said(capsys, "checkpoint", "--cost-s", "60", "--mtbf-s", "100")


def test_intervals_that_were_tried_on_a_page_and_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tried = [replace(LONG, words=f"{KILLS}:checkpoint_s={one:g}", fault="kill", mtbf_s=1.0, checkpoint_s=one) for one in (0.05, 0.2, 0.8)]
    path = written(tmp_path, faulty_run([LONG, *tried]))
    out = said(capsys, "checkpoint", path)
    for words in ("Daly's lies inside", "one running job fails every", "a checkpoint took 0.0200 s"):
        assert words in out
    (trial,) = told(capsys, "checkpoint", path)["trials"]
    assert [one["checkpoint_s"] for one in trial["tried"]] == [0.05, 0.2, 0.8]
    # What is given takes the place of what was measured.
    (given,) = told(capsys, "checkpoint", path, "--cost-s", "0.08")["trials"]
    assert given["advice"]["young_s"] == pytest.approx(2 * trial["advice"]["young_s"])
    assert "no fault met more than one" in refused(capsys, "checkpoint", written(tmp_path, faulty_run(ARMS[:2], blocks=1)))


@pytest.mark.parametrize("words", [(), ("--cost-s", "5"), ("--mtbf-s", "5")])
def test_an_interval_of_nothing_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert "--cost-s and --mtbf-s" in refused(capsys, "checkpoint", *words)


def test_lines_on_a_page_and_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, MadeLine(root, losses=(0.0, 1.0, 3.0)))
    out = said(capsys, "network", path)
    for words in ("as √p, as Mathis has it", "round trip 20.0 ms, segments of 1448 bytes, reno", "Mathis"):
        assert words in out
    (line,) = told(capsys, "network", path)["lines"]
    assert (line["shape"], line["fitted"]) == ("√p", [0.01, 0.03])
    assert "no cell lost packets" in refused(capsys, "network", saved(tmp_path, MadeLine(root, losses=(0.0,))))


def test_a_simulation_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("simulate", "--cost-s", "5", "--mtbf-s", "1440", "--work-s", "14400", "--seeds", "20")
    out = said(capsys, *words)
    assert out.startswith("SIMULATED: 20 jobs")
    assert "at random" in out
    assert "Weibull's law of shape 0.7" in said(capsys, *words, "--shape", "0.7")
    found = told(capsys, *words, "--intervals-s", "60,240")
    assert [round(one["interval_s"], 2) for one in found["intervals"]] == [60, 116.69, 240]
    assert "write seconds" in refused(capsys, *words, "--intervals-s", "an hour")


@pytest.mark.parametrize("step", ["report", "checkpoint", "network"])
def test_a_run_of_something_else_is_refused_by_name(step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "run.json" in refused(capsys, step, written(tmp_path, told_run({("cnn_train", 1): {}})))
