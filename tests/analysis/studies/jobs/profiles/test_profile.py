"""`python -m analysis jobs profile`: where the time of jobs goes, by class and system.

The runs here are made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.load import load_each, parsed
from analysis.studies.jobs.claims import apart
from analysis.studies.jobs.records import of_one_machine
from tests.analysis.answers import data, width
from tests.analysis.studies.jobs.dependability.made_faults import faulty_run
from tests.analysis.studies.jobs.dependability.test_depend_command import ARMS
from tests.analysis.studies.jobs.dependability.test_network import MadeLine, root
from tests.analysis.studies.jobs.dependability.test_network import saved as lossy
from tests.analysis.studies.jobs.profiles.made_cells import job, report, saved
from tests.analysis.studies.jobs.simulation.test_scale_report import PARAMS
from tests.analysis.studies.jobs.simulation.test_scale_report import both as scaled

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


HALF, ONE = "job_stream:cores=0.5", "job_stream:cores=1"


@pytest.fixture
def profiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(told: Mapping[tuple[str, str, int], Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        return dict(data(capsys, "jobs", "profile", saved(tmp_path, told, **more)))

    return ask


def one(found: dict[str, Any]) -> dict[str, Any]:
    (row,) = found["profile"]
    return dict(row)


def parts(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: figure["value"] for name, figure in row["parts"].items()}


def test_response_time_is_wait_start_computing_limit_and_rest(profiled: Any) -> None:
    """Of 10 s: 2 waiting, 1 starting; of 7 at work, 3.5 computing and 2.1 throttled on one CPU."""
    told = report([job(waits=2, starts=1, runs=7, cpu_s=3.5, throttled_s=2.1)])
    row = one(profiled({(HALF, "stock", 1): told}))
    assert parts(row) == pytest.approx(
        {"waiting": 0.2, "start-up": 0.1, "computing": 0.35, "CPU limit": 0.21, "other": 0.14}
    )
    assert row["bottleneck"] == "computing"
    assert row["time_s"]["value"] == pytest.approx(8)
    assert row["response_s"]["value"] == pytest.approx(10)


def test_in_a_closed_stream_waiting_is_no_bottleneck(profiled: Any) -> None:
    """Two customers, two slots, jobs of two replicas: one must wait. Of 4 s at work 3 computed."""
    told = report([job(waits=6, runs=4, cpu_s=6.0, replicas=2)], slots=2)
    row = one(profiled({(HALF, "stock", 1): told}))
    assert (row["bottleneck"], row["closed"]) == ("computing", True)
    assert row["share"]["value"] == pytest.approx(0.75)
    assert parts(row)["waiting"] == pytest.approx(0.6)
    told["stream"][0]["arrivals"]["kind"] = "poisson"
    row = one(profiled({(HALF, "stock", 1): told}))
    assert (row["bottleneck"], row["share"]["value"], row["closed"]) == (
        "waiting",
        pytest.approx(0.6),
        False,
    )


def test_what_was_not_told_is_missing_and_not_zero(profiled: Any) -> None:
    row = one(
        profiled(
            {(HALF, "stock", 1): report([job(cpu_s=None, max_rss_mib=None, work=None)])}, cpus=None
        )
    )
    assert row["cpu"] is row["memory"] is row["work_per_s"] is None
    assert set(parts(row)) == {"waiting", "start-up"}
    assert (row["bottleneck"], row["share"]["value"]) == ("at work", 1)


def test_runs_and_not_jobs_make_the_interval(profiled: Any) -> None:
    """Run means 1, 2, 3: mean 2, ± 4.3027 · 1/√3; the number of jobs does not matter."""
    told = {
        (HALF, "stock", at): report([job(number, runs=at) for number in range(50)])
        for at in (1, 2, 3)
    }
    found = one(profiled(told))["time_s"]
    assert found["value"] == pytest.approx(2)
    assert found["high"] - found["value"] == pytest.approx(4.302653 / 3**0.5, rel=1e-5)


def test_the_best_system_is_said_with_its_gain_run_by_run(profiled: Any) -> None:
    """Each run is about 1 s slower than the last; pairs see only that ONE is twice as fast."""
    told = {(ONE, "stock", at): report([job(runs=at * (1 + 0.01 * at))]) for at in (1, 2, 3, 4)}
    told |= {(HALF, "stock", at): report([job(runs=2 * at)]) for at in (1, 2, 3, 4)}
    found = profiled(told)
    assert [row["system"] for row in found["profile"]] == [ONE, HALF]
    times = found["times"]["train"]
    assert times["high"] < 1 / 1.9
    assert times["n"] == 4
    assert times["p_adjusted"] == times["p"] < 0.05


def test_pages_and_refusals(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    waiting = {(ONE, "stock", at): report([job(runs=1 + 0.01 * at, waits=9)]) for at in (1, 2, 3)}
    waiting |= {
        (HALF, "stock", at): report([job(runs=1.01 + 0.1 * (at - 2), waits=9)]) for at in (1, 2, 3)
    }
    classes = {(ONE, "stock", 1): report([job(0, runs=1), {**job(1, runs=5), "class": "infer"}])}
    backwards = {
        (ONE, "stock", 1): report([{**job(0), "start_s": 5.0, "end_s": 1.0}]),
        (HALF, "stock", 1): report([job(0)]),
    }
    situations: dict[str, dict[tuple[str, str, int], dict[str, Any]]] = {
        "waits in a closed stream": waiting,
        "two classes": classes,
        "a clock that went back": backwards,
        "nothing done": {(ONE, "stock", 1): report([{**job(0), "outcome": "failed"}])},
        "no jobs": {(ONE, "stock", 1): {}},
    }
    for case, told in situations.items():
        saved(tmp_path, told)
        code = main(["jobs", "profile", "run.json"])
        out, err = capsys.readouterr()
        assert (code, bool(out)) in {(0, True), (2, False)}
        assert width(out) <= 100
        assert {"out": out, "err": err} == snapshot(name=case)


def test_systems_are_called_by_what_differs() -> None:
    rows = [
        {"classes": "profile", "cores": 0.5},
        {"classes": "profile", "cores": 1},
        {"cores": 1, "classes": "profile", "tweak set": "fast"},
    ]
    assert apart(rows) == ["cores 0.5", "cores 1", "cores 1, tweak set fast"]
    assert apart(rows, ["a", "b", "b"]) == ["a", "b", "b, tweak set fast"]


def test_a_run_that_is_named_twice_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {(ONE, "stock", block): report([job(runs=1 + block)]) for block in (1, 2)}
    names = [str(saved(tmp_path, told, name=name)) for name in ("one.json", "copy.json")]
    found = data(capsys, "jobs", "profile", *names)
    assert one(found)["runs"] == 2
    assert one(found)["time_s"]["low"] is None
    assert any("a copy" in line for line in found["refused"])


COMMANDS = (
    ("depend report", "faults"),
    ("depend network", "network"),
    ("scale report", "scaling"),
    ("scale fit", "scaling"),
    ("jobs profile", "profile"),
    ("predict cv --models ridge", "profile"),
    ("predict fit --model ridge", "profile"),
    ("predict show --model ridge --at cores=1", "profile"),
    ("predict service --model ridge", "profile"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run for each question: faults, a lossy line, replicas for a target, and three systems."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("network", "scaling"):
        (folder / name).mkdir()
    faults = folder / "faults.json"
    faults.write_text(json.dumps(faulty_run(ARMS)), encoding="utf-8")
    rng = np.random.default_rng(1)
    cores = {HALF: 0.5, ONE: 1, "job_stream:cores=2": 2}
    told = {
        (name, "stock", block): report(
            [job(number, runs=rng.uniform(0.9, 1.1) / many, cores=many) for number in range(12)]
        )
        for name, many in cores.items()
        for block in range(1, 6)
    }
    return {
        "faults": faults,
        "network": Path(lossy(folder / "network", MadeLine(root))),
        "scaling": saved(folder / "scaling", scaled(), params=PARAMS),
        "profile": saved(
            folder, told, params={name: {"cores": many} for name, many in cores.items()}
        ),
    }


def moved(folder: Path, run: Path, *, elsewhere: bool, renamed: bool = False) -> Path:
    told: Any = parsed(run)
    if elsewhere:
        told["machine_info"]["deeptweak"]["mem_total_bytes"] = 2**40
    if elsewhere or renamed:
        told["deeptweak"]["run_id"] = "another"
        for one in told["benchmarks"]:
            one["extra_info"]["run_id"] = "another"
    path = folder / "other.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


@pytest.mark.parametrize(("command", "kind"), COMMANDS)
def test_runs_of_two_machines_are_refused(
    command: str,
    kind: str,
    made: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """More memory, which no factor of `predict` carries."""
    step, *options = command.split(" --")
    words = [word for option in options for word in f"--{option}".split()]
    assert (
        main(
            [
                *step.split(),
                str(made[kind]),
                str(moved(tmp_path, made[kind], elsewhere=True)),
                *words,
            ]
        )
        == 2
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert "other.json: ran on another machine" in err


@pytest.mark.parametrize("first", ["whole", "part"])
def test_of_a_run_that_was_resumed_the_whole_counts(
    first: str, made: dict[str, Path], tmp_path: Path
) -> None:
    told: Any = parsed(made["faults"])
    told["benchmarks"] = [one for one in told["benchmarks"] if one["extra_info"]["block"] <= 2]
    told["deeptweak"]["cells"] = [one for one in told["deeptweak"]["cells"] if one["block"] <= 2]
    part = tmp_path / "part.json"
    part.write_text(json.dumps(told), encoding="utf-8")
    refused: list[str] = []
    names = [str(made["faults"]), str(part)]
    (kept,) = of_one_machine(
        load_each(names if first == "whole" else names[::-1], refused), refused
    )
    assert len(kept.cells) == 5 * len(ARMS)
    (line,) = refused
    assert line.startswith(f"{part}: ")
    assert str(made["faults"]) in line
