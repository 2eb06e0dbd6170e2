"""`python -m analysis serve`: what decides, for somebody else's program, over lines of JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.__main__ import main
from analysis.commands.serve import serve
from analysis.studies.jobs.simulation import jobs, play
from control.power import algorithms
from control.scaling import Law, time_s
from tests.analysis.studies.jobs.simulation.made_jobs import ANY, source
from tests.analysis.studies.power import made_control

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

Json = dict[str, Any]
SJF = {"serve": "schedule", "policy": "sjf", "slots": {ANY: 1}}
LAW = Law(cost_s=4.0, serial=0.05, startup_s=0.2)
PROFILE = [{"replicas": n, "work": size, "time_s": float(time_s(LAW, size, n))} for n in (1, 2, 4, 8) for size in (0.5, 1.5)]
SCALE = {"serve": "scale", "target_s": 2.0, "most": 8, "classes": {"train": PROFILE}}


def answers(*messages: object) -> list[Json]:
    found: list[Json] = []
    code = serve((one if isinstance(one, str) else json.dumps(one) for one in messages), found.append)
    assert code == (2 if found and "error" in found[-1] else 0)
    return found


def test_a_dispatcher_gets_to_know_what_to_start() -> None:
    start = {"number": 3, "kind": ANY}
    assert answers(
        SJF,
        {"at_s": 0, "submitted": [{"number": 1, "predicted_s": {ANY: 3}}, {"number": 2, "predicted_s": {ANY: 1}}]},
        {"at_s": 0.5, "submitted": [{"number": 3, "predicted_s": {ANY: 2}, "class_": "x", "due_s": 9, "tenant": "t"}]},
        {"at_s": 1, "ended": [2], "away": {ANY: 1}},
        {"at_s": 2, "away": {ANY: 0}},
        {"at_s": 3, "ended": [3], "submitted": [{"number": 3, "predicted_s": {ANY: 0.1}}]},
    ) == [{"ready": True}, {"start": [{"number": 2, "kind": ANY}]}, {"start": []}, {"start": []}, {"start": [start]}, {"start": [start]}]


def test_it_starts_the_jobs_that_the_simulator_starts() -> None:
    stream = jobs(source(2, 0.9), 60, 1)
    played = play(stream, {ANY: 2}, "sjf")
    moments = sorted({*played.submit_s.tolist(), *played.end_s.tolist()})
    lines: list[Json] = [SJF | {"slots": {ANY: 2}}]
    for moment in moments:
        came = [{"number": one.job.number, "predicted_s": dict(one.job.predicted_s)} for one in stream if one.job.submit_s == moment]
        lines.append({"at_s": moment, "submitted": came, "ended": [at for at, end in enumerate(played.end_s.tolist()) if end == moment]})
    started = {start["number"]: moment for moment, one in zip(moments, answers(*lines)[1:], strict=True) for start in one["start"]}
    assert [started[at] for at in range(60)] == played.start_s.tolist()


def test_a_law_is_fitted_and_each_size_gets_the_replicas_that_take_the_target() -> None:
    """0.2 + 4·1·(1 + 0.05·(n - 1))/n is 2.3 with 2 replicas, 1.67 with 3: 2 are nearer as a ratio, and not within a tenth."""
    ready, chosen = answers(SCALE, {"jobs": [{"class": "train", "work": 1.0}, {"class": "train", "work": 2.4}]})
    assert ready["laws"]["train"]["law"]["cost_s"] == pytest.approx(4, rel=1e-3)
    assert ready["laws"]["train"]["held_out"] < 0.01
    assert [(one["replicas"], one["within"]) for one in chosen["choices"]] == [(2, False), (7, True)]
    assert chosen["choices"][0]["predicted_s"] == pytest.approx(2.3, rel=1e-3)


KNOBS = {"shares": True, "batches": [1, 2, 4, 8, 16], "most_processes": 4, "sm_mhz": [210, 1110, 1950], "power_limit_w": [100, 350]}
CAPPED = {"serve": "power", "algorithm": "morak", "gpu": "3080Ti", "model": "made_up", "caps": [[0, 200]], "knobs": KNOBS}
SEEN = {"iteration": 0, "cap": 160, "throughput_images_per_s": 900.0, "power_mean": 188.5, "power_max": 190, "latency_ms": [10.0, None]}


@pytest.mark.parametrize("name", algorithms.names())
def test_every_algorithm_of_power_answers_a_run(tmp_path: Path, name: str) -> None:
    knobs = KNOBS | {"batches": made_control.KNOBS.batches, "most_processes": 20, "mem_mhz": [5001, 9501]}
    first = CAPPED | {"algorithm": name, "parameters": str(made_control.folder(tmp_path / "parameters")), "knobs": knobs}
    told: list[Json] = []
    for at in range(4):
        decided = answers(first, *told)
        assert len(decided) == at + 1
        assert set(decided[-1]) == {"settings", "why", "predicted"}
        told.append(SEEN | {"iteration": at, "settings": decided[-1]["settings"]})
        decided = answers(
            first | {"knobs": KNOBS | {"batches": list(made_control.KNOBS.batches), "most_processes": 20}},
            SEEN | {"iteration": at, "settings": decided[-1]["settings"]},
        )


def test_what_power_cannot_do_is_said_in_a_sentence(tmp_path: Path) -> None:
    parameters = str(made_control.folder(tmp_path / "parameters"))
    for more, said in (
        ({"parameters": parameters, "caps": [[0, 20]]}, "stays within 20 W"),
        ({}, "steady needs a model of made_up on 3080Ti"),
        ({"parameters": parameters, "cap_unit": "cpu_s_per_s"}, "has a cap in CPU s/s"),
    ):
        assert said in answers(CAPPED | {"algorithm": "steady"} | more)[0]["error"]


WRONG_KNOBS: list[Json] = [{"batches": []}, {"batches": [4, 2]}, {"sm_mhz": [True]}, {"power_limit_w": [100]}]
WRONG: list[Sequence[object]] = [
    ["no"],
    ["[]"],
    ["[" * 100_000],
    [{}],
    [{"serve": "coffee"}],
    [SJF | {"policy": "lifo"}],
    [SJF | {"slots": {ANY: 0}}],
    [SJF | {"slots": None}],
    *(
        [SJF, then]
        for then in (
            {},
            '{"at_s": NaN}',
            {"at_s": 0, "submited": []},
            {"at_s": 0, "submitted": [3]},
            {"at_s": 0, "submitted": [{"predicted_s": {ANY: 3}}]},
            {"at_s": 0, "submitted": [{"number": 1, "predicted": 3}]},
            {"at_s": 0, "submitted": [{"number": 1, "predicted_s": {"gpu": 3}}]},
            {"at_s": 0, "submitted": [{"number": 1, "replicas": 2}]},
            {"at_s": 0, "submitted": [{"number": 10**400}]},
            {"at_s": 0, "ended": [1]},
            {"at_s": 0, "away": {ANY: 2}},
            {"at_s": 0, "away": 1},
        )
    ),
    [SJF, {"at_s": 1}, {"at_s": 0}],
    [SCALE | {"target_s": 0}],
    [SCALE | {"most": 1.5}],
    [SCALE | {"classes": {}}],
    [SCALE | {"classes": {"train": PROFILE[:2]}}],
    [SCALE | {"classes": {"train": [{"replicas": 1, "work": 1, "time_s": None}]}}],
    [SCALE, {"jobs": [{"class": "infer", "work": 1}]}],
    [SCALE, {"jobs": [{"class": "train", "work": True}]}],
    [SCALE, {"jobs": [3]}],
    [SCALE, {"jobs": 3}],
    [CAPPED | {"algorithm": "moraks"}],
    *([CAPPED | {"caps": caps}] for caps in ([], [[1, 200]], [[0, -1]], [[0]])),
    [CAPPED | {"cap_unit": "kW"}],
    [CAPPED | {"gpu": None}],
    [CAPPED | {"models": 1}],
    *([CAPPED | {"knobs": KNOBS | knobs}] for knobs in WRONG_KNOBS),
    [CAPPED | {"algorithm": "steady", "parameters": "/nowhere"}],
    *(
        [CAPPED, SEEN | {"settings": {"tenants": [{"share_percent": 50, "batch": 1}, {"share_percent": 50, "batch": 1}]}} | more]
        for more in (
            {"settings": None},
            {"settings": {"tenants": [{"share_percent": 0, "batch": 1}]}},
            {"oom": [2]},
            {"oom": 1},
            {"latency_ms": ["10"]},
            {"cap": None},
            {"iteration": 0.5},
        )
    ),
]


def test_a_line_that_cannot_be_used_is_answered_with_the_reason_and_ends_it(snapshot: SnapshotAssertion) -> None:
    found = []
    for lines in WRONG:
        messages = answers(*lines, SJF)
        assert len(messages) == len(lines)
        found.append(messages[-1]["error"])
    assert found == snapshot


words = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3), lambda one: st.lists(one, max_size=2))
fields = st.dictionaries(st.sampled_from(["number", "predicted_s", "class_", "priority", "replicas", "due_s", "tenant"]), words)
events = st.fixed_dictionaries({"at_s": words}, optional={"away": words, "ended": words, "submitted": st.lists(fields, max_size=2) | words})


@settings(max_examples=30)
@given(event=events, job=words)
def test_whatever_comes_is_answered_in_a_line(event: Json, job: object) -> None:
    assert answers(SJF, json.dumps(event))[-1].keys() in ({"start"}, {"error"})
    assert answers(SCALE, json.dumps({"jobs": [job]}))[-1].keys() in ({"choices"}, {"error"})


def test_it_is_a_command_that_answers_line_by_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(SJF) + '\n{"at_s": 0, "submitted": [{"number": 7}]}\n'))
    assert main(["serve"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()][1] == {"start": [{"number": 7, "kind": ANY}]}
