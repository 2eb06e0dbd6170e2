"""`python -m analysis scale report` on synthetic runs: replicas per job against a fixed number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analysis.__main__ import main
from control.scaling import Law, choose, time_s
from tests.analysis.answers import data, width
from tests.analysis.studies.jobs.profiles.made_cells import job, report, saved

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

LAW = Law(cost_s=4.0, serial=0.02, startup_s=0.1)
TARGET_S, SLOTS = 2.0, 8
CHOSEN, STATIC = f"job_stream:slots={SLOTS}:target_s=2", f"job_stream:replicas=2:slots={SLOTS}"
PARAMS: dict[str, dict[str, object]] = {
    CHOSEN: {"target_s": 2, "replicas": None},
    STATIC: {"target_s": None, "replicas": 2},
}
Told = dict[tuple[str, str, int], dict[str, Any]]
Reported = Callable[..., dict[str, Any]]
SAID = {
    "target_s": TARGET_S,
    "most": SLOTS,
    "laws": {
        "train": {
            "name": "amdahl",
            "law": {"cost_s": 4.0, "serial": 0.02, "crosstalk": 0.0, "startup_s": 0.1},
            "held_out": 0.01,
        }
    },
    "profile_s": 30.0,
    "profile_node_s": 55.0,
    "reachable": 0.8,
}


def stream(block: int, replicas: int | None, off: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng(block)
    rows = []
    for number, work in enumerate(rng.uniform(0.5, 4, 30).tolist()):
        many = choose(LAW, work, TARGET_S, SLOTS).replicas if replicas is None else replicas
        took_s = float(time_s(LAW, work, many)) * (1 + off)
        rows.append(
            job(number, runs=took_s, work=work, replicas=many, planned_submit_s=float(number))
        )
    found = report(rows, SLOTS)
    return found if replicas is not None else {**found, "scale": [SAID]}


def both(blocks: int = 4, off: float = 0.0) -> Told:
    told = {(CHOSEN, "stock", at): stream(at, None, off) for at in range(1, blocks + 1)}
    return told | {(STATIC, "stock", at): stream(at, 2) for at in range(1, blocks + 1)}


@pytest.fixture
def reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Reported:
    def report(told: Told, **more: dict[str, object]) -> dict[str, Any]:
        path = saved(tmp_path, told, params={name: (PARAMS | more)[name] for name, _, _ in told})
        (found,) = data(capsys, "scale", "report", path)["reports"]
        return dict(found)

    return report


def test_the_choice_is_compared_with_one_number_for_all_jobs(reported: Reported) -> None:
    found = reported(both())
    assert (found["engine"], found["slots"], found["runs"], found["alone"], found["lost"]) == (
        "pool",
        SLOTS,
        4,
        0,
        0,
    )
    chosen, static = found["arms"]
    assert (chosen["name"], static["name"]) == ("chosen for each", "2 for all")
    less = static["within"]
    assert less["high"] < 0
    assert less["value"] == pytest.approx(static["means"]["within"] - chosen["means"]["within"])
    rows = [row for block in range(1, 5) for row in stream(block, 2)["job"]]
    expected = np.mean([2 * (row["end_s"] - row["start_s"]) for row in rows])
    assert static["means"]["node_s_per_job"] == pytest.approx(expected)


def test_how_far_the_law_was_off_is_told(reported: Reported) -> None:
    """All jobs took a quarter longer than predicted: 1/1.25 is a fifth off."""
    right, wrong = (reported(both(off=off)) for off in (0.0, 0.25))
    assert (right["off"], wrong["off"]) == pytest.approx((0, 0.2), abs=1e-6)
    assert (right["reachable"], right["profile_node_s"]) == (0.8, 55.0)


def test_starting_a_job_is_no_part_of_the_time_it_ran(reported: Reported) -> None:
    """Half a second from admission to start: in the wait, not in the run."""
    rows = [
        job(at, starts=0.5, runs=2.0, work=1.0, replicas=2, planned_submit_s=float(at))
        for at in range(10)
    ]
    told: Told = {(CHOSEN, "stock", 1): {**report(rows, SLOTS), "scale": [SAID]}}
    (one,) = reported(told)["arms"]
    assert one["means"] == pytest.approx(
        {"within": 1.0, "node_s_per_job": 4, "mean_wait_s": 0.5, "replicas": 2}
    )


def test_streams_of_other_jobs_stand_alone(reported: Reported) -> None:
    told = {(CHOSEN, "stock", at): stream(at, None) for at in (1, 2, 3)} | {
        (STATIC, "stock", at): stream(at, 2) for at in (1, 2)
    }
    told[STATIC, "stock", 3] = stream(99, 2)
    found = reported(told)
    assert (found["runs"], found["alone"]) == (2, 2)


def test_losing_the_jobs_off_the_target_makes_no_way_better(reported: Reported) -> None:
    told = {
        (name, "stock", at): stream(at, many)
        for name, many in ((CHOSEN, None), (STATIC, 2))
        for at in (1, 2, 3)
    }
    for row in told[STATIC, "stock", 2]["job"][:20]:
        row["outcome"] = "failed"
    found = reported(told)
    assert found["unlike"] == ["2 for all"]
    assert found["arms"][1]["within"] is None
    assert found["lost"] == 20


def test_pages_and_refusals(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    lost = stream(2, 2)
    for row in lost["job"][:20]:
        row["outcome"] = "failed"
    chosen = {(CHOSEN, "stock", at): stream(at, None) for at in (1, 2, 3)}
    static = {(STATIC, "stock", at): stream(at, 2) for at in (1, 2, 3)}
    one = (CHOSEN, "stock", 1)
    situations: dict[str, Told] = {
        "chosen against one for all": chosen | static,
        "20 jobs lost": chosen | static | {(STATIC, "stock", 2): lost},
        "one choice alone": {one: chosen[one]},
        "no choice": static,
        "other jobs": {one: chosen[one], (STATIC, "stock", 1): stream(2, 2)},
        "tweak sets": chosen | {(STATIC, "tuned", at): stream(at, 2) for at in (1, 2, 3)},
    }
    for case, told in situations.items():
        saved(tmp_path, told, params={name: PARAMS[name] for name, _, _ in told})
        code = main(["scale", "report", "run.json"])
        out, err = capsys.readouterr()
        assert (code, bool(out), bool(err)) in {(0, True, False), (2, False, True)}
        assert width(out) <= 100
        assert (out or err) == snapshot(name=case)
