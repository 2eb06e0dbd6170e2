"""Study algorithms under a cap on `replay` from the command line: planned, run, resumed, read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from analysis.load import load
from analysis.studies.power import parameters
from fixtures import studies, workloads
from fixtures.parameters import digest
from fixtures.studies.power import options
from fixtures.terms import BadInput, Metric, Study
from tests.analysis.studies.power.made_reference import reference
from tests.sessions import HOUSE, WITHOUT, Done, Place, until
from tests.spread.fleet import FLEET
from tests.test_session import SCHEMA

NAMES = ("capped_inference:task=6:algorithm=powercap", "capped_inference:task=6:algorithm=morak")
STUDY = Study(
    "power_cap", "Which?", NAMES, ("stock",), Metric("throughput_samples_per_s", "higher")
)
Json = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A machine in a folder, and parameters of a network that is made up, at two memory clocks."""
    (tmp_path / "parameters").mkdir()
    for model in (reference("made_up", mem_mhz=mem_mhz) for mem_mhz in (5001.0, 9501.0)):
        parameters.write(model, tmp_path / "parameters" / parameters.file_name(model))
    tasks = ["{id: 7, gpu: 3080Ti, model: made_up, dataset: imagenet, cap_w: 180, iterations: 6}"]
    tasks += [
        (
            "{id: 9, gpu: 3080Ti, model: made_up, dataset: imagenet, caps_w: [[0, 190], [3, "
            "150]], iterations: 6}"
        )
    ]
    (tmp_path / "tasks.yaml").write_text(
        "\n".join(["tasks:", *(f"  - {task}" for task in tasks)]) + "\n"
    )
    return Place(tmp_path, environment={FLEET: str(tmp_path / "fleet"), "PYTHONPATH": str(HOUSE)})


def called(place: Place, *more: str, parameters: bool = True) -> Done:
    return place.call(*command(place, *more, parameters=parameters))


def command(place: Place, *more: str, parameters: bool = True) -> list[str]:
    plain = [word for plugin in WITHOUT for word in ("-p", f"no:{plugin}")]
    fixed = [
        f"--benchmark-storage={place.storage}",
        "-p",
        "tests.spread.plugin",
        "--target=fleet",
        "--benchmark-save=one",
        "--blocks=1",
    ]
    fixed += [f"--power-tasks={place.folder / 'tasks.yaml'}"]
    fixed += [f"--power-parameters={place.folder / 'parameters'}"] if parameters else []
    return [sys.executable, "-m", "pytest", "benchmarks/bench_power_cap.py", *plain, *fixed, *more]


def reports(place: Place) -> dict[tuple[int, str], Json]:
    """Return reports of the cells under stock, by task and algorithm."""
    told: dict[tuple[int, str], Json] = {}
    for one in place.saved()["benchmarks"]:
        record = one["extra_info"]
        if record["tweakset"] == "stock":
            (facts,) = record["report"]["task"]
            told[facts["task"], facts["algorithm"]] = record["report"]
    return told


@pytest.mark.slow
def test_a_plan_names_the_cells_and_touches_nothing(place: Place) -> None:
    done = called(place, "--algorithms=powercap,morak", "--task-id=7", "--plan")
    assert done.code == 0, done.out
    assert len(done.lines("algorithm=morak")) == 1  # a copy of what is simulated would say nothing
    assert done.lines("Nothing was touched.")
    assert not place.files()
    assert not (place.folder / "fleet").exists() or not list((place.folder / "fleet").glob("*/pid"))


@pytest.mark.slow
def test_tasks_under_algorithms_are_saved_window_by_window(place: Place) -> None:
    done = called(place, "--algorithms=powercap,morak")
    assert done.code == 0, done.out
    jsonschema.Draft202012Validator(SCHEMA).validate(place.saved())
    told = reports(place)
    assert sorted(told) == [(7, "morak"), (7, "powercap"), (9, "morak"), (9, "powercap")]
    rows = told[9, "powercap"]["iteration"]
    assert [row["cap"] for row in rows] == [190, 190, 190, 150, 150, 150]
    assert [row["actual"]["power_limit_w"] for row in rows] == [190, 190, 190, 150, 150, 150]
    assert {row["power_source"] for one in told.values() for row in one["iteration"]} == {
        "simulated"
    }
    assert {one["task"][0]["parameters_sha256"] for one in told.values()} == {
        digest(place.folder / "parameters")
    }
    cells = load(place.files()[-1]).cells
    assert {len(cell.report["iteration"]) for cell in cells} == {6}
    assert done.lines("% of the time above the cap, simulated")


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_what_it_had_finished(place: Place) -> None:
    asked = command(place, "--algorithms=morak,powercap", "--task-id=7")
    process = subprocess.Popen(
        asked, cwd=HOUSE, env=place.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until(lambda: bool(place.finished()), process)  # type: ignore[arg-type]  # it says nothing
    process.kill()
    process.wait()
    before = {name: record["started_utc"] for name, record in place.finished().items()}
    done = place.call(*asked, "--resume")
    assert done.code == 0, done.out
    records = [one["extra_info"] for one in place.saved()["benchmarks"]]
    assert len(records) == 2
    assert {one["id"]: one["started_utc"] for one in records if one["id"] in before} == before
    assert all(len(one["report"]["iteration"]) == 6 for one in records)


@pytest.mark.slow
def test_an_infeasible_cap_is_named_with_the_smallest_feasible(place: Place) -> None:
    (place.folder / "tasks.yaml").write_text(
        "tasks:\n  - {id: 7, gpu: 3080Ti, model: made_up, dataset: imagenet, cap_w: 20}\n"
    )
    done = called(place, "--algorithms=steady")
    assert done.code == 1
    assert done.lines("a cap of 20 W is infeasible")
    assert done.lines("The smallest feasible cap is ")


@pytest.mark.slow
def test_cells_without_parameters_are_skipped_with_a_reason(place: Place) -> None:
    done = called(place, "--algorithms=morak", "--task-id=7", parameters=False)
    assert done.lines(
        "replay simulates a plant from parameters: specify them with --power-parameters"
    )


def ids(study: Study) -> tuple[str, ...]:
    return tuple(workloads.load(one).id for one in study.workloads)


def test_options_make_the_workloads_of_a_study() -> None:
    """Tasks from 30 on under the study's own, and pctodl with its optimiser as one more arm."""
    found = studies.apply({"task_id": "30-"}, STUDY, workloads=None)
    assert ids(found) == tuple(
        f"capped_inference:task=30:algorithm={name}" for name in ("powercap", "morak")
    )
    shadowed = studies.apply({"algorithms": "pctodl,morak,pctodl:shadow=on"}, STUDY, workloads=None)
    assert ids(shadowed) == (
        "capped_inference:algorithm=pctodl",
        "capped_inference:algorithm=morak",
        "capped_inference:algorithm=pctodl:shadow=on",
    )
    assert studies.apply({}, STUDY, workloads=None) == STUDY


def test_allowed_changes_are_in_the_name() -> None:
    one, *_ = studies.apply(
        {"power_backend": "gpu-full", "allow_gpu_changes": True}, STUDY, workloads=None
    ).workloads
    assert workloads.load(one).id.endswith(":backend=gpu-full:gpu_changes=allowed")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"algorithms": "morak:shadow=on"}, "morak has no shadow optimiser; only pctodl has"),
        (
            {"algorithms": "pctodl:noise_w=2"},
            "--algorithms=pctodl:noise_w=2: no parameter 'noise_w'",
        ),
        ({"algorithms": ","}, "--algorithms=,: no algorithm given"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: Json, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        studies.apply(options, STUDY, workloads=None)


def unavailable_reason(**given: str) -> str:
    why = options.unavailable_reason(options.complete(given))
    assert why is not None
    return why


def test_a_gpu_is_changed_only_where_that_is_allowed_by_name() -> None:
    assert "to permit this, add --allow-gpu-changes" in unavailable_reason(backend="gpu-full")
    assert "remove privilege=no" in unavailable_reason(
        backend="gpu-full", gpu_changes="allowed", privilege="no"
    )


def test_a_cap_of_power_without_a_sensor_is_no_cap(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from fixtures.studies.power.backends import cpu

    probe = cpu.probe
    monkeypatch.setattr(cpu, "probe", lambda params: probe(params, tmp_path))
    assert unavailable_reason(backend="cpu").startswith("task 6 has a cap in W: no RAPL")
    task = {
        "task": "101",
        "gpu": "A100",
        "model": "mobilenet_v2",
        "dataset": "random",
        "cap_cpu_s_per_s": "1",
    }
    assert unavailable_reason(backend="cpu", **task) == "task 101 needs A100, but cpu has cpu here"
    assert (
        options.unavailable_reason(options.complete({"backend": "cpu", **task, "gpu": "cpu"}))
        is None
    )


def test_gpus_are_identified_by_part_of_the_drivers_name() -> None:
    assert options.gpu_named("NVIDIA GeForce RTX 3080 Ti") == "3080Ti"
    assert options.gpu_named("NVIDIA A100-SXM4-80GB") == "A100"
    assert options.gpu_named("NVIDIA H200") is None


def test_a_task_for_any_gpu_means_the_one_that_is_there() -> None:
    params = options.complete({"task": "29"})
    assert options.gpu_of(params, {"name": "NVIDIA A100-PCIE-40GB"}) == "A100"
    assert options.gpu_of(params, {"name": "NVIDIA H200"}) == "NVIDIA H200"
    assert options.gpu_of(params, {"simulated": True}) == "3080Ti"
    assert options.gpu_of(options.complete({"task": "6"}), {"name": "NVIDIA H200"}) == "3080Ti"


def test_an_algorithm_says_itself_what_it_lacks() -> None:
    task = {
        "task": "101",
        "gpu": "cpu",
        "model": "mobilenet_v2",
        "dataset": "random",
        "cap_cpu_s_per_s": "1",
        "backend": "cpu",
    }
    assert "power limit cannot be set" in str(
        options.unsupported(options.complete({**task, "algorithm": "powercap"}))
    )
    assert options.unsupported(options.complete({**task, "algorithm": "morak"})) is None


@pytest.mark.parametrize("name", ["a.json", "a.bin", "a", "a.JSON"])
def test_parameters_of_any_name_are_known_by_their_bytes(tmp_path: Path, name: str) -> None:
    seen = []
    for text in ("{}", "[]"):
        (tmp_path / name).write_text(text)
        (tmp_path / "a.png").write_text(text)
        digest.cache_clear()
        seen += [digest(tmp_path), digest(tmp_path / "a.png")]
    assert len(set(seen)) == 4
    (tmp_path / "a.png").write_text("()")
    digest.cache_clear()
    assert digest(tmp_path) == seen[2]
    with pytest.raises(BadInput, match="No such file"):
        digest(tmp_path / "none")


def test_what_is_no_file_and_no_folder_holds_no_parameters(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(BadInput, match="not a file or a folder"):
            digest(path)
    with pytest.raises(BadInput, match=r"a.x00b': not a valid path \(.*embedded null"):
        digest(Path("a\0b"))
