"""`python -m analysis scale report`: replicas chosen for each job against one number for all, on real jobs. The runs here are made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.scaling.laws import choose, time_s
from analysis.scaling.terms import Law
from tests.analysis.jobs.made_cells import job, report, saved

if TYPE_CHECKING:
    from pathlib import Path

LAW = Law(cost_s=4.0, serial=0.02, startup_s=0.1)
TARGET_S, SLOTS = 2.0, 8
CHOSEN, STATIC = f"job_stream:slots={SLOTS}:target_s=2", f"job_stream:replicas=2:slots={SLOTS}"
SAID = {
    "target_s": TARGET_S,
    "most": SLOTS,
    "laws": {"train": {"name": "amdahl", "law": {"cost_s": 4.0, "serial": 0.02, "crosstalk": 0.0, "startup_s": 0.1}, "held_out": 0.01}},
    "profile_s": 30.0,
    "profile_node_s": 55.0,
    "reachable": 0.8,
}


def stream(block: int, replicas: int | None, off: float = 0.0) -> dict[str, Any]:
    """Thirty jobs by the law, in each block other sizes; `replicas` None: chosen for each."""
    rng = np.random.default_rng(block)
    rows = []
    for number, work in enumerate(rng.uniform(0.5, 4, 30).tolist()):
        many = choose(LAW, work, TARGET_S, SLOTS).replicas if replicas is None else replicas
        took_s = float(time_s(LAW, work, many)) * (1 + off)
        rows.append(job(number, runs=took_s, work=work, replicas=many, planned_submit_s=float(number)))
    found = report(rows, SLOTS)
    return found if replicas is not None else {**found, "scale": [SAID]}


def run(folder: Path, blocks: int = 4, off: float = 0.0, **more: Any) -> Path:  # noqa: ANN401
    told = {(CHOSEN, "stock", at): stream(at, None, off) for at in range(1, blocks + 1)}
    told |= {(STATIC, "stock", at): stream(at, 2) for at in range(1, blocks + 1)}
    params = {CHOSEN: {"target_s": 2, "replicas": None}, STATIC: {"target_s": None, "replicas": 2}}
    return saved(folder, told, params=params, **more)


def reported(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["scale", "report", str(path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["reports"]
    return dict(found)


def test_the_choice_is_held_against_one_number_for_all_on_the_same_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = reported(run(tmp_path), capsys)
    assert (found["engine"], found["slots"], found["runs"], found["alone"], found["lost"]) == ("pool", SLOTS, 4, 0, 0)
    chosen, static = found["arms"]
    assert (chosen["name"], static["name"]) == ("chosen for each", "2 for all")
    mean, low, _ = static["more_within"]
    assert low > 0
    more = [mine["within"] - theirs["within"] for mine, theirs in zip(chosen["seeds"], static["seeds"], strict=True)]
    assert mean == pytest.approx(np.mean(more))


def test_jobs_and_their_node_seconds_are_counted_by_start_and_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = stream(1, 2)["job"]
    expected = np.mean([2 * (row["end_s"] - row["start_s"]) for row in rows])
    assert reported(run(tmp_path), capsys)["arms"][1]["seeds"][0]["node_s_per_job"] == pytest.approx(expected)


def test_how_far_the_law_was_off_and_to_which_side_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All jobs took a quarter more than it said: 1/1.25 is a fifth off, and what fitted is too late."""
    right, wrong = (reported(run(tmp_path, off=off), capsys) for off in (0.0, 0.25))
    assert right["off"] == pytest.approx(0, abs=1e-6)
    assert wrong["off"] == pytest.approx(0.2)
    assert wrong["late"] > right["late"]
    assert right["late"] + right["early"] + np.mean([one["within"] for one in right["arms"][0]["seeds"]]) == pytest.approx(1)
    assert (right["reachable"], right["profile_node_s"]) == (0.8, 55.0)


def test_starting_a_job_is_no_part_of_the_time_it_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half a second from admission to start: in the response, not in the run."""
    rows = [job(at, starts=0.5, runs=2.0, work=1.0, replicas=2, planned_submit_s=float(at)) for at in range(10)]
    path = saved(tmp_path, {(CHOSEN, "stock", 1): {**report(rows, SLOTS), "scale": [SAID]}}, params={CHOSEN: {"replicas": None}})
    (one,) = reported(path, capsys)["arms"][0]["seeds"]
    assert (one["within"], one["within_waited"]) == (1.0, 0.0)
    assert one["node_s_per_job"] == pytest.approx(4)


def test_other_numbers_of_slots_are_no_part_of_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "job_stream:replicas=4:slots=4"
    told = {(CHOSEN, "stock", 1): stream(1, None), (STATIC, "stock", 1): stream(1, 2)}
    told[other, "stock", 1] = {**stream(1, 4), "stream": report([job()], slots=4)["stream"]}
    params: dict[str, dict[str, object]] = {CHOSEN: {"replicas": None}, STATIC: {"replicas": 2}, other: {"replicas": 4}}
    assert [one["name"] for one in reported(saved(tmp_path, told, params=params), capsys)["arms"]] == ["chosen for each", "2 for all"]


def test_streams_of_other_jobs_stand_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = {(CHOSEN, "stock", at): stream(at, None) for at in (1, 2, 3)} | {(STATIC, "stock", at): stream(at, 2) for at in (1, 2)}
    told[STATIC, "stock", 3] = stream(99, 2)
    found = reported(saved(tmp_path, told, params={STATIC: {"replicas": 2}, CHOSEN: {"replicas": None}}), capsys)
    assert (found["runs"], found["alone"]) == (2, 2)


def test_a_way_that_loses_the_jobs_off_the_target_is_no_better_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = {(name, "stock", at): stream(at, many) for name, many in ((CHOSEN, None), (STATIC, 2)) for at in (1, 2, 3)}
    for row in told[STATIC, "stock", 2]["job"][:20]:
        row["outcome"] = "failed"
    path = saved(tmp_path, told, params={CHOSEN: {"replicas": None}, STATIC: {"replicas": 2}})
    found = reported(path, capsys)
    assert found["unlike"] == ["2 for all"]
    assert found["arms"][1]["more_within"] is None
    assert main(["scale", "report", str(path)]) == 0
    assert "Not held against the choice: 2 for all, of which other jobs were done" in " ".join(capsys.readouterr().out.split())


def test_jobs_that_were_not_done_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = stream(1, 2)
    lost["job"][3] |= {"outcome": "killed"}
    told = {(CHOSEN, "stock", 1): stream(1, None), (STATIC, "stock", 1): lost}
    found = reported(saved(tmp_path, told, params={STATIC: {"replicas": 2}, CHOSEN: {"replicas": None}}), capsys)
    assert found["lost"] == 1
    assert len(found["arms"][1]["seeds"]) == 1


def test_one_stream_and_a_choice_alone_say_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, {(CHOSEN, "stock", 1): stream(1, None)}, params={CHOSEN: {"replicas": None}})
    assert main(["scale", "report", str(path)]) == 0
    said = capsys.readouterr().out
    assert "Nothing stands beside the choice" in said
    assert "Fewer than 3 streams: nothing has an interval" in said


def test_a_page_has_shares_node_seconds_and_what_the_profile_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "report", str(run(tmp_path))]) == 0
    said = capsys.readouterr().out
    assert "chosen for each against" in said
    assert "Measuring beforehand took 55 node-seconds a stream." in said
    assert all(len(line) <= 100 for line in said.splitlines())


def test_without_a_choice_there_is_nothing_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, {(STATIC, "stock", 1): stream(1, 2)}, params={STATIC: {"replicas": 2}})
    assert main(["scale", "report", str(path)]) == 2
    assert "No stream had its replicas chosen" in capsys.readouterr().err


def test_jobs_that_no_two_ways_shared_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = {(CHOSEN, "stock", 1): stream(1, None), (STATIC, "stock", 1): stream(2, 2)}
    assert main(["scale", "report", str(saved(tmp_path, told, params={STATIC: {"replicas": 2}, CHOSEN: {"replicas": None}}))]) == 2
    assert "no jobs met every way of scaling" in capsys.readouterr().err


def test_two_streams_carry_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, static = reported(run(tmp_path, blocks=2), capsys)["arms"]
    assert (static["more_within"], static["node_seconds"]) == (None, None)


def test_streams_under_a_tweak_set_are_not_mixed_with_those_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = {(STATIC, "tuned", at): stream(at, 2) for at in (1, 2, 3)} | {(CHOSEN, "stock", at): stream(at, None) for at in (1, 2, 3)}
    assert main(["scale", "report", str(saved(tmp_path, told))]) == 2
    assert "under several tweak sets (stock, tuned) are never mixed" in capsys.readouterr().err
