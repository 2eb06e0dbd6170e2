"""The decider over lines of JSON: one answer a line, a sentence for what cannot be, and nothing heavier than it needs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.power import algorithms
from analysis.power.control import service
from tests.analysis.power import made_cpu

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

HOUSE = Path(__file__).parents[3]
KNOBS: dict[str, Any] = {
    "shares": True,
    "batches": [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256],
    "most_processes": 20,
    "sm_mhz": [*range(210, 2101, 15)],
    "mem_mhz": [5001, 9501],
    "power_limit_w": [100, 350],
    "throttle": None,
}
TASK = {"id": 1, "gpu": "3080Ti", "model": "made_up", "dataset": "imagenet"}


def hello(algorithm: str = "morak", **more: object) -> dict[str, Any]:
    return {"hello": 1, "algorithm": algorithm, "task": TASK, "caps": [[0, 200]], "cap_unit": "W", "knobs": KNOBS, **more}


def observed(now: object, **more: object) -> dict[str, Any]:
    told = {
        "iteration": 0,
        "cap": 200,
        "settings": now,
        "refused": [],
        "throughput_images_per_s": 900.0,
        "power_mean": 188.5,
        "power_max": 190,
    }
    return {"observed": {**told, "latency_ms": [10.0, 11.5], "latency_p95_ms": [12, 13], "oom": [], **more}}


def spoken(*lines: object) -> tuple[list[dict[str, Any]], int]:
    said: list[dict[str, Any]] = []
    code = service.serve((one if isinstance(one, str) else json.dumps(one) for one in lines), said.append)
    json.dumps(said, allow_nan=False)
    return said, code


def conversation(first: dict[str, Any], rounds: int) -> list[dict[str, Any]]:
    """Let a decider see its own settings each time."""
    said: list[dict[str, Any]] = []

    def lines() -> Any:  # noqa: ANN401  # strings
        yield json.dumps(first)
        for at in range(rounds):
            yield json.dumps(observed(said[-1]["settings"], iteration=at))

    assert service.serve(lines(), said.append) == 0
    return said


@pytest.mark.parametrize("name", algorithms.names())
def test_every_algorithm_answers_each_line_once(place: Path, name: str) -> None:
    said = conversation(hello(name, parameters=str(place)), 4)
    assert len(said) == 5
    for one in said:
        assert set(one) == {"settings", "why", "predicted"}
        assert set(one["settings"]) == {"tenants", "sm_mhz", "mem_mhz", "power_limit_w", "throttle"}
        assert all(set(tenant) == {"share_percent", "batch"} for tenant in one["settings"]["tenants"])


def test_a_prediction_is_in_images_and_in_the_caps_unit(place: Path) -> None:
    (said,), _ = spoken(hello("steady", parameters=str(place)))
    assert set(said["predicted"]) == {"throughput_images_per_s", "power_w"}
    assert said["predicted"]["power_w"] <= 200


@pytest.mark.parametrize("name", ["steady", "pctodl"])
def test_a_model_in_another_unit_than_the_cap_is_refused(name: str, tmp_path: Path) -> None:
    """A model of CPU seconds would take 60 W for 60 CPU seconds per second, and set everything."""
    (said,), code = spoken(of_cpu(tmp_path, name, caps=[[0, 60]]))
    assert code == 2
    assert "CPU s/s" in said["error"]


def of_cpu(folder: Path, algorithm: str, **more: object) -> dict[str, Any]:
    knobs = {**KNOBS, "sm_mhz": None, "mem_mhz": None, "power_limit_w": None, "throttle": [0.25, 0.5, 1]}
    return hello(algorithm, parameters=str(made_cpu.folder(folder)), task={**TASK, "gpu": "cpu", "model": "resnet50"}, knobs=knobs, **more)


def test_without_a_reading_of_power_all_stays_as_it_is() -> None:
    (first,), _ = spoken(hello())
    said, code = spoken(hello(), observed(first["settings"], power_mean=None, power_max=None))
    assert (said[1]["settings"], code) == (first["settings"], 0)


def test_the_cap_of_the_next_iteration_is_what_is_decided_for() -> None:
    (first,), _ = spoken(hello("powercap"))
    said, _ = spoken(hello("powercap"), observed(first["settings"], cap=160))
    assert [one["settings"]["power_limit_w"] for one in said] == [200.0, 160.0]


def test_what_is_infeasible_is_said_with_the_smallest_cap_in_its_unit(place: Path, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    in_watts, in_cpu = (
        hello("steady", parameters=str(place), caps=[[0, 40]]),
        of_cpu(tmp_path, "steady", cap_unit="cpu_s_per_s", caps=[[0, 0.01]]),
    )
    answers = [spoken(one) for one in (in_watts, in_cpu)]
    assert [code for _, code in answers] == [0, 0]
    assert [said[0]["smallest_cap"] > cap for (said, _), cap in zip(answers, (40, 0.01), strict=True)] == [True, True]
    assert [re.sub(r"[0-9.]+( W|\.$| CPU)", r"…\1", said[0]["infeasible"]) for said, _ in answers] == snapshot


def test_what_is_unsupported_is_said() -> None:
    said, code = spoken(hello("steady"), "never read")
    assert code == 0
    assert [*said[0]] == ["unsupported"]


def test_nothing_asked_is_nothing_answered() -> None:
    assert spoken() == ([], 0)


WRONG: list[dict[str, Any]] = [{"batches": []}, {"batches": [4, 2]}, {"sm_mhz": [True]}, {"power_limit_w": [100]}, {"most_processes": 1.5}]
QUESTIONS: list[object] = [
    "",
    "[1]",
    '{"hello": 1, "seed": NaN}',
    hello(hello=7),
    hello("moraks"),
    *(hello(caps=caps) for caps in ([], [[1, 200]], [[0, -1]], [[0]])),
    hello(cap_unit="kW"),
    hello(task={"gpu": "3080Ti"}),
    hello(task=None),
    *(hello(knobs={**KNOBS, **knobs}) for knobs in WRONG),
    hello("steady", parameters="/nowhere"),
]


def test_a_question_that_cannot_be_used_is_said_and_ends_it(snapshot: SnapshotAssertion) -> None:
    messages = []
    for question in QUESTIONS:
        (said,), code = spoken(question, "never read")
        assert code == 2, question
        messages.append(said["error"])
    assert messages == snapshot


UNUSABLE: list[dict[str, object]] = [
    {"settings": None},
    {"settings": {"tenants": [{"share_percent": 0, "batch": 1}]}},
    {"settings": {"tenants": [{"share_percent": 50, "batch": 1e9}]}},
    {"oom": [2]},
    {"oom": [-1]},
    {"oom": 1},
    {"latency_ms": ["10"]},
    {"cap": None},
    {"iteration": 0.5},
]


def test_an_observation_that_cannot_be_used_is_said_and_ends_it() -> None:
    (first,), _ = spoken(hello())
    for more in UNUSABLE:
        said, code = spoken(hello(), observed(first["settings"], **more))
        assert (code, [*said[1]]) == (2, ["error"]), more


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=9
)


@given(anything, st.sampled_from(["task", "caps", "knobs", "cap_unit", "iterations", "seed", "slo_ms", "margin", "parameters"]))
def test_no_question_breaks_it(said: object, key: str) -> None:
    answers, code = spoken(json.dumps({**hello(), key: said}))
    assert len(answers) == 1
    assert code == (2 if "error" in answers[0] else 0)


@given(anything, st.sampled_from([*observed(None)["observed"]]))
def test_no_observation_breaks_it(said: object, key: str) -> None:
    (first,), _ = spoken(hello())
    answers, code = spoken(hello(), json.dumps(observed(first["settings"], **{key: said})))
    assert len(answers) == 2
    assert code == (2 if "error" in answers[1] else 0)


@pytest.mark.parametrize(("name", "heavy"), [("morak", ["numpy", "scipy", "sklearn", "pandas", "rich"]), ("steady", ["scipy", "sklearn"])])
def test_the_command_answers_line_by_line_and_waits_for_no_library_that_it_does_not_need(place: Path, name: str, heavy: list[str]) -> None:
    """Each cell of a run starts one; numpy alone would double what that takes."""
    loaded = f"sys.exit(code or ', '.join({set(heavy)} & sys.modules.keys()) or 0)"
    program = f"import sys; from analysis.__main__ import main; code = main(['power', 'decide']); {loaded}"
    talk = subprocess.Popen([sys.executable, "-c", program], cwd=HOUSE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert talk.stdin is not None
    assert talk.stdout is not None
    talk.stdin.write(json.dumps(hello(name, parameters=str(place))) + "\n")
    talk.stdin.flush()
    first = json.loads(talk.stdout.readline())  # answered before the next line is there
    talk.stdin.write(json.dumps(observed(first["settings"])) + "\n")
    rest, _ = talk.communicate(timeout=60)
    assert json.loads(rest)["why"]
    assert talk.returncode == 0
