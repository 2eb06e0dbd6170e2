"""What every monitor keeps to, whatever it is: each file of `fixtures/monitors/`, found by its name, and run for real where it can be."""

from __future__ import annotations

import os
import uuid
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from fixtures import monitors, record
from fixtures.targets import _process
from fixtures.terms import BadInput, Order, TweakSet
from tests.monitors.made_up import TRACE, traced
from tests.test_run_schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What a monitor needs that a CI machine has; the others it may lack.
THERE = {"placebo", "psutil_thread", "psutil_process", "sampler", "py_spy", "top", "perf_stat", "perf_record", "cprofile", "torch_profiler"}
EVERY = monitors.names()
pytestmark = pytest.mark.slow


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """In the environment of all that a cell starts: when it is over there is nothing with it."""
    name = uuid.uuid4().hex  # other workers' tests have theirs
    monkeypatch.setenv(TRACE, name)
    yield name
    assert traced(name) == {}


def test_there_are_monitors_of_each_kind() -> None:
    assert {monitors.load(name).kind for name in EVERY} == set(monitors.KINDS)


@pytest.mark.parametrize("name", EVERY)
def test_it_says_what_it_is(name: str) -> None:
    known, code = monitors.load(name), monitors.module(name)
    assert known.name == known.base == name  # its defaults give the bare name
    assert known.kind in monitors.KINDS
    assert known.description
    assert "\n" not in known.description
    assert hasattr(code, "PARAMS") != (hasattr(code, "VARIABLE") and hasattr(code, "variant"))
    shown_of = getattr(code, "WORKLOADS", ())
    assert monitors.tweakset(name) == TweakSet(name, description=known.description, monitor=name, workloads=shown_of)


@pytest.mark.parametrize("name", EVERY)
def test_its_parameters_given_again_are_its_own_name(name: str) -> None:
    """What is saved of a variant leads back to it."""
    known = monitors.load(name)
    whole = ":".join([name, *(f"{key}={known.params[key]}" for key in known.variable)])
    assert monitors.load(whole).name == name
    assert list(known.variable) == [key for key in known.params if key in known.variable]


@pytest.mark.parametrize("name", EVERY)
def test_what_it_does_not_know_it_refuses(name: str) -> None:
    with pytest.raises(BadInput, match="no parameter"):
        monitors.load(f"{name}:no_such_parameter=1")
    for key in monitors.load(name).variable:
        with pytest.raises(BadInput, match=key):
            monitors.load(f"{name}:{key}=.")


@pytest.mark.parametrize("name", EVERY)
def test_why_it_cannot_run_is_a_sentence_or_nothing(name: str) -> None:
    why = monitors.why_not(name)
    assert why is None or (why.startswith(f"monitor {name}: ") and "\n" not in why)
    assert monitors.module(name).version() is None or isinstance(monitors.module(name).version(), str)


@pytest.mark.parametrize("name", EVERY)
def test_its_way_in_is_that_of_its_kind(name: str, tmp_path: Path) -> None:
    known, code = monitors.load(name), monitors.module(name)
    if known.kind == "inside":
        assert isinstance(code.inside(known.params, tmp_path), AbstractContextManager)
    elif monitors.why_not(name) is None:
        command = code.command(known.params, *((os.getpid(),) if known.kind == "beside" else ()), tmp_path)
        assert command
        assert all(isinstance(word, str) for word in command)


def run(name: str, folder: Path) -> dict[str, Any]:
    """A cell of two seconds under it, as it is saved."""
    order = Order("idle:wait_s=0.05", 40, 2, 7, folder, monitored=True, monitor=name, step_timeout_s=120)
    result = _process.run(order)
    assert result.error is None, (result.error, result.last_lines)
    found: dict[str, Any] = {}
    record.steps(found, result)
    return found


@pytest.mark.parametrize("name", EVERY)
def test_it_runs_and_what_it_cost_is_told(name: str, tmp_path: Path, trace: str) -> None:
    """All that the schema asks for is there, nothing is null without a reason, and nothing of it is left."""
    if why := monitors.why_not(name):
        assert not (os.environ.get("CI") and name in THERE), why
        pytest.skip(why)
    found = run(name, tmp_path)
    parts = SCHEMA["$defs"]["cell_record"]["properties"]
    for part in ("monitor", "usage"):
        jsonschema.Draft202012Validator({**parts[part], "$defs": SCHEMA["$defs"]}).validate(found[part])
        assert {key for key, value in found[part].items() if value is None} == set(found[part]["missing"])
    monitor, known = found["monitor"], monitors.load(name)
    assert (monitor["name"], monitor["base"], monitor["kind"], monitor["params"]) == (name, name, known.kind, known.params)
    assert monitor["wall_s"] >= found["usage"]["steps_wall_s"] >= 40 * 0.05
    assert (monitor["cpu_s"] is None) == (known.kind == "inside")
    assert monitor["samples"] is None or monitor["samples"] > 0 or name == "perf_record"  # whose timer stands while the workload sleeps
    assert trace


def test_without_a_monitor_a_cell_goes_the_same_way(tmp_path: Path, trace: str) -> None:
    found = run("", tmp_path)
    assert found["monitor"]["name"] is None
    assert found["monitor"]["missing"] == {"monitor": "no monitor in this arm"}
    assert found["usage"]["wall_s"] > found["usage"]["steps_wall_s"]
    assert trace
